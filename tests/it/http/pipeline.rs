//! What holds for every endpoint that computes: who answers, and questions that are cut into parts.

use axum::body::Body;
use axum::http::Request;
use cognate::engine::{Query, RankOptions};
use cognate::methods::Method;
use serde_json::{Value, json};

use crate::support;
use crate::support::app::TestApp;

fn numbers(list: &Value) -> Vec<f32> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

#[tokio::test]
async fn every_answer_says_who_gave_it() {
    let app = TestApp::new();
    let request = |id: &str| {
        Request::post("/similarity")
            .header("content-type", "application/json")
            .header("x-request-id", id)
            .body(Body::from(r#"{"a":"quake","b":"city"}"#))
            .unwrap()
    };
    let answer = app.send(request("shop-17.a_B")).await;
    assert_eq!(answer.header("x-request-id"), "shop-17.a_B");
    assert_eq!(answer.header("x-model-fingerprint"), support::engine().model().fingerprint());
    let took = answer.header("server-timing").strip_prefix("compute;dur=").unwrap();
    let (whole, fraction) = took.split_once('.').unwrap();
    assert!(whole.parse::<u32>().is_ok() && fraction.len() == 3, "{took}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("content-security-policy"), "default-src 'none'");
    for odd in ["a b", "ü", &"x".repeat(65)] {
        let id = app.send(request(odd)).await.header("x-request-id").to_owned();
        assert!(id != odd && id.len() == 24, "{id}");
    }
    let one = app.get("/health").await.header("x-request-id").to_owned();
    assert_ne!(one, app.get("/health").await.header("x-request-id"));
}

/// Long questions go to the pool and are cut into parts; the answer must not show it.
#[tokio::test]
async fn a_long_question_is_answered_as_its_items_are_singly() {
    let app = TestApp::with(|settings| settings.compute_threads = Some(3));
    let words = support::WORDS;
    let mut chance = support::Chance(7);
    let mut text =
        || (0..12).map(|_| words[chance.below(words.len())]).collect::<Vec<_>>().join(" ");
    let pairs: Vec<(String, String)> = (0..3000).map(|_| (text(), text())).collect();
    let engine = support::engine();
    for method in [Method::DynamaxJaccard, Method::AvgCos, Method::Wmd] {
        let answer = app.ask("/similarity", json!({"pairs": pairs, "method": method.name()})).await;
        let expected = engine.similarity(&pairs, &Query::new(method)).unwrap();
        assert_eq!(numbers(&answer["scores"]), expected.scores, "{}", method.name());
    }
    let candidates: Vec<&String> = pairs.iter().map(|(a, _)| a).collect();
    let body =
        json!({"query": "the quake", "candidates": candidates, "method": "wrd", "top_k": 20});
    let answer = app.ask("/rank", body).await;
    let options = RankOptions { query: Query::new(Method::Wrd), top_k: Some(20), min_score: None };
    let best = engine.rank_best("the quake", &candidates, &options).unwrap();
    let got: Vec<u64> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["index"].as_u64().unwrap())
        .collect();
    assert_eq!(got, best.results.iter().map(|one| one.index as u64).collect::<Vec<_>>());
}

/// Faults far into a long question have the place they have in the whole of it.
#[tokio::test]
async fn a_fault_in_a_late_part_has_its_own_place() {
    // On a busy machine the parts before it may take a while.
    let app = TestApp::with(|settings| settings.compute_deadline_ms = 60_000);
    let mut pairs = vec![json!(["the quake hits the city ".repeat(8), "new york"]); 4000];
    pairs[3777] = json!(["quake", " "]);
    let body = json!({"pairs": pairs, "method": "dynamax", "oov": "error"}).to_string();
    let problem = app.post("/similarity", body).await.refusal(422, "empty_text");
    assert_eq!(problem["errors"][0]["pointer"], "/pairs/3777/1");
    assert_eq!(problem["detail"], "pairs[3777][1] is empty");
    let mut candidates = vec![json!("the quake hits the city ".repeat(8)); 4000];
    (candidates[3777], candidates[3900]) = (json!(" "), json!(""));
    let mut body = json!({"query": "new york", "candidates": candidates, "method": "dynamax"});
    let listed = app.ask("/rank", body.clone()).await;
    assert_eq!(
        (&listed["unscored"], &listed["reasons"]),
        (&json!([3777, 3900]), &json!(["empty", "empty"]))
    );
    body["oov"] = json!("error");
    let problem = app.post("/rank", body.to_string()).await.refusal(422, "empty_text");
    assert_eq!(problem["errors"][0]["pointer"], "/candidates/3777");
    let body = json!({"query": "", "candidates": candidates, "method": "dynamax"});
    let problem = app.post("/rank", body.to_string()).await.refusal(422, "empty_text");
    assert_eq!(problem["errors"][0]["pointer"], "/query");
}
