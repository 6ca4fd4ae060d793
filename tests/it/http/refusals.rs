//! The table of refusals, a row a test or a line of one: what comes in, which status and code go
//! out. Rows about connections themselves are in `connections`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use cognate::http::auth::keys::{Scope, line};
use cognate::http::error::Code;
use cognate::http::{App, Settings, document};
use cognate::model::Model;
use futures_util::stream;
use serde_json::{Value, json};

use crate::support;
use crate::support::app::{TestApp, post};

/// Bodies of `/similarity` and what they are refused with, and where.
#[tokio::test]
async fn bodies_are_refused_by_name_and_place() {
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
        (b"{\"a\":\" \\u001c\\n\",\"b\":\"b\"}".into(), 422, "empty_text", "/a"),
        (br#"{"pairs":[["a","b"],["a",""]]}"#.to_vec(), 422, "empty_text", "/pairs/1/1"),
        (
            json!({"pairs": [["quake", "zzz qqq"]], "oov": "error", "method": "avg-cos"})
                .to_string()
                .into(),
            422,
            "all_oov",
            "/pairs/0/1",
        ),
        (json!({"a": "x".repeat(8193), "b": "b"}).to_string().into(), 422, "text_too_long", "/a"),
        (json!({"a": "x ".repeat(513), "b": "b"}).to_string().into(), 422, "too_many_tokens", "/a"),
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
async fn limits_say_what_they_are_and_what_was_found() {
    let app = TestApp::with(|settings| {
        settings.max_pairs = 2;
        settings.tokens_per_text = 3;
        settings.tokens_total = 10;
    });
    let many = json!({"pairs": [["a", "b"], ["a", "b"], ["a", "b"]]}).to_string();
    let problem = app.post("/similarity", many).await.refusal(422, "too_many_items");
    assert_eq!(
        (&problem["errors"][0]["limit"], &problem["errors"][0]["actual"]),
        (&json!(2), &json!(3))
    );
    let long = json!({"a": "the new city of quakes", "b": "town"}).to_string();
    let problem = app.post("/similarity", long).await.refusal(422, "too_many_tokens");
    assert_eq!(
        (&problem["errors"][0]["limit"], &problem["errors"][0]["actual"]),
        (&json!(3), &json!(5))
    );
    let four =
        json!({"pairs": [["the new city", "the new town"], ["the new city", "the new town"]]});
    let problem =
        app.post("/similarity", four.to_string()).await.refusal(422, "too_many_tokens_total");
    assert_eq!(
        (&problem["errors"][0]["limit"], &problem["errors"][0]["actual"]),
        (&json!(10), &json!(12))
    );
}

#[tokio::test]
async fn a_text_that_is_cut_is_listed() {
    let app = TestApp::with(|settings| settings.tokens_per_text = 3);
    let body =
        json!({"pairs": [["quake", "city"], ["the new city of quakes", "town"]], "truncate": true});
    let answer = app.ask("/similarity", body).await;
    assert_eq!(answer["truncated"], json!([1]));
    let cut = app.ask("/similarity", json!({"a": "the new city", "b": "town"})).await;
    assert_eq!(answer["scores"][1], cut["scores"][0]);
    let body = json!({"a": "quake", "b": "the new city of quakes", "truncate": true});
    let explained = app.ask("/explain", body).await;
    assert_eq!(
        (&explained["a"]["truncated"], &explained["b"]["truncated"]),
        (&json!(null), &json!(true))
    );
}

#[tokio::test]
async fn all_faulty_texts_are_named_at_most_sixteen() {
    let app = TestApp::new();
    let pairs: Vec<Value> =
        (0..40).map(|n| json!([if n % 2 == 0 { " " } else { "a" }, "b"])).collect();
    let problem = app.post("/similarity", json!({"pairs": pairs}).to_string()).await;
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
    let bare = TestApp::of(crate::support::tiny_model(), |_| ());
    let learned = json!({"a": "quake", "b": "city", "method": "learned-idf"}).to_string();
    let problem = bare.post("/similarity", learned).await.refusal(422, "method_unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("cognate train"), "{problem}");
}

#[tokio::test]
async fn answers_and_work_beyond_any_deadline_are_refused_at_once() {
    let app = TestApp::with(|settings| settings.response_bytes = 1 << 10);
    let texts = json!({"texts": vec!["quake"; 100], "method": "avg-cos"}).to_string();
    app.post("/embed", texts).await.refusal(422, "response_too_large");
    let many = |text: &str| vec![json!(text); 200];
    let words = "quake city town new york ".repeat(10);
    for (path, body) in [
        ("/similarity", json!({"pairs": vec![json!(["quake", "city"]); 200]})),
        ("/rank", json!({"query": "quake", "candidates": many("city")})),
        ("/rank", json!({"query": "quake", "candidates": [words.repeat(5)], "return_text": true})),
        ("/explain", json!({"a": words, "b": words})),
    ] {
        let problem = app.post(path, body.to_string()).await.refusal(422, "response_too_large");
        assert!(problem["detail"].as_str().unwrap().contains("response_bytes"), "{problem}");
    }
    let best = json!({"query": "quake", "candidates": many("city"), "top_k": 5});
    assert_eq!(app.post("/rank", best.to_string()).await.status, 200, "only the best are told");
    // Vectors of many dimensions, so that a short body is work enough for a deadline that reading it
    // cannot miss.
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let model = Model::open(&default, &support::structure()).unwrap();
    let app = TestApp::of(model, |settings| {
        settings.compute_deadline_ms = 20;
        settings.compute_threads = Some(1);
    });
    let long = "quake city ".repeat(280);
    let pairs = json!({"pairs": vec![json!([long, long]); 20], "method": "dynamax"}).to_string();
    let problem = app.post("/similarity", pairs).await.refusal(422, "too_much_work");
    assert!(problem["detail"].as_str().unwrap().contains("largest batch"), "{problem}");
}

#[tokio::test]
async fn a_deadline_is_kept_and_nothing_runs_on() {
    let app = TestApp::with(|settings| {
        settings.compute_deadline_ms = 5;
        settings.compute_threads = Some(1);
    });
    // Words that are not listed take longer than words are weighed by.
    let words = "zqxv ".repeat(400);
    let pairs = json!({"pairs": vec![json!([words, words]); 100], "method": "avg-cos"}).to_string();
    let problem = app.post("/similarity", pairs).await.refusal(503, "deadline_exceeded");
    assert_eq!(problem["retry_after_s"], 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(app.app.compute.counts(), (0, 0));
    assert_eq!(app.app.admission.in_use(), 0);
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
        head.header("content-type", "application/json").header("content-encoding", "gzip")
    });
    let answer = app.send(packed).await;
    answer.refusal(415, "unsupported_encoding");
    assert_eq!(answer.header("accept-encoding"), "identity");
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
async fn a_body_beyond_the_limit_is_refused_by_its_head_or_where_it_passes_it() {
    let app = TestApp::with(|settings| settings.body_bytes = 1000);
    let mut declared = post("/embed", "{}");
    declared.headers_mut().insert("content-length", "1001".parse().unwrap());
    let answer = app.send(declared).await;
    let problem = answer.refusal(413, "body_too_large");
    assert_eq!(answer.header("connection"), "close");
    assert!(problem["detail"].as_str().unwrap().contains("body_bytes"), "{problem}");
    let pieces = (0..20).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 100])));
    let streamed = post("/embed", Body::from_stream(stream::iter(pieces)));
    app.send(streamed).await.refusal(413, "body_too_large");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let app = TestApp::new();
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let started = tokio::time::Instant::now();
    let answer = app.post("/rank", never).await;
    answer.refusal(408, "request_timeout");
    assert_eq!(answer.header("connection"), "close");
    assert_eq!(started.elapsed().as_secs(), 5);
    assert_eq!(app.app.admission.in_use(), 0);
}

#[tokio::test]
async fn a_full_house_refuses_at_once() {
    let app = TestApp::with(|settings| settings.admission_units = 5);
    let held = app.app.admission.admit().unwrap();
    let five = json!({"pairs": vec![json!(["quake", "city"]); 5]}).to_string();
    let answer = app.post("/similarity", five.clone()).await;
    let problem = answer.refusal(503, "overloaded");
    assert!([1, 2].contains(&problem["retry_after_s"].as_u64().unwrap()));
    drop(held);
    assert_eq!(app.post("/similarity", five.clone()).await.status, 200);
    let mut long = post("/similarity", five);
    long.headers_mut().insert("content-length", "100000".parse().unwrap());
    let held = (0..5).map(|_| app.app.admission.admit().unwrap()).collect::<Vec<_>>();
    app.send(long).await.refusal(503, "overloaded");
    drop(held);
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_shed_total{reason=\"admission\"} 2\n"), "{page}");
    for path in ["/health", "/ready", "/metrics"] {
        let _full = (0..5).map(|_| app.app.admission.admit().unwrap()).collect::<Vec<_>>();
        assert_eq!(app.get(path).await.status, 200, "{path}");
    }
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
        ("POST", "/", "GET,HEAD"),
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

/// The document lists every status and code, and what a route lists is what tests of it met: each
/// refusal that `TestApp` receives is looked for there.
#[test]
fn the_document_lists_every_route_status_and_code() {
    let document = document();
    let mut listed = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("200"), "{verb} {path}");
            for (status, response) in responses.iter().filter(|(status, _)| *status != "200") {
                let problem = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(problem, "#/components/schemas/Problem", "{verb} {path} {status}");
                for name in response["description"].as_str().unwrap().split(", ") {
                    let code = Code::ALL.iter().find(|code| format!("`{}`", code.name()) == name);
                    let code = code.unwrap_or_else(|| panic!("{verb} {path}: {name}"));
                    assert_eq!(code.status().as_str(), status, "{verb} {path}: {name}");
                    listed.insert(code.name());
                }
            }
        }
    }
    // These two belong to no route.
    listed.extend([Code::NotFound, Code::MethodNotAllowed].map(Code::name));
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !listed.contains(code.name())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A route that asks for a key says so, and no other does.
#[tokio::test]
async fn the_document_says_where_a_key_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, line("shop", Scope::Admin, "the-key").unwrap()).unwrap();
    let app = TestApp::with(|settings| settings.keys_file = Some(keys));
    for (path, item) in document()["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let request = Request::builder().method(verb.to_uppercase().as_str()).uri(path);
            let answer = app.send(request.body(Body::empty()).unwrap()).await;
            let asked = answer.status == 401;
            assert_eq!(operation.get("security").is_some(), asked, "{verb} {path}");
        }
    }
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
        let problem = app.post(path, body.to_string()).await.refusal(422, "empty_text");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
    }
    let words = json!({"query": "q", "candidates": ["a"], "min_score": "0"}).to_string();
    let problem = app.post("/rank", words).await.refusal(422, "invalid_field");
    assert!(problem["detail"].as_str().unwrap().ends_with("expected a number"), "{problem}");
    let huge = r#"{"query":"q","candidates":["a"],"top_k":18446744073709551616}"#;
    app.post("/rank", huge).await.refusal(422, "out_of_range");
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
async fn names_of_files_that_are_no_text_are_not_found() {
    let app = TestApp::new();
    for path in ["/assets/%ff", "/docs/%ff"] {
        app.get(path).await.refusal(404, "not_found");
    }
}
