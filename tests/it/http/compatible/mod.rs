//! The dialects of other servers: each answers what our own routes answer, in its own form.

mod surface;

use axum::body::Body;
use axum::http::Request;
use cognate_server::http::dialect::StandIn;
use serde_json::{Value, json};

use crate::support::app::{Answer, TestApp};

const TEXTS: [&str; 3] = ["the quake hits the city", "new york", "a town"];

/// Posts as clients do that do not say what they send.
async fn post(app: &TestApp, path: &str, body: &Value) -> Answer {
    app.send(Request::post(path).body(Body::from(body.to_string())).unwrap()).await
}

async fn ask(app: &TestApp, path: &str, body: Value) -> Value {
    let answer = post(app, path, &body).await;
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer.json()
}

/// The vectors that `/embed` gives.
async fn native(app: &TestApp, method: &str, normalize: bool) -> Value {
    let body = json!({"texts": TEXTS, "method": method, "normalize": normalize});
    app.ask("/embed", body).await["embeddings"].clone()
}

#[tokio::test]
async fn vectors_are_those_of_embed_in_every_dialect() {
    let app = TestApp::new();
    for method in ["auto", "avg-cos", "sif"] {
        let model = format!("tiny:{method}");
        let (unit, as_they_are) =
            (native(&app, method, true).await, native(&app, method, false).await);
        let openai = ask(&app, "/v1/embeddings", json!({"input": TEXTS, "model": model})).await;
        let data = openai["data"].as_array().unwrap();
        let vectors: Vec<&Value> = data.iter().map(|each| &each["embedding"]).collect();
        assert_eq!(json!(vectors), unit);
        assert!(data.iter().enumerate().all(|(index, each)| each["index"] == index));
        assert_eq!(openai["usage"]["total_tokens"], 9);
        assert_eq!(openai["model"], "tiny");
        let ollama = ask(&app, "/api/embed", json!({"input": TEXTS, "model": model})).await;
        assert_eq!(ollama["embeddings"], unit);
        let body = json!({"prompt": TEXTS[0], "model": model});
        let ollama = ask(&app, "/api/embeddings", body).await;
        assert_eq!(ollama["embedding"], as_they_are[0]);
        let named = |path: &str| format!("/m/tiny/{method}{path}");
        let inputs = json!({"inputs": TEXTS, "some field": "of a newer client"});
        assert_eq!(ask(&app, &named("/embed"), inputs.clone()).await, unit);
        assert_eq!(ask(&app, &named(""), inputs.clone()).await, as_they_are);
        assert_eq!(ask(&app, &named("/"), inputs).await, as_they_are);
        let weaviate = ask(&app, &named("/vectors"), json!({"text": "", "texts": TEXTS})).await;
        assert_eq!(weaviate["vectors"], as_they_are);
        let weaviate = ask(&app, &named("/vectors"), json!({"text": TEXTS[1]})).await;
        assert_eq!(weaviate["vector"], as_they_are[1]);
        // The path has the last word, so that a client may go on naming what it was written for.
        let body = json!({"input": TEXTS, "model": "text-embedding-3-small"});
        assert_eq!(ask(&app, &named("/v1/embeddings"), body).await, openai);
    }
    let one = ask(&app, "/", json!({"inputs": TEXTS[0]})).await;
    assert_eq!(one, json!([native(&app, "auto", false).await[0]]));
}

#[tokio::test]
async fn base64_and_fewer_dimensions_are_the_same_numbers() {
    let app = TestApp::new();
    let floats = ask(&app, "/v1/embeddings", json!({"input": TEXTS[0]})).await;
    let body = json!({"input": {"text": TEXTS[0]}, "encoding_format": "base64"});
    let base64 = ask(&app, "/v1/embeddings", body).await;
    let body = json!({"texts": TEXTS[0], "encoding": "base64", "normalize": true});
    let ours = app.ask("/embed", body).await;
    assert_eq!(base64["data"][0]["embedding"], ours["embeddings"][0]);
    let few = ask(&app, "/v1/embeddings", json!({"input": TEXTS[0], "dimensions": 2})).await;
    let numbers = |answer: &Value| -> Vec<f64> {
        let vector = answer["data"][0]["embedding"].as_array().unwrap();
        vector.iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let (few, all) = (numbers(&few), numbers(&floats));
    assert_eq!(few.len(), 2);
    assert!((few[0].hypot(few[1]) - 1.0).abs() < 1e-6);
    assert!((few[0] * all[1] - few[1] * all[0]).abs() < 1e-6, "the direction is that of the first");
    let zero = ask(&app, "/v1/embeddings", json!({"input": TEXTS[0], "dimensions": 0})).await;
    assert_eq!(zero, floats, "0 stands for all");
    let most = all.len() + 1;
    let answer = post(&app, "/v1/embeddings", &json!({"input": "a", "dimensions": most})).await;
    assert_eq!(answer.json()["error"]["code"], "out_of_range");
}

/// Clients of these servers cannot take `null`.
#[tokio::test]
async fn every_text_has_a_vector() {
    let body = json!({"input": ["zzz qqq", "", "the quake"]});
    for (stand_in, zero) in [(StandIn::Zero, true), (StandIn::Hash, false), (StandIn::Auto, true)] {
        let app = TestApp::with_model(crate::support::strict(), |settings| {
            settings.dialect_unknown = stand_in
        });
        let answer = ask(&app, "/api/embed", body.clone()).await;
        let vectors = answer["embeddings"].as_array().unwrap();
        for vector in &vectors[..2] {
            let nothing = vector.as_array().unwrap().iter().all(|number| number == 0.0);
            assert_eq!(nothing, zero, "{stand_in:?}: {vector}");
        }
        assert_eq!(vectors[0] == vectors[1], zero, "unlike texts have unlike vectors");
        let native = json!({"texts": body["input"], "normalize": true});
        let native = app.ask("/embed", native).await;
        assert_eq!(native["embeddings"][0], Value::Null);
        assert_eq!(native["embeddings"][2], vectors[2]);
    }
    let app = TestApp::with_model(crate::support::strict(), |settings| {
        settings.dialect_unknown = StandIn::Error;
    });
    let answer = post(&app, "/api/embed", &body).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("all_oov")));
    // A model that makes vectors of unknown words makes them of unknown texts.
    let made = ask(&TestApp::new(), "/api/embed", json!({"input": ""})).await;
    assert!(made["embeddings"][0].as_array().unwrap().iter().all(|number| number != 0.0));
}

#[tokio::test]
async fn what_stands_for_a_missing_vector_can_be_asked_for() {
    let app = TestApp::with_model(crate::support::strict(), |_| ());
    let embed = |unknown: &str| json!({"texts": ["zzz", "the quake"], "unknown": unknown});
    let vector = |answer: &Value| answer["embeddings"][0].clone();
    assert_eq!(vector(&app.ask("/embed", embed("null")).await), Value::Null);
    let zero = app.ask("/embed", embed("zero")).await;
    assert!(vector(&zero).as_array().unwrap().iter().all(|number| number == 0.0));
    assert_eq!((&zero["unscored"], &zero["reasons"]), (&json!([0]), &json!(["unknown"])));
    let hash = app.ask("/embed", embed("hash")).await;
    let length: f64 =
        vector(&hash).as_array().unwrap().iter().map(|n| n.as_f64().unwrap().powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    app.post("/embed", embed("error").to_string()).await.refusal(422, "all_oov");
    app.post("/embed", embed("auto").to_string()).await.refusal(422, "invalid_field");
}

#[tokio::test]
async fn relevances_are_the_scores_of_rank_in_its_order() {
    let app = TestApp::new();
    let methods = app.get("/methods").await.json()["methods"].as_array().unwrap().clone();
    let documents = json!(["new york", {"text": "an earthquake shakes the town"}, "", "the quake"]);
    for method in ["auto", "avg-cos", "dynamax", "bm25", "ql", "rm3"] {
        let candidates = json!(["new york", "an earthquake shakes the town", "", "the quake"]);
        let body = json!({"query": "a quake", "candidates": candidates, "method": method});
        let answer = app.ask("/rank", body).await;
        let named = |each: &&Value| each["name"] == answer["method"];
        let range = methods.iter().find(named).unwrap()["range"].clone();
        let ours = answer["results"].clone();
        let order = |results: &Value| -> Vec<u64> {
            results.as_array().unwrap().iter().map(|it| it["index"].as_u64().unwrap()).collect()
        };
        let mut body = json!({
            "model": format!("tiny:{method}"), "query": "a quake", "documents": documents,
            "rank_fields": ["title"], "return_documents": true,
        });
        let first = ask(&app, "/rerank", body.clone()).await;
        assert_eq!(order(&first["results"]), order(&ours), "{method}");
        for path in ["/v1/rerank", "/v2/rerank", "/v1/reranking", "/reranking"] {
            assert_eq!(ask(&app, path, body.clone()).await["results"], first["results"], "{path}");
        }
        for (result, ours) in
            std::iter::zip(first["results"].as_array().unwrap(), ours.as_array().unwrap())
        {
            let (score, relevance) = (&ours["score"], result["relevance_score"].as_f64().unwrap());
            let score = score.as_f64().unwrap();
            let expected = match (range[0].as_f64(), range[1].as_f64()) {
                // Whatever the range is, what cannot be scored is least relevant.
                _ if ours["index"] == 2 => 0.0,
                (Some(low), Some(high)) => (score - low) / (high - low),
                (None, Some(high)) => (score - high).exp(),
                _ => score,
            };
            assert!((relevance - expected).abs() < 1e-6, "{method}: {relevance} {score}");
        }
        assert_eq!(first["results"][0]["document"]["text"], candidates[order(&ours)[0] as usize]);
        body["top_n"] = json!(2);
        assert_eq!(
            ask(&app, "/rerank", body.clone()).await["results"].as_array().unwrap().len(),
            2
        );
        body["top_n"] = json!(0);
        assert_eq!(ask(&app, "/rerank", body.clone()).await["results"], first["results"]);
        // Voyage's clients look for `data`, and for a document as a string.
        body["top_k"] = Value::Null;
        let voyage = ask(&app, "/v1/rerank", body.clone()).await;
        assert_eq!(order(&voyage["data"]), order(&ours));
        assert_eq!(voyage["data"][0]["document"], candidates[order(&ours)[0] as usize]);
        // Infinity's clients say what scores they want, and take a document as a string.
        body.as_object_mut().unwrap().remove("top_k");
        body["raw_scores"] = json!(false);
        let infinity = ask(&app, "/rerank", body.clone()).await;
        assert_eq!(infinity["object"], "rerank");
        assert_eq!(infinity["results"][0]["document"], candidates[order(&ours)[0] as usize]);
        // A bare list is never shortened, and raw scores are those of `/rank`.
        let body = json!({"query": "a quake", "texts": candidates, "raw_scores": true, "top_n": 1});
        let tei = ask(&app, &format!("/m/tiny/{method}/rerank"), body).await;
        assert_eq!(tei, ours, "{method}");
    }
}

/// A calibrated model says how likely it is that a document belongs to the query.
#[tokio::test]
async fn a_calibrated_model_gives_probabilities() {
    let app = TestApp::with_model(crate::support::default_model(), |_| ());
    let documents = ["the quake", "new york", "an earthquake hits the city", "a town"];
    let relevances = async |relevance: Value| {
        let mut body =
            json!({"query": "the quake hits", "documents": documents, "model": "tiny:avg-cos"});
        if !relevance.is_null() {
            body["relevance"] = relevance;
        }
        let answer = ask(&app, "/v2/rerank", body).await;
        let results = answer["results"].as_array().unwrap().clone();
        results.iter().map(|it| it["relevance_score"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (usual, probability) =
        (relevances(Value::Null).await, relevances(json!("probability")).await);
    assert_eq!(usual, probability);
    // Clients sort again by the relevance, so no two scores share one.
    assert!(usual.is_sorted_by(|one, other| one > other), "{usual:?}");
    assert_ne!(usual, relevances(json!("score")).await);
    let bare = TestApp::new();
    let body = json!({"query": "a", "documents": ["the quake"], "relevance": "probability"});
    let answer = post(&bare, "/v2/rerank", &body).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("not_calibrated")));
}

#[tokio::test]
async fn spans_tell_which_words_speak_for_a_document() {
    let app = TestApp::new();
    let spans = |spans: Value| {
        json!({
            "query": "the quake hits the city", "model": "tiny:dynamax",
            "documents": ["new york", "in new york: quake hits city", ""],
            "relevant_spans": spans,
        })
    };
    let answer = ask(&app, "/v2/rerank", spans(json!({"mode": "enabled"}))).await;
    let results = answer["results"].as_array().unwrap();
    let best = results.iter().find(|result| result["index"] == 1).unwrap();
    let span = &best["relevant_spans"][0];
    let (start, end) = (span["start"].as_u64().unwrap(), span["end"].as_u64().unwrap());
    assert_eq!(&"in new york: quake hits city"[start as usize..end as usize], "quake hits city");
    assert!((0.1..=1.0).contains(&span["score"].as_f64().unwrap()));
    let empty = results.iter().find(|result| result["index"] == 2).unwrap();
    assert_eq!(empty["relevant_spans"], json!([]));
    let off = ask(&app, "/v2/rerank", spans(json!({"mode": "disabled"}))).await;
    assert!(off["results"][0].get("relevant_spans").is_none());
    let none = spans(json!({"mode": "enabled", "threshold": 1.1}));
    assert_eq!(ask(&app, "/v2/rerank", none).await["results"][0]["relevant_spans"], json!([]));
    // What a method does not divide into words has no spans, rather than empty ones.
    let mut whole = spans(json!({"mode": "enabled"}));
    whole["model"] = json!("tiny:wmd");
    let answer = post(&app, "/v2/rerank", &whole).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["code"]),
        (400, &json!("method_unavailable"))
    );
    let most = json!({"query": "a", "documents": vec!["the quake"; 101], "relevant_spans": {"mode": "enabled"}});
    let answer = post(&app, "/v2/rerank", &most).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("too_many_items")));
}

#[tokio::test]
async fn scores_of_pairs_are_those_of_similarity() {
    let app = TestApp::new();
    for method in ["auto", "avg-cos", "dynamax", "wmd"] {
        let pairs = json!([["the quake", "new york"], ["the quake", ""], ["the quake", "a town"]]);
        let ours = app.ask("/similarity", json!({"pairs": pairs, "method": method})).await;
        let ours = ours["scores"].clone();
        let others = json!(["new york", "", "a town"]);
        let sentences = json!({"inputs": {"source_sentence": "the quake", "sentences": others}});
        for path in ["/similarity", ""] {
            let path = format!("/m/tiny/{method}{path}");
            assert_eq!(ask(&app, &path, sentences.clone()).await, ours, "{path}");
        }
        let model = format!("tiny:{method}");
        for (first, second) in [("queries", "documents"), ("text_1", "text_2"), ("data_1", "items")]
        {
            for one in [
                json!("the quake"),
                json!(["the quake"]),
                json!(["the quake", "the quake", "the quake"]),
            ] {
                let body = json!({"model": model, first: one, second: others});
                let answer = ask(&app, "/v1/score", body).await;
                let scores: Vec<&Value> =
                    answer["data"].as_array().unwrap().iter().map(|each| &each["score"]).collect();
                assert_eq!(json!(scores), ours, "{method} {one}");
            }
        }
    }
    let wrong = [
        (json!({"queries": ["a", "b"], "documents": ["a", "b", "c"]}), "queries"),
        (json!({"queries": "a", "text_1": "a", "documents": "b"}), "text_1"),
        (json!({"queries": "a", "documents": [[1, 2]]}), "documents"),
    ];
    for (body, param) in wrong {
        let answer = post(&app, "/score", &body).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["param"]),
            (400, &json!(param))
        );
    }
}
