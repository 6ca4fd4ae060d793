//! `POST /similarity`: it answers what the engine answers.

use cognate::engine::Query;
use cognate::methods::{Kind, Method};
use serde_json::{Value, json};

use crate::support;
use crate::support::app::TestApp;

fn numbers(list: &Value) -> Vec<f32> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

const PAIRS: [(&str, &str); 4] = [
    ("The quake hits the city", "An earthquake shakes the town!"),
    ("new york", "NEW YORK"),
    ("zzz qqq", "the city"),
    ("o'neill hits 0", "über the new city"),
];

/// Methods that score pairs.
fn similarities() -> impl Iterator<Item = Method> {
    Method::ALL.iter().copied().filter(|method| method.info().kind == Kind::Similarity)
}

#[tokio::test]
async fn every_method_scores_what_the_engine_scores_bit_for_bit() {
    let (app, engine) = (TestApp::new(), support::engine());
    for method in similarities() {
        let body = json!({"pairs": PAIRS, "method": method.name()});
        let answer = app.ask("/similarity", body).await;
        let expected = engine.similarity(&PAIRS, &Query::new(method)).unwrap();
        assert_eq!(numbers(&answer["scores"]), expected.scores, "{}", method.name());
        assert_eq!(answer["unscored"], json!(expected.unscored));
        assert_eq!(answer["method"], method.name());
        assert_eq!(answer["measure"], expected.measure.name());
        assert_eq!(answer["fingerprint"], engine.model().fingerprint());
        assert_eq!(answer["model"], "tiny");
    }
}

/// Pairs may come by name, all or some, and their faults are found by name.
#[tokio::test]
async fn pairs_may_be_lists_or_objects() {
    let app = TestApp::strict();
    let named = |(a, b): (&str, &str)| json!({"b": b, "a": a});
    let [first, second, third, last] = PAIRS;
    let mixed = json!([named(first), second, named(third), named(last)]);
    let answer = app.ask("/similarity", json!({"pairs": mixed})).await;
    let listed = app.ask("/similarity", json!({"pairs": PAIRS})).await;
    assert_eq!(answer, listed);
    let refused = json!({"pairs": [named(first), ["quake", ""], named(third)], "oov": "error"});
    let problem = app.post("/similarity", refused.to_string()).await.refusal(422, "empty_text");
    let faults = problem["errors"].as_array().unwrap().iter().map(|fault| &fault["pointer"]);
    assert_eq!(faults.collect::<Vec<_>>(), ["/pairs/1/1", "/pairs/2/a"]);
    let refused = json!({"pairs": [second, named(third)], "oov": "error"}).to_string();
    let problem = app.post("/similarity", refused).await.refusal(422, "all_oov");
    assert_eq!(problem["detail"], "pairs[1].a has no known word");
    for wrong in
        [json!({"a": "x"}), json!({"a": "x", "b": "y", "id": 1}), json!({"a": 1, "b": "y"})]
    {
        let body = json!({"pairs": [first, wrong]}).to_string();
        let problem = app.post("/similarity", body).await.refusal(422, "invalid_field");
        let pointer = problem["errors"][0]["pointer"].as_str().unwrap();
        assert!(pointer.starts_with("/pairs/1"), "{problem}");
    }
}

#[tokio::test]
async fn names_of_methods_are_forgiving_and_auto_is_resolved() {
    let app = TestApp::new();
    for (asked, meant) in
        [("DynaMax", "dynamax-jaccard"), ("AVG_COS", "avg-cos"), ("idf-rank", "learned-idf")]
    {
        let answer =
            app.ask("/similarity", json!({"a": "quake", "b": "city", "method": asked})).await;
        assert_eq!(answer["method"], meant);
    }
    let answer = app.ask("/similarity", json!({"a": "quake", "b": "city", "method": null})).await;
    assert_eq!(answer["method"], support::engine().auto().name());
    let learned =
        app.ask("/similarity", json!({"a": "quake", "b": "city", "method": "learned-idf"})).await;
    assert_eq!(learned["measure"], "euclidean", "the one its weights were trained for");
}

#[tokio::test]
async fn related_is_at_or_above_the_threshold() {
    let app = TestApp::new();
    let body = json!({"pairs": PAIRS, "method": "jaccard", "threshold": 1.0});
    let answer = app.ask("/similarity", body).await;
    assert_eq!(answer["related"], json!([false, true, false, false]));
    assert_eq!(answer["threshold"], 1.0);
    let answer = app.ask("/similarity", json!({"a": "quake", "b": "city"})).await;
    assert!(answer.get("related").is_none() && answer.get("threshold").is_none());
}

#[tokio::test]
async fn a_threshold_comes_back_as_it_was_given() {
    let app = TestApp::new();
    let asked = json!({"a": "quake", "b": "quake", "threshold": 0.1});
    assert_eq!(app.ask("/similarity", asked).await["threshold"], json!(0.1));
    let score = app.ask("/similarity", json!({"a": "the quake", "b": "city"})).await;
    let same = json!({"a": "the quake", "b": "city", "threshold": score["scores"][0]});
    assert_eq!(app.ask("/similarity", same).await["related"], json!([true]), "{score}");
}
