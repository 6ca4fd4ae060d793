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

#[tokio::test]
async fn the_share_of_known_words_is_told_where_it_is_asked_for() {
    // This model has a vector for every word, some of them stand-ins, so that nothing is unscored.
    let app = TestApp::with_model(support::default_model(), |_| ());
    let pairs = json!([
        ["earthquake shakes Los Angeles", "qxzvkj shakes 地震です zzkqw"],
        ["quakes", "!!"],
    ]);
    let mut body = json!({"pairs": pairs});
    let silent = app.ask("/similarity", body.clone()).await;
    assert!(silent.get("known").is_none(), "{silent}");
    body["coverage"] = json!(true);
    let told = app.ask("/similarity", body).await;
    assert_eq!(told["scores"], silent["scores"]);
    assert_eq!(told["known"], json!([[1.0, 0.25], [1.0, 0.0]]), "a stand-in is no listed word");

    let mut body = json!({
        "query": "qxzvkj shakes", "candidates": ["earthquake", {"id": 7, "text": "qxzvkj"}],
        "top_k": 2,
    });
    let silent = app.ask("/rank", body.clone()).await;
    assert!(silent["query_known"] == 0.5 && silent["results"][0].get("known").is_none());
    body["coverage"] = json!(true);
    let told = app.ask("/rank", body.clone()).await;
    assert_eq!(told["query_known"], 0.5);
    let known = |told: &Value, index: u64| {
        let mut results = told["results"].as_array().unwrap().iter();
        results.find(|result| result["index"] == index).unwrap()["known"].clone()
    };
    assert_eq!((known(&told, 0), known(&told, 1)), (json!(1.0), json!(0.0)));
    // A method that reads tokens looks words up no further than it must; the share is the same.
    body["method"] = json!("jaccard");
    let told = app.ask("/rank", body).await;
    assert_eq!((known(&told, 0), known(&told, 1)), (json!(1.0), json!(0.0)));

    let pair = json!({"a": "qxzvkj shakes", "b": "earthquakes"});
    let explained = app.ask("/explain", pair).await;
    assert_eq!((&explained["a"]["known"], &explained["b"]["known"]), (&json!(0.5), &json!(1.0)));
}

#[tokio::test]
async fn shares_of_known_words_stay_with_their_texts_in_a_long_question() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    let text = |number: usize| if number.is_multiple_of(3) { "qxzvkj" } else { "earthquake city" };
    let share = |number: usize| if number.is_multiple_of(3) { 0.0 } else { 1.0 };
    let pairs: Vec<[&str; 2]> = (0..4_000).map(|number| [text(number), "town"]).collect();
    let body = json!({"pairs": pairs, "coverage": true, "method": "wmd"});
    let told = app.ask("/similarity", body).await;
    let expected: Vec<[f64; 2]> = (0..4_000).map(|number| [share(number), 1.0]).collect();
    assert_eq!(told["known"], json!(expected));
    let candidates: Vec<&str> = (0..4_000).map(text).collect();
    let body =
        json!({"query": "town", "candidates": candidates, "coverage": true, "method": "wmd"});
    let told = app.ask("/rank", body).await;
    for result in told["results"].as_array().unwrap() {
        assert_eq!(result["known"], share(result["index"].as_u64().unwrap() as usize));
    }
}
