//! `POST /explain`: what words add up to the score.

use cognate::methods::{Kind, Method};
use serde_json::json;

use crate::support::app::TestApp;

/// Methods that score pairs.
fn similarities() -> impl Iterator<Item = Method> {
    Method::ALL.iter().copied().filter(|method| method.info().kind == Kind::Similarity)
}

#[tokio::test]
async fn an_explanation_adds_up_to_the_score() {
    let app = TestApp::strict();
    for method in similarities() {
        let texts = json!({"a": "the quake hits zzz", "b": "an earthquake hits the town", "method": method.name()});
        let score = app.ask("/similarity", texts.clone()).await["scores"][0].as_f64().unwrap();
        let answer = app.ask("/explain", texts).await;
        assert_eq!(answer["score"].as_f64().unwrap(), score);
        assert!(answer["sentence"].as_str().unwrap().contains(method.name()), "{answer}");
        let side = |side: &str, kind: &str| answer[side][kind].as_array().unwrap().clone();
        assert_eq!(answer["matrix"].as_array().unwrap().len(), side("a", "words").len());
        if answer["adds_up"] == true {
            let all = ["a", "b"].map(|name| [side(name, "words"), side(name, "unknown")].concat());
            let sum: f64 = all.concat().iter().filter_map(|word| word["share"].as_f64()).sum();
            assert!((sum - score).abs() < 1e-5, "{}: {sum} for {score}", method.name());
        }
    }
    let fuzzy = json!({"a": "quake", "b": "the city", "method": "dynamax"});
    let answer = app.ask("/explain", fuzzy).await;
    assert_eq!(answer["memberships"]["b"].as_array().unwrap().len(), 2);
    let unknown = app.ask("/explain", json!({"a": "zzz", "b": "quake", "method": "avg-cos"})).await;
    assert_eq!(unknown["unscored"], true);
}
