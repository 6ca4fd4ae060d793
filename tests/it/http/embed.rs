//! `POST /embed`: vectors as numbers, and as their bytes.

use base64::Engine as _;
use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use serde_json::{Value, json};

use crate::support;
use crate::support::app::TestApp;

fn numbers(list: &Value) -> Vec<f32> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
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
    assert_eq!(numbers(&answer["embeddings"][0]), expected.get(0).unwrap());
    assert_eq!(answer["embeddings"][1], Value::Null, "never a vector of zeros");
    assert_eq!(answer["tokens"], json!([2, 2, 2]));
    assert_eq!(answer["known"], json!([2, 0, 2]));
    assert_eq!(answer["dimensions"], support::DIMS);
    let packed = app.ask("/embed", body(json!({"encoding": "base64"}))).await;
    let packing = base64::engine::general_purpose::STANDARD;
    let bytes = packing.decode(packed["embeddings"][2].as_str().unwrap()).unwrap();
    let unpacked: Vec<f32> =
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    assert_eq!(unpacked, expected.get(2).unwrap());
    let unit = app.ask("/embed", body(json!({"normalize": true}))).await;
    let length: f32 = numbers(&unit["embeddings"][0]).iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-6);
    let one = app.ask("/embed", json!({"texts": "new york", "method": "avg-cos"})).await;
    assert_eq!(one["embeddings"][0], answer["embeddings"][2]);
    let auto = app
        .post("/embed", json!({"texts": "new york", "oov": "error", "method": "sif"}).to_string());
    assert_eq!(auto.await.status, 200);
}

/// Other dialects refuse texts that are too long and no others, so only these are named.
#[tokio::test]
async fn a_text_that_is_too_long_is_named_beside_one_that_is_only_empty() {
    let app = TestApp::new();
    let long = "a ".repeat(app.app.settings.text_bytes);
    let answer = app
        .post("/v1/embeddings", json!({"input": ["", long], "truncate": false}).to_string())
        .await;
    let text = answer.text();
    assert_eq!(answer.status, 400, "{text}");
    assert!(text.contains("input[1]") && !text.contains("input[0]"), "{text}");
}
