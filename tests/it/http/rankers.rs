//! Trained rankers over HTTP: they rank, they explain what they read, and nothing else.

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::methods::ranker::Encoder;
use cognate_server::http::{App, NamedModel, Settings};
use serde_json::{Value, json};

use crate::support;
use crate::support::app::TestApp;

const QUERY: &str = "quake hits city";
const POSTS: [&str; 4] =
    ["an earthquake shakes the town", "new york", "the quake hits the city", "the the the"];

fn question(method: &str) -> Value {
    json!({"query": QUERY, "candidates": POSTS, "method": method})
}

#[tokio::test]
async fn a_ranker_ranks_by_its_name_and_by_its_other_name() {
    let app = TestApp::new();
    let answer = app.ask("/rank", question("patt")).await;
    let expected = support::engine().rank(QUERY, &POSTS, &Query::new(Method::Patt)).unwrap();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), POSTS.len());
    for (result, ranked) in results.iter().zip(&expected.results) {
        assert_eq!(result["index"], ranked.index);
        assert_eq!(result["score"].as_f64().unwrap() as f32, ranked.score);
        assert!(ranked.score <= 0.0);
    }
    for name in ["samcnn", "samCNN", "PATT"] {
        assert_eq!(app.ask("/rank", question(name)).await, answer, "{name}");
    }
    let mut best = question("patt");
    best["top_k"] = json!(2);
    assert_eq!(app.ask("/rank", best).await["results"], json!(results[..2]));
}

#[tokio::test]
async fn a_ranker_refuses_what_it_cannot_do() {
    let app = TestApp::new();
    let pair = json!({"a": QUERY, "b": POSTS[0], "method": "patt"}).to_string();
    let problem = app.post("/similarity", pair).await.refusal(422, "method_only_ranks");
    assert_eq!(problem["errors"][0]["pointer"], "/method");
    let texts = json!({"texts": POSTS, "method": "patt"}).to_string();
    app.post("/embed", texts).await.refusal(422, "method_cannot_embed");
    let mut euclidean = question("patt");
    euclidean["measure"] = json!("euclidean");
    app.post("/rank", euclidean.to_string()).await.refusal(422, "measure_not_supported");
    for other in ["bicnn", "qatt"] {
        let refused = app.post("/rank", question(other).to_string()).await;
        let problem = refused.refusal(422, "method_unavailable");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("trained for `patt`, not for"), "{detail}");
    }
}

#[tokio::test]
async fn listings_tell_which_ranker_there_is() {
    let listing = TestApp::new().get("/methods").await.json();
    let entry = |name: &str| {
        let entries = listing["methods"].as_array().unwrap();
        entries.iter().find(|entry| entry["name"] == name).unwrap().clone()
    };
    let patt = entry("patt");
    assert_eq!((&patt["kind"], &patt["available"]), (&json!("ranker"), &json!(true)));
    assert_eq!(patt["range"], json!([null, 0.0]));
    assert_eq!(entry("qatt")["available"], false);
}

/// An explanation has a word of the query, and the words of the post that it was read from.
#[tokio::test]
async fn an_explanation_shows_what_each_word_of_the_query_was_read_from() {
    for encoder in [Encoder::Qatt, Encoder::Patt] {
        let app = TestApp::with_model(support::ranking(encoder, 1), |_| ());
        let post = "the quake hits zzz town";
        let body = json!({"a": "quake zzz city", "b": post, "method": encoder.name()});
        let answer = app.ask("/explain", body).await;
        let ranked =
            json!({"query": "quake zzz city", "candidates": [post], "method": encoder.name()});
        let ranked = app.ask("/rank", ranked).await;
        assert_eq!(answer["score"], ranked["results"][0]["score"]);
        assert_eq!(answer["adds_up"], false);
        let attention = answer["attention"].as_array().unwrap();
        let tokens: Vec<&Value> = attention.iter().map(|word| &word["token"]).collect();
        assert_eq!(tokens, ["quake", "city"], "a made vector is not read");
        for word in attention {
            let place = word["word"].as_u64().unwrap() as usize;
            assert_eq!(answer["a"]["words"][place]["token"], word["token"]);
            let to = word["to"].as_array().unwrap();
            assert_eq!(to.len(), 4);
            for read in to {
                let place = read["word"].as_u64().unwrap() as usize;
                assert_eq!(answer["b"]["words"][place]["token"], read["token"]);
                assert_eq!(read.get("cosine").is_some(), encoder == Encoder::Patt, "{read}");
            }
        }
        let sentence = answer["sentence"].as_str().unwrap();
        let chance = answer["score"].as_f64().unwrap().exp();
        let start = format!("{} gives the post a chance of {chance:.2}, a score", encoder.name());
        assert!(sentence.starts_with(&start), "{sentence}");
        assert!(sentence.contains("was read from"), "{sentence}");
    }
    let app = TestApp::with_model(support::ranking(Encoder::Bicnn, 1), |_| ());
    let body = json!({"a": QUERY, "b": POSTS[0], "method": "bicnn"});
    let answer = app.ask("/explain", body).await;
    assert!(answer.get("attention").is_none());
    assert!(answer["sentence"].as_str().unwrap().starts_with("bicnn scores -"), "{answer}");
}

#[tokio::test]
async fn the_document_offers_explanations_by_rankers() {
    let served = TestApp::new().get("/openapi.json").await.json();
    let offered = |name: &str, method: &str| {
        let names = served["components"]["schemas"][name]["enum"].as_array().unwrap();
        names.iter().any(|name| name == method)
    };
    assert!(offered("ExplainMethod", "patt") && offered("RankMethod", "patt"));
    assert!(!offered("PairMethod", "patt") && !offered("VectorMethod", "patt"));
    assert!(!offered("ExplainMethod", "qatt") && !offered("RankMethod", "bicnn"));
}

#[tokio::test]
async fn another_ranker_is_another_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let write = |encoder, seed| {
        let model = support::tiny_model();
        let fitted = support::ranker(encoder, seed);
        let mut draft = cognate::model::writer::Draft::from_model(&model);
        fitted.put_into(&mut draft);
        draft.write(&path).unwrap();
    };
    write(Encoder::Patt, 1);
    let model = vec![NamedModel { name: "default".to_owned(), path: path.clone() }];
    let app = App::new(Settings { model, ..Settings::default() }).unwrap();
    app.reload().await.unwrap();
    let app = TestApp::over(app);
    let first = app.ask("/rank", question("patt")).await;
    write(Encoder::Patt, 2);
    app.app.reload().await.unwrap();
    let second = app.ask("/rank", question("patt")).await;
    assert_ne!(first["fingerprint"], second["fingerprint"]);
    let scores = |answer: &Value| {
        let results = answer["results"].as_array().unwrap();
        results.iter().map(|result| result["score"].to_string()).collect::<Vec<_>>()
    };
    assert_ne!(scores(&first), scores(&second));
    let engine = Engine::open(&path, &support::full()).unwrap();
    let expected = engine.rank(QUERY, &POSTS, &Query::new(Method::Patt)).unwrap();
    assert_eq!(second["results"][0]["score"].as_f64().unwrap() as f32, expected.results[0].score);
    write(Encoder::Qatt, 2);
    app.app.reload().await.unwrap();
    app.post("/rank", question("patt").to_string()).await.refusal(422, "method_unavailable");
    assert_eq!(app.ask("/rank", question("qatt")).await["results"].as_array().unwrap().len(), 4);
}
