//! `GET /methods` and `GET /models`: what there is to choose from.

use cognate::methods::Method;
use cognate::model::{Model, OpenOptions};
use serde_json::json;

use crate::support;
use crate::support::app::TestApp;

#[tokio::test]
async fn methods_and_models_are_listed() {
    let app = TestApp::with_model(support::tiny_model(), |_| ());
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
    assert!(model.get("languages").is_none(), "its file states none");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/multilingual.safetensors");
    let model = Model::open(path.as_ref(), &OpenOptions::default()).unwrap();
    let models = TestApp::with_model(model, |_| ()).get("/models").await.json();
    let languages = ["en", "de", "es", "fr", "it", "nl", "pt"];
    assert_eq!(models["models"][0]["languages"], json!(languages));
    app.get("/methods?model=other").await.refusal(422, "unknown_model");
    app.get("/methods?modl=tiny").await.refusal(422, "invalid_field");
    assert_eq!(app.get("/methods?model=tiny").await.status, 200);
}
