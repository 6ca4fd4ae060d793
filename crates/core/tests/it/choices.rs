//! Choices are made by their names.

use cognate::engine::fuse::FuseBy;
use cognate::engine::{Measure, Opposites, OppositionKind, Reason, Strategy};
use cognate::methods::Kind;
use cognate::methods::ranker::Encoder;
use cognate::methods::sets::fbow_jaccard::Universe;
use cognate::model::phrase::Found;
use cognate::model::{Frequency, Storage, Verify};
use cognate::window::usual::Preset;

#[test]
fn names_are_those_of_requests_and_answers() {
    macro_rules! check {
        ($($choice:ty),+) => {$(
            for choice in <$choice>::ALL {
                assert_eq!(serde_json::json!(choice), choice.name());
                assert_eq!(choice.name().parse(), Ok(choice));
            }
        )+};
    }
    check!(Found, Frequency, FuseBy, Kind, Measure, Opposites, OppositionKind, Preset, Reason);
    check!(Encoder, Strategy, Universe);
}

#[test]
fn another_name_is_refused_by_the_list() {
    let told = |name: &str| name.parse::<Strategy>().unwrap_err().to_string();
    assert_eq!(told("x"), "expected best, mean or sum, got \"x\"");
    assert_eq!(told(&"é".repeat(1000)).chars().filter(|one| *one == 'é').count(), 80);
    let measure = "Cosine".parse::<Measure>().unwrap_err().to_string();
    assert_eq!(measure, "expected cosine or euclidean, got \"Cosine\"");
    assert_eq!(("map".parse(), "structure".parse()), (Ok(Storage::Map), Ok(Verify::Structure)));
}
