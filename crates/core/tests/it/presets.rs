//! What is usual for a kind of stream, and what a model says of it.

use cognate::engine::{Engine, EventRules, Opposites};
use cognate::methods::Method;
use cognate::window::events::Decision;
use cognate::window::options::{Least, MAX_LAST, OptionProblem, Options};
use cognate::window::stream::{AddPolicy, Item, Reasons, Stream};
use cognate::window::usual::Preset;
use cognate_testing as support;

const TOPICS: Options<'_> = Options {
    preset: None,
    method: None,
    second: None,
    last: None,
    within: None,
    threshold: None,
    nearest: None,
    votes: None,
    centre: None,
    duplicate_score: None,
    drop_opposed: false,
    opposites: None,
};
const STORIES: Options<'_> = Options { preset: Some(Preset::Stories), ..TOPICS };

/// The method that scores, the threshold, and what an event of one text loses.
fn usual(engine: &Engine, options: &Options<'_>) -> (Method, f32, f32) {
    let settings = options.resolve(engine, MAX_LAST).unwrap();
    let scoring = settings.second.unwrap_or(settings.method);
    (scoring, settings.rule.threshold, settings.rule.steps[0])
}

#[test]
fn a_preset_says_what_is_usual_and_a_model_what_was_found_for_it() {
    let fitted = support::engine();
    let coverage = Options { second: Some("coverage"), ..TOPICS };
    let alone = Options { second: Some("none"), ..TOPICS };
    assert_eq!(usual(fitted, &TOPICS), (Method::SameEvent, 0.6, 0.25));
    assert_eq!(usual(fitted, &STORIES), (Method::Coverage, 0.6, 0.0));
    // One who names the method gets that alone.
    assert_eq!(usual(fitted, &coverage), (Method::Coverage, 0.48, 0.0));
    assert_eq!(usual(fitted, &alone), (Method::AvgCos, 0.51, 0.0));

    let bare = Engine::new(support::tiny_model()).unwrap();
    assert_eq!(usual(&bare, &TOPICS), (Method::Coverage, 0.48, 0.0));
    let unknown = Options { second: Some("none"), ..STORIES }.resolve(&bare, MAX_LAST).unwrap_err();
    assert_eq!(unknown.problem, OptionProblem::NoUsual { method: "avg-cos" });
    let calibrated = Options { threshold: Some(Least::Calibrated), ..alone };
    let told = calibrated.resolve(&bare, MAX_LAST).unwrap_err().to_string();
    assert!(told.starts_with("`threshold`: the model has no threshold for avg-cos by cosine;"));

    let found = |threshold| [("coverage".to_owned(), threshold)].into();
    let rules = EventRules { topics: found(0.42), stories: found(0.55) };
    let own = Engine::new(support::with_sections(&support::served(), &[rules.fitted()])).unwrap();
    assert_eq!(usual(&own, &coverage), (Method::Coverage, 0.42, 0.0));
    assert_eq!(usual(&own, &STORIES), (Method::Coverage, 0.55, 0.0));
    assert_eq!(usual(&own, &TOPICS), (Method::SameEvent, 0.6, 0.25));
}

#[test]
fn a_text_that_joins_an_event_is_told_the_rarest_word_that_it_shares() {
    let options = Options { threshold: Some(Least::Number(0.2)), ..TOPICS };
    let settings = options.resolve(support::engine(), MAX_LAST).unwrap();
    let mut stream = Stream::new(support::engine(), settings).unwrap();
    let texts = ["the quake hits the town", "xyzzy", "quake shakes the town", "xyzzy york"];
    let items = texts.map(|text| Item { time: 0, text });
    let mut words = Vec::new();
    let tell = |_, reasons: Reasons<'_>| words.push(reasons.words().into_iter().next());
    stream.follow_with(&items, AddPolicy::All, || true, tell).unwrap();
    // Words later in the list of the tiny model are rarer, and one that is not listed is the rarest.
    let words: Vec<Option<&str>> = words.iter().map(Option::as_deref).collect();
    assert_eq!(words, [None, None, Some("town"), Some("xyzzy")]);
}

/// How many of some pairs a stream that takes up what is new alone takes for the same, where these opposites are
/// dropped.
fn same(engine: &Engine, pairs: &[[&str; 2]], opposites: Option<Opposites>) -> usize {
    let options = Options {
        second: Some("polarity-blend"),
        threshold: Some(Least::Calibrated),
        duplicate_score: Some(0.589),
        drop_opposed: opposites.is_some(),
        opposites,
        ..TOPICS
    };
    let settings = options.resolve(engine, MAX_LAST).unwrap();
    let is_same = |pair: &&[&str; 2]| {
        let mut stream = Stream::new(engine, settings).unwrap();
        let items = pair.map(|text| Item { time: 0, text });
        let mut decided = Vec::new();
        let tell = |decision: Decision, _: Reasons<'_>| decided.push(decision.duplicate);
        stream.follow_with(&items, AddPolicy::New, || true, tell).unwrap();
        decided[1]
    };
    pairs.iter().filter(is_same).count()
}

#[test]
fn facts_that_differ_in_a_name_are_kept_where_names_are_dropped() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
    let engine = Engine::open(model.as_ref(), &Default::default()).unwrap();
    let requests = include_str!("../../../../tests/data/requests.tsv").lines().skip(1);
    let (mut opposed, mut paraphrased) = (Vec::new(), Vec::new());
    for line in requests {
        let [label, _, part, one, other] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!()
        };
        match (part, label) {
            ("names", "opposed") => opposed.push([one, other]),
            ("names", _) => paraphrased.push([one, other]),
            _ => {}
        }
    }
    assert_eq!((opposed.len(), paraphrased.len()), (150, 150));
    let (names, others) = (Some(Opposites::Count), Some(Opposites::WithoutNames));
    for lost in [None, others] {
        assert!(
            same(&engine, &opposed, lost) >= 145,
            "{lost:?}: {}",
            same(&engine, &opposed, lost)
        );
    }
    assert!(same(&engine, &opposed, names) <= 2, "{}", same(&engine, &opposed, names));
    assert!(same(&engine, &paraphrased, names) >= 145, "{}", same(&engine, &paraphrased, names));
    let ignored = (Some(Opposites::Ignore), true);
    for (opposites, drop_opposed) in [(names, false), ignored] {
        let asked = Options { opposites, drop_opposed, ..TOPICS };
        let refused = asked.resolve(&engine, MAX_LAST).unwrap_err();
        assert_eq!((refused.option, refused.problem), ("opposites", OptionProblem::NoneDropped));
    }
}
