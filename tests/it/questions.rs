//! What the four questions answer, and that it is what the engine answers.

use axum::body::Body;
use axum::http::Request;
use base64::Engine as _;
use cognate::engine::{Engine, Query, RankOptions};
use cognate::methods::{Kind, Method};
use serde_json::{Value, json};

use crate::http::TestApp;
use crate::support;

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
    assert!(answer.header("server-timing").starts_with("compute;dur=0."));
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

#[tokio::test]
async fn embeddings_come_as_numbers_or_as_their_bytes() {
    let (app, engine) = (TestApp::strict(), Engine::new(support::strict()).unwrap());
    let texts = ["the quake", "zzz qqq", "new york"];
    let body = |more: Value| {
        let mut body = json!({"texts": texts, "method": "avg-cos"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let expected = engine.embed(&texts, &Query::new(Method::AvgCos)).unwrap();
    let answer = app.ask("/embed", body(json!({}))).await;
    assert_eq!(numbers(&answer["embeddings"][0]), *expected.vectors[0].as_ref().unwrap());
    assert_eq!(answer["embeddings"][1], Value::Null, "never a vector of zeros");
    assert_eq!(answer["tokens"], json!([2, 2, 2]));
    assert_eq!(answer["known"], json!([2, 0, 2]));
    assert_eq!(answer["dimensions"], support::DIMS);
    let packed = app.ask("/embed", body(json!({"encoding": "base64"}))).await;
    let packing = base64::engine::general_purpose::STANDARD;
    let bytes = packing.decode(packed["embeddings"][2].as_str().unwrap()).unwrap();
    let unpacked: Vec<f32> =
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    assert_eq!(unpacked, *expected.vectors[2].as_ref().unwrap());
    let unit = app.ask("/embed", body(json!({"normalize": true}))).await;
    let length: f32 = numbers(&unit["embeddings"][0]).iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-6);
    let one = app.ask("/embed", json!({"texts": "new york", "method": "avg-cos"})).await;
    assert_eq!(one["embeddings"][0], answer["embeddings"][2]);
    let auto = app
        .post("/embed", json!({"texts": "new york", "oov": "error", "method": "sif"}).to_string());
    assert_eq!(auto.await.status, 200);
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
    let body = json!({"pairs": pairs, "method": "dynamax"}).to_string();
    let problem = app.post("/similarity", body).await.refusal(422, "empty_text");
    assert_eq!(problem["errors"][0]["pointer"], "/pairs/3777/1");
    assert_eq!(problem["detail"], "pairs[3777][1] is empty");
    let mut candidates = vec![json!("the quake hits the city ".repeat(8)); 4000];
    (candidates[3777], candidates[3900]) = (json!(" "), json!(""));
    let body = json!({"query": "new york", "candidates": candidates, "method": "dynamax"});
    let problem = app.post("/rank", body.to_string()).await.refusal(422, "empty_text");
    assert_eq!(problem["errors"][0]["pointer"], "/candidates/3777");
    let body = json!({"query": "", "candidates": candidates, "method": "dynamax"});
    let problem = app.post("/rank", body.to_string()).await.refusal(422, "empty_text");
    assert_eq!(problem["errors"][0]["pointer"], "/query");
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

#[tokio::test]
async fn methods_and_models_are_listed() {
    let app = TestApp::of(support::tiny_model(), |_| ());
    let listing = app.get("/methods").await.json();
    let entries = listing["methods"].as_array().unwrap();
    assert_eq!(entries.len(), Method::ALL.len());
    let entry = |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap().clone();
    assert_eq!(entry("avg-cos")["embeds"], true);
    assert_eq!(entry("wmd")["embeds"], false);
    assert_eq!(entry("learned-idf")["available"], false);
    assert!(entry("learned-idf")["reason"].as_str().unwrap().contains("cognate train"));
    let models = app.get("/models").await.json();
    let model = &models["models"][0];
    assert_eq!((&model["name"], &model["default"]), (&json!("tiny"), &json!(true)));
    assert_eq!((&model["words"], &model["dimensions"]), (&json!(12), &json!(20)));
    assert_eq!(model["licence"], "none needed");
    app.get("/methods?model=other").await.refusal(422, "unknown_model");
    app.get("/methods?modl=tiny").await.refusal(422, "invalid_field");
    assert_eq!(app.get("/methods?model=tiny").await.status, 200);
}
