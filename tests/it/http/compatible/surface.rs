//! Which dialects there are, how they are told apart, and how each refuses.

use axum::body::Body;
use axum::http::Request;
use cognate_server::http::auth::keys::{Scope, line};
use cognate_server::http::dialect::Dialect;
use serde_json::{Value, json};

use super::{TEXTS, ask, native, post};
use crate::support::app::{Answer, TestApp};

/// On the paths that are ours as well, the body says who asks, and a refusal speaks as the body does.
#[tokio::test]
async fn shared_paths_tell_dialects_apart_by_the_body() {
    let app = TestApp::new();
    let unit = native(&app, "auto", true).await;
    assert_eq!(app.ask("/embed", json!({"inputs": TEXTS})).await, unit);
    assert_eq!(app.ask("/embed", json!({"truncate": true, "inputs": TEXTS})).await, unit);
    let sentences = json!({"inputs": {"source_sentence": "a", "sentences": ["a"]}});
    assert_eq!(app.ask("/similarity", sentences).await, json!([1.0]));
    for (body, code) in
        [("{}", "invalid_field"), (r#"{"texts":[]}"#, "empty_list"), ("[]", "invalid_field")]
    {
        let problem = app.post("/embed", body).await.refusal(422, code);
        assert!(problem.get("error").is_none(), "{problem}");
    }
    let answer = app.post("/embed", r#"{"inputs":[]}"#).await;
    let said = answer.json();
    assert_eq!((answer.status.as_u16(), &said["error_type"]), (400, &json!("Empty")));
    assert_eq!((&said["code"], said.get("type")), (&json!("empty_list"), None));
    assert_eq!(said["request_id"], answer.header("x-request-id"));
    // Before the body is known, a refusal has what each of them looks for.
    let request = Request::post("/embed").header("content-type", "text/plain").body("x".into());
    let problem = app.send(request.unwrap()).await.refusal(415, "unsupported_media_type");
    for field in ["error", "message"] {
        assert_eq!(problem[field], problem["detail"]);
    }
    assert_eq!(problem["error_type"], "Validation");
}

/// A refusal says which of the client's own fields is at fault.
#[tokio::test]
async fn refusals_name_the_fields_of_the_dialect() {
    let app = TestApp::new();
    let long = "x".repeat(40_000);
    let cases = [
        (
            "/v1/embeddings",
            json!({"input": ["a", long], "truncate": false}),
            "/error/message",
            "input[1] has 40000 bytes",
        ),
        ("/api/embed", json!({"input": ["a", 7]}), "/error", "token ids"),
        (
            "/v2/rerank",
            json!({"query": "a", "documents": ["a", true]}),
            "/message",
            "documents[1]: wrong type",
        ),
        (
            "/v2/rerank",
            json!({"query": "a", "documents": []}),
            "/message",
            "there are no documents",
        ),
        (
            "/score",
            json!({"queries": "", "documents": ["a", "b"]}),
            "/error/message",
            "queries is empty",
        ),
        (
            "/score",
            json!({"queries": "a", "documents": ["b"], "model": "tiny:bm25"}),
            "/error/message",
            "model: ",
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "model": "tiny:bm25"}),
            "/error/message",
            "model: ",
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "output_dtype": "int8"}),
            "/error/message",
            "output_dtype: ",
        ),
        (
            "/vectors",
            json!({"text": "a", "config": [3]}),
            "/error",
            "config: wrong type: expected an object",
        ),
        ("/m/tiny/auto", json!({"inputs": ["a", [{}]]}), "/error", "inputs"),
    ];
    for (path, body, place, said) in cases {
        let answer = post(&app, path, &body).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.text());
        let message = answer.json().pointer(place).unwrap().as_str().unwrap().to_owned();
        assert!(message.contains(said), "{path}: {message}");
    }
}

/// A limit is named by its setting, whatever a dialect calls what it limits.
#[tokio::test]
async fn a_refusal_names_the_field_of_the_dialect_and_the_setting_of_the_server() {
    let app = TestApp::with(|settings| settings.max_candidates = 1);
    for (path, body, field) in [
        ("/v2/rerank", json!({"query": "a", "documents": ["a", "b"]}), "documents"),
        ("/rerank", json!({"query": "a", "texts": ["a", "b"]}), "texts"),
    ] {
        let answer = post(&app, path, &body).await.json();
        let said = answer.get("message").or(answer.get("error")).unwrap().as_str().unwrap();
        let expected = format!("2 {field}; the limit is 1 (setting `max_candidates`)");
        assert_eq!(said, expected, "{path}");
    }
}

/// A name in a path that is no text is a name that no model has.
#[tokio::test]
async fn a_model_whose_name_is_no_text_is_refused_in_the_form_of_the_dialect() {
    let answer = TestApp::new().get("/v1/models/%ff").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["code"]),
        (404, &"unknown_model".into())
    );
}

/// Each dialect refuses in its own form, with our code inside.
#[tokio::test]
async fn refusals_have_the_form_of_the_dialect() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, line("shop", Scope::Query, "the-key").unwrap()).unwrap();
    let app = TestApp::with(|settings| settings.keys_file = Some(file));
    let dialects = [
        ("/v1/embeddings", json!({"input": "a", "model": "gpt"}), "/error/message", 404),
        ("/score", json!({"queries": "a", "documents": "a", "model": "x"}), "/error/message", 404),
        ("/v2/rerank", json!({"query": "a", "documents": ["a"], "model": "x"}), "/message", 404),
        ("/api/embed", json!({"input": "a", "model": "x"}), "/error", 404),
        ("/m/x/auto/vectors", json!({"text": "a"}), "/error", 404),
        ("/m/x/auto/embed", json!({"inputs": "a"}), "/error", 404),
        ("/m/x/auto", json!({"inputs": "a"}), "/error", 404),
    ];
    for (path, body, detail, status) in dialects {
        let mut request = Request::post(path).body(Body::from(body.to_string())).unwrap();
        let answer = app.send(request).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.json().pointer(detail).is_some_and(Value::is_string), "{path}");
        // Some clients send the key by itself.
        for key in ["Bearer the-key", "the-key"] {
            request = Request::post(path).body(Body::from(body.to_string())).unwrap();
            request.headers_mut().insert("authorization", key.parse().unwrap());
            let answer = app.send(request).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
            let said = answer.json();
            let code = said.get("code").or(said.pointer("/error/code")).unwrap();
            assert_eq!(code, "unknown_model", "{path}: {said}");
            assert!(said.pointer(detail).unwrap().as_str().unwrap().contains("tiny"), "{said}");
        }
    }
}

#[tokio::test]
async fn clients_are_told_what_there_is() {
    let app = TestApp::new();
    assert_eq!(app.get("/v1/models").await.json()["data"][0]["id"], "tiny");
    assert_eq!(app.get("/api/tags").await.json()["models"][0]["name"], "tiny");
    assert_eq!(app.get("/info").await.json()["model_id"], "tiny");
    assert_eq!(app.get("/meta").await.json()["model"], "tiny");
    assert_eq!(app.get("/m/tiny/auto/meta").await.json()["model"], "tiny");
    assert_eq!(app.get("/api/version").await.json()["version"], env!("CARGO_PKG_VERSION"));
    // Ollama's own client always sends both names.
    for body in [json!({"model": "tiny:latest", "name": ""}), json!({"name": "tiny"}), json!({})] {
        let show = ask(&app, "/api/show", body).await;
        assert_eq!(show["capabilities"], json!(["embedding"]));
    }
    let long = json!({"model": "x".repeat(70_000)});
    assert_eq!(post(&app, "/api/show", &long).await.json()["code"], "body_too_large");
    assert_eq!(app.get("/v1/models/tiny").await.json()["id"], "tiny");
    assert_eq!(app.get("/v1/models/other").await.status, 404);
    for path in ["/v1/models", "/info", "/api/tags", "/api/version", "/meta"] {
        let (plain, named) = (app.get(path).await, app.get(&format!("/m/tiny/auto{path}")).await);
        assert_eq!(plain.json(), named.json(), "{path}");
    }
    for path in ["/.well-known/live", "/.well-known/ready", "/m/tiny/auto/.well-known/ready"] {
        assert_eq!(app.get(path).await.status, 204, "{path}");
    }
    app.app.drain();
    assert_eq!(app.get("/.well-known/ready").await.status, 503);
}

/// What is switched off is not there, and nothing else changes.
#[tokio::test]
async fn dialects_are_there_as_the_settings_say() {
    let of = |dialects: Vec<Dialect>| TestApp::with(move |settings| settings.dialects = dialects);
    let none = of(Vec::new());
    for path in ["/v1/embeddings", "/rerank", "/v2/rerank", "/api/embed", "/score", "/vectors"] {
        assert_eq!(none.post(path, "{}").await.status, 404, "{path}");
    }
    assert_eq!(none.post("/", "{}").await.status, 405);
    none.post("/embed", r#"{"inputs":"a"}"#).await.refusal(422, "invalid_field");
    let paths = none.get("/openapi.json").await.json();
    assert!(paths["paths"].get("/v2/rerank").is_none() && paths["paths"].get("/embed").is_some());
    for one in Dialect::others() {
        let app = of(vec![one]);
        let there = |answer: Answer| answer.status != 404 && answer.status != 405;
        let rerank = there(app.post("/rerank", "{}").await);
        assert_eq!(rerank, [Dialect::Rerank, Dialect::Tei].contains(&one), "{one:?}");
        assert_eq!(there(app.post("/v1/embeddings", "{}").await), one == Dialect::OpenAi);
        assert_eq!(there(app.post("/", "{}").await), one == Dialect::Hub);
        assert_eq!(there(app.get("/meta").await), one == Dialect::Weaviate);
        app.ask("/embed", json!({"texts": "a"})).await;
    }
    let body = json!({"query": "a", "documents": ["a"]});
    let texts = json!({"query": "a", "texts": ["a"]});
    let status = async |app: &TestApp, path: &str, body: &Value| post(app, path, body).await.status;
    let (rerank, tei) = (of(vec![Dialect::Rerank]), of(vec![Dialect::Tei]));
    assert_eq!(
        (status(&rerank, "/rerank", &body).await, status(&rerank, "/rerank", &texts).await),
        (200.try_into().unwrap(), 400.try_into().unwrap())
    );
    assert_eq!(
        (status(&tei, "/rerank", &body).await, status(&tei, "/rerank", &texts).await),
        (422.try_into().unwrap(), 200.try_into().unwrap())
    );
    let all = TestApp::new();
    assert_eq!(status(&all, "/v2/rerank", &texts).await, 400, "only one of its paths is shared");
    let twice = of(vec![Dialect::Tei, Dialect::Tei]);
    twice.ask("/embed", json!({"inputs": "a"})).await;
}

/// Operators see who speaks what.
#[tokio::test]
async fn answers_are_counted_by_dialect() {
    let app = TestApp::new();
    ask(&app, "/v1/embeddings", json!({"input": "a"})).await;
    app.ask("/embed", json!({"inputs": "a"})).await;
    app.ask("/embed", json!({"texts": "a"})).await;
    let page = app.get("/metrics").await.text();
    for (dialect, count) in [("openai", 1), ("tei", 1), ("native", 1), ("hub", 0)] {
        let line = format!("cognate_dialect_requests_total{{dialect=\"{dialect}\"}} {count}");
        assert!(page.contains(&line), "{line}");
    }
    let route = r#"cognate_requests_total{route="/v1/embeddings",method="POST""#;
    assert!(page.contains(route), "routes of dialects are counted, too");
}

/// The document says that this text is not empty, and how large a number of results may be.
#[tokio::test]
async fn an_empty_source_sentence_and_numbers_beyond_the_document_are_refused() {
    let app = TestApp::new();
    for path in ["/", "/similarity", "/m/tiny/auto", "/m/tiny/jaccard/similarity"] {
        for empty in [json!(""), json!(" \u{85}\u{1c}\u{3000}"), json!({"text": ""})] {
            for sentences in [json!(["a"]), json!([""]), json!(["a", "b"])] {
                let body = json!({"inputs": {"source_sentence": empty, "sentences": sentences}});
                let answer = app.post(path, body.to_string()).await;
                let said = (answer.status.as_u16(), answer.json()["code"].clone());
                assert_eq!(said, (400, json!("empty_text")), "{path} {body}");
                assert_eq!(answer.json()["error"], "inputs.source_sentence is empty", "{path}");
            }
        }
    }
    for path in ["/rerank", "/v2/rerank", "/v1/rerank"] {
        for field in ["top_n", "top_k"] {
            let cases = [
                ("0", 200),
                ("9223372036854775807", 200),
                ("9223372036854775808", 400),
                ("-1", 400),
            ];
            for (number, status) in cases {
                let body = format!(r#"{{"query":"a","documents":["a"],"{field}":{number}}}"#);
                let answer = app.post(path, body).await;
                assert_eq!(answer.status.as_u16(), status, "{path} {field} {number}");
                if status == 400 {
                    assert_eq!(answer.json()["code"], "out_of_range", "{path} {field} {number}");
                }
            }
        }
    }
}
