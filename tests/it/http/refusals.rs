//! The table of refusals, a row a test or a line of one: what comes in, which status and code go
//! out. Limits are in `limits`, rows about connections themselves in `connections`.

use axum::body::Body;
use axum::http::Request;
use cognate_server::http::{App, Settings};
use serde_json::{Value, json};

use crate::support::app::TestApp;

/// Bodies of `/similarity` and what they are refused with, and where.
#[tokio::test]
async fn bodies_are_refused_by_name_and_place() {
    let refused = |mut body: Value| {
        body["oov"] = json!("error");
        body.to_string().into_bytes()
    };
    let app = TestApp::strict();
    let pair = json!(["quake", "city"]);
    let rows: Vec<(Vec<u8>, u16, &str, &str)> = vec![
        (b"{".into(), 400, "malformed_json", ""),
        (b"{\"pairs\":[[\"\xff\",\"b\"]]}".into(), 400, "malformed_json", ""),
        ("\u{feff}{}".into(), 400, "malformed_json", ""),
        (br#"{"a":"\ud800","b":"b"}"#.to_vec(), 400, "malformed_json", ""),
        (br#"{"a":"a","b":"b"} {}"#.to_vec(), 400, "malformed_json", ""),
        (br#"{"a":"a","b":"b","threshold":NaN}"#.to_vec(), 400, "malformed_json", ""),
        (b"".into(), 400, "malformed_json", ""),
        (br#"{"a":"a","a":"a","b":"b"}"#.to_vec(), 422, "invalid_field", "/a"),
        (br#"{"a":"a","b":"b","metod":"wmd"}"#.to_vec(), 422, "invalid_field", "/metod"),
        (br#"{"a":"a"}"#.to_vec(), 422, "invalid_field", "/b"),
        (b"{}".into(), 422, "invalid_field", "/pairs"),
        (br#"{"pairs":[["a","b"]],"a":"a"}"#.to_vec(), 422, "invalid_field", "/pairs"),
        (br#"{"pairs":[["a","b","c"]]}"#.to_vec(), 422, "invalid_field", "/pairs/0"),
        (br#"{"pairs":[["a",1]]}"#.to_vec(), 422, "invalid_field", "/pairs/0/1"),
        (br#"{"a":"a","b":"b","measure":"manhattan"}"#.to_vec(), 422, "invalid_field", "/measure"),
        (br#"{"a":"a","b":"b","threshold":1e39}"#.to_vec(), 422, "out_of_range", "/threshold"),
        (br#"{"a":"a","b":"b","threshold":1e400}"#.to_vec(), 422, "out_of_range", "/threshold"),
        (br#"{"pairs":[]}"#.to_vec(), 422, "empty_list", "/pairs"),
        (b"{\"a\":\" \\u001c\\n\",\"b\":\"b\",\"oov\":\"error\"}".into(), 422, "empty_text", "/a"),
        (
            br#"{"pairs":[["city","town"],["city",""]],"oov":"error"}"#.to_vec(),
            422,
            "empty_text",
            "/pairs/1/1",
        ),
        (
            json!({"pairs": [["quake", "zzz qqq"]], "oov": "error", "method": "avg-cos"})
                .to_string()
                .into(),
            422,
            "all_oov",
            "/pairs/0/1",
        ),
        (refused(json!({"a": "x".repeat(8193), "b": "b"})), 422, "text_too_long", "/a"),
        (refused(json!({"a": "x ".repeat(513), "b": "b"})), 422, "too_many_tokens", "/a"),
        (json!({"pairs": vec![pair; 10_001]}).to_string().into(), 422, "too_many_items", "/pairs"),
        (br#"{"a":"a","b":"b","model":"other"}"#.to_vec(), 422, "unknown_model", "/model"),
        (br#"{"a":"a","b":"b","method":"dynamx"}"#.to_vec(), 422, "unknown_method", "/method"),
        (
            br#"{"a":"a","b":"b","method":"wmd","measure":"euclidean"}"#.to_vec(),
            422,
            "measure_not_supported",
            "/measure",
        ),
        (
            br#"{"a":"a","b":"b","threshold":"calibrated"}"#.to_vec(),
            422,
            "not_calibrated",
            "/threshold",
        ),
        ("[".repeat(200).into(), 400, "malformed_json", ""),
        (br#"[[["a","b"]]]"#.to_vec(), 422, "invalid_field", ""),
        (b"null".into(), 422, "invalid_field", ""),
        (format!("{{\"a\":{}", "[".repeat(200)).into(), 422, "invalid_field", "/a"),
    ];
    for (body, status, code, pointer) in rows {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let problem = app.post("/similarity", body).await.refusal(status, code);
        let at = problem["errors"][0]["pointer"].as_str().unwrap_or("");
        assert_eq!(at, pointer, "{shown}: {problem}");
    }
}

#[tokio::test]
async fn all_faulty_texts_are_named_at_most_sixteen() {
    let app = TestApp::new();
    let pairs: Vec<Value> =
        (0..40).map(|n| json!([if n % 2 == 0 { " " } else { "a" }, "b"])).collect();
    let problem =
        app.post("/similarity", json!({"pairs": pairs, "oov": "error"}).to_string()).await;
    let problem = problem.refusal(422, "empty_text");
    let faults = problem["errors"].as_array().unwrap();
    assert_eq!(faults.len(), 16);
    assert_eq!(faults[15]["pointer"], "/pairs/30/0");
}

#[tokio::test]
async fn methods_that_cannot_do_it_are_refused() {
    let app = TestApp::new();
    let embed = json!({"texts": "quake", "method": "dynamax"}).to_string();
    app.post("/embed", embed).await.refusal(422, "method_cannot_embed");
    let bare = TestApp::with_model(crate::support::tiny_model(), |_| ());
    let learned = json!({"a": "quake", "b": "city", "method": "learned-idf"}).to_string();
    let problem = bare.post("/similarity", learned).await.refusal(422, "method_unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("cognate train"), "{problem}");
}

#[tokio::test]
async fn heads_are_refused_before_bodies_are_read() {
    let app = TestApp::new();
    let request = |change: fn(axum::http::request::Builder) -> axum::http::request::Builder| {
        let body = r#"{"a":"quake","b":"city"}"#;
        change(Request::post("/similarity")).body(Body::from(body)).unwrap()
    };
    let media = |answer: &crate::support::app::Answer| answer.header("accept-post").to_owned();
    for kind in ["text/plain", "application/xml", "application/json; charset=latin1", "+json"] {
        let mut refused = request(|head| head);
        refused.headers_mut().insert("content-type", kind.parse().unwrap());
        let answer = app.send(refused).await;
        answer.refusal(415, "unsupported_media_type");
        assert_eq!(media(&answer), "application/json");
    }
    let answer = app.send(request(|head| head)).await;
    answer.refusal(415, "unsupported_media_type");
    for kind in ["application/json", "Application/JSON; charset=\"UTF-8\"", "application/x+json"] {
        let mut fine = request(|head| head);
        fine.headers_mut().insert("content-type", kind.parse().unwrap());
        assert_eq!(app.send(fine).await.status, 200, "{kind}");
    }
    let packed = request(|head| {
        head.header("content-type", "application/json").header("content-encoding", "br")
    });
    let answer = app.send(packed).await;
    answer.refusal(415, "unsupported_encoding");
    assert_eq!(answer.header("accept-encoding"), "gzip, zstd, identity");
    let plain = request(|head| {
        head.header("content-type", "application/json")
            .header("content-encoding", "identity")
            .header("accept", "text/html")
    });
    assert_eq!(app.send(plain).await.status, 200);
    let question =
        Request::post("/similarity?method=wmd").header("content-type", "application/json");
    let question = question.body(Body::from(r#"{"a":"quake","b":"city"}"#)).unwrap();
    app.send(question).await.refusal(422, "invalid_field");
}

#[tokio::test]
async fn paths_and_verbs() {
    let app = TestApp::new();
    app.get("/nowhere").await.refusal(404, "not_found");
    app.get("/similarity/").await.refusal(404, "not_found");
    for (verb, path, allow) in [
        ("GET", "/similarity", "POST"),
        ("OPTIONS", "/rank", "POST"),
        ("TRACE", "/embed", "POST"),
        ("DELETE", "/methods", "GET,HEAD"),
        ("POST", "/health", "GET,HEAD"),
        ("POST", "/docs", "GET,HEAD"),
        ("PUT", "/", "POST,GET,HEAD"),
    ] {
        let request = Request::builder().method(verb).uri(path).body(Body::empty()).unwrap();
        let answer = app.send(request).await;
        answer.refusal(405, "method_not_allowed");
        assert_eq!(answer.header("allow").replace(' ', ""), allow, "{verb} {path}");
    }
    let head = Request::head("/health").body(Body::empty()).unwrap();
    assert_eq!(app.send(head).await.status, 200);
}

#[tokio::test]
async fn before_the_models_are_there_and_before_the_end() {
    let app = TestApp::over(App::new(Settings::default()).unwrap());
    app.get("/ready").await.refusal(503, "not_ready");
    let answer = app.post("/similarity", r#"{"a":"a","b":"b"}"#).await;
    assert_eq!(answer.refusal(503, "not_ready")["retry_after_s"], 2);
    assert_eq!(app.get("/health").await.status, 200);
    let app = TestApp::new();
    assert_eq!(app.get("/readyz").await.json()["status"], "ready");
    app.app.drain();
    let answer = app.get("/ready").await;
    answer.refusal(503, "draining");
    assert_eq!(answer.header("connection"), "close");
    assert_eq!(app.post("/similarity", r#"{"a":"a","b":"b"}"#).await.status, 200);
}

#[tokio::test]
async fn pointers_lead_to_the_text_at_fault_however_it_is_given() {
    let app = TestApp::new();
    for (path, body, pointer) in [
        ("/embed", json!({"texts": ""}), "/texts"),
        ("/embed", json!({"texts": ["a", ""]}), "/texts/1"),
        ("/rank", json!({"query": "q", "candidates": ["a", ""]}), "/candidates/1"),
        ("/rank", json!({"query": "q", "candidates": ["a", {"text": ""}]}), "/candidates/1/text"),
        ("/rank", json!({"query": "", "candidates": ["a"]}), "/query"),
        ("/similarity", json!({"a": "a", "b": ""}), "/b"),
    ] {
        let mut body = body;
        body["oov"] = json!("error");
        let problem = app.post(path, body.to_string()).await.refusal(422, "empty_text");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
    }
    let words = json!({"query": "q", "candidates": ["a"], "min_score": "0"}).to_string();
    let problem = app.post("/rank", words).await.refusal(422, "invalid_field");
    assert!(problem["detail"].as_str().unwrap().contains("expected a number"), "{problem}");
    let huge = r#"{"query":"q","candidates":["a"],"top_k":18446744073709551616}"#;
    app.post("/rank", huge).await.refusal(422, "out_of_range");
}

#[tokio::test]
async fn names_of_files_that_are_no_text_are_not_found() {
    let app = TestApp::new();
    for path in ["/assets/%ff", "/docs/%ff"] {
        app.get(path).await.refusal(404, "not_found");
    }
}
