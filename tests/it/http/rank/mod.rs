//! `POST /rank`: candidates with their names and texts given back.

mod candidates;
mod fuse;
mod likes;
mod page;
mod queries;
mod refusals;

use cognate::engine::{Engine, Query, RankOptions};
use cognate::methods::Method;
use serde_json::{Value, json};

use crate::support;
use crate::support::app::TestApp;

/// Short posts of words that are known and words that are not; a few are empty.
pub(super) fn posts(count: usize, seed: u64) -> Vec<String> {
    let mut chance = support::Chance(seed);
    let mut post = |_| {
        let length = chance.below(9);
        let word = |_| match chance.below(5) {
            0 => format!("unlisted{}", chance.below(50)),
            _ => support::WORDS[chance.below(support::WORDS.len())].to_owned(),
        };
        (0..length).map(word).collect::<Vec<_>>().join(" ")
    };
    (0..count).map(&mut post).collect()
}

/// What stands in a field of each result.
fn each(answer: &Value, field: &str) -> Vec<Value> {
    let results = answer["results"].as_array().unwrap();
    results.iter().map(|result| result[field].clone()).collect()
}

/// A question with more fields.
fn with(body: &Value, more: Value) -> Value {
    let mut body = body.clone();
    let fields = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    body
}

#[tokio::test]
async fn ranking_is_the_engines_with_names_and_texts_given_back() {
    let (app, engine) = (TestApp::strict(), Engine::new(support::strict()).unwrap());
    let candidates = ["the town", "zzz qqq", "an earthquake", "quake hits city", "new york"];
    let body = json!({
        "query": "a quake hits the city",
        "candidates": [
            "the town", {"id": "nothing", "text": "zzz qqq"}, {"id": 7, "text": "an earthquake"},
            {"text": "quake hits city"}, "new york",
        ],
        "method": "dynamax", "return_text": true,
    });
    let answer = app.ask("/rank", body.clone()).await;
    let query = Query::new(Method::DynamaxJaccard);
    let expected = engine.rank("a quake hits the city", &candidates, &query).unwrap();
    let results = answer["results"].as_array().unwrap();
    for (result, ranked) in results.iter().zip(&expected.results) {
        assert_eq!(result["index"], ranked.index);
        assert_eq!(result["score"].as_f64().unwrap() as f32, ranked.score);
        assert_eq!(result["text"], candidates[ranked.index]);
    }
    let last = results.last().unwrap();
    assert_eq!((last["index"].as_u64(), &last["id"]), (Some(1), &json!("nothing")));
    assert_eq!(answer["unscored"], json!([1]));
    assert!(results.iter().any(|result| result["id"] == 7));
    let mut few = body;
    few["top_k"] = json!(2);
    few["min_score"] = json!(0.01);
    few["return_text"] = json!(false);
    let answer = app.ask("/rank", few).await;
    let options = RankOptions { query, top_k: Some(2), min_score: Some(0.01) };
    let best = engine.rank_best("a quake hits the city", &candidates, &options).unwrap();
    let indexes: Vec<_> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["index"].clone())
        .collect();
    assert_eq!(json!(indexes), json!(best.results.iter().map(|one| one.index).collect::<Vec<_>>()));
    assert!(answer["results"][0].get("text").is_none());
}

#[tokio::test]
async fn the_least_score_may_be_the_threshold_that_the_model_brings() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    let mut body = json!({
        "query": "Quake hits L.A.!!",
        "candidates": ["Cat naps on sofa", "Earthquake shakes Los Angeles", "Quakes in California"],
        "min_score": "calibrated",
    });
    let wanted = app.ask("/rank", body.clone()).await;
    body.as_object_mut().unwrap().remove("min_score");
    let all = app.ask("/rank", body.clone()).await;
    let pair = json!({"a": "x", "b": "y", "threshold": "calibrated"});
    let threshold = app.ask("/similarity", pair).await["threshold"].as_f64().unwrap();
    let reaching: Vec<&Value> = all["results"].as_array().unwrap().iter().collect();
    let reaching: Vec<&Value> =
        reaching.into_iter().filter(|result| result["score"].as_f64() >= Some(threshold)).collect();
    assert!(!reaching.is_empty() && reaching.len() < 3, "{all} {threshold}");
    assert_eq!(wanted["results"].as_array().unwrap().iter().collect::<Vec<_>>(), reaching);

    body["min_score"] = json!("calibrated");
    let problem = TestApp::new().post("/rank", body.to_string()).await;
    let problem = problem.refusal(422, "not_calibrated");
    assert_eq!(problem["errors"][0]["pointer"], "/min_score");
}
