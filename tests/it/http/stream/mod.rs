//! Questions as lines: answered one by one, in order, in bounded memory.

mod embed;
mod rank;
mod unread;

use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Request;
use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::model::Model;
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support;
use crate::support::app::TestApp;

fn lines(query: &str, body: impl Into<Body>) -> Request<Body> {
    lines_to(&format!("/similarity{query}"), body)
}

fn lines_to(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path).header("content-type", "application/x-ndjson").body(body.into()).unwrap()
}

/// Waits until the metrics have this line.
async fn until_counted(app: &TestApp, line: &str) {
    let begun = Instant::now();
    loop {
        let page = app.get("/metrics").await.text();
        if page.lines().any(|found| found == line) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{line} in\n{page}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn ended(outcome: &str) -> String {
    format!("cognate_streams_ended_total{{outcome=\"{outcome}\"}} 1")
}

fn answers(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_line_in_is_a_line_out_and_a_bad_one_does_not_end_it() {
    let app = TestApp::strict();
    let body = [
        r#"["the quake", "an earthquake"]"#,
        r#"{"a": "new york", "b": "the city"}"#,
        "",
        r#"["only one"]"#,
        "{",
        r#"["zzz", "quake"]"#,
        r#"["", "quake"]"#,
        &format!("[\"{}\", \"b\"]", "x".repeat(70_000)),
        r#"["o'neill", "0"]"#,
    ]
    .join("\r\n");
    let answer = app.send(lines("?method=avg-cos", body)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    assert_eq!(
        answer.header("x-model-fingerprint"),
        app.app.models().all()[0].engine.model().fingerprint()
    );
    let got = answers(&answer.text());
    let query = Query::new(Method::AvgCos);
    let pairs = [("the quake", "an earthquake"), ("new york", "the city"), ("o'neill", "0")];
    let models = app.app.models();
    let scores = models.all()[0].engine.similarity(&pairs, &query).unwrap().scores;
    let score = |place: usize| got[place]["score"].as_f64().unwrap() as f32;
    assert_eq!((score(0), score(1), score(7)), (scores[0], scores[1], scores[2]));
    for (place, line, code) in
        [(2, 4, "invalid_field"), (3, 5, "malformed_json"), (6, 8, "body_too_large")]
    {
        assert_eq!(
            (&got[place]["line"], &got[place]["error"]["code"]),
            (&json!(line), &json!(code))
        );
    }
    let unscored = |reason: &str| json!({"score": 0.0, "unscored": true, "reason": reason});
    assert_eq!((&got[4], &got[5]), (&unscored("unknown"), &unscored("empty")));
    assert_eq!(got.len(), 8);
}

/// A name comes back as it was written, with a score as with a fault, if it stands before the fault.
#[tokio::test]
async fn a_line_gets_its_name_back() {
    let app = TestApp::strict();
    let body = [
        r#"{"id": "x\u0041", "a": "quake", "b": "city"}"#,
        r#"{"a": "quake", "b": "city", "id": 1.50}"#,
        r#"{"id": 12345678901234567890, "a": "zzz", "b": "city"}"#,
        r#"{"id": "m", "a": "quake"}"#,
        r#"{"id": "n", "a": "quake", "b": }"#,
        r#"{"id": "long", "a": "quake", "b": "LONG"}"#,
        r#"{"a": "quake", "b": 3, "id": "after"}"#,
        r#"{"id": null, "a": "quake", "b": "city"}"#,
        r#"{"id": [1], "a": "quake", "b": "city"}"#,
        r#"{"id": "\ud800", "a": "quake", "b": "city"}"#,
        r#"{"id": -1e400, "a": "quake", "b": "city"}"#,
        r#"{"id": "\udc00", "a": "quake"}"#,
    ];
    let body_lines = body.len();
    let body = body.join("\n").replace("LONG", &"x".repeat(40_000));
    let answer = app.send(lines("?method=avg-cos&oov=error", body)).await;
    let text = answer.text();
    // What the parser of the client refuses would be lost to it.
    assert_eq!(answers(&text).len(), body_lines);
    let got: Vec<&str> = text.lines().collect();
    let begins = [
        r#"{"id":"x\u0041","score":"#,
        r#"{"id":1.50,"score":"#,
        r#"{"line":3,"id":12345678901234567890,"error":{"code":"all_oov""#,
        r#"{"line":4,"id":"m","error":{"code":"invalid_field""#,
        r#"{"line":5,"id":"n","error":{"code":"malformed_json""#,
        r#"{"line":6,"id":"long","error":{"code":"text_too_long""#,
        r#"{"line":7,"id":"after","error":{"code":"invalid_field""#,
        r#"{"score":"#,
        r#"{"line":9,"error":{"code":"invalid_field","detail":"wrong type: expected a string or a number"}}"#,
        r#"{"line":10,"error":{"code":"invalid_field""#,
        r#"{"line":11,"error":{"code":"invalid_field""#,
        r#"{"line":12,"error":{"code":"invalid_field""#,
    ];
    for (line, begin) in got.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert_eq!(got.len(), begins.len());
}

#[tokio::test]
async fn settings_stand_in_the_query_string() {
    let app = TestApp::new();
    let body = "[\"new york\",\"New York\"]\n[\"quake\",\"city\"]\n";
    let got = answers(&app.send(lines("?method=jaccard&threshold=0.5", body)).await.text());
    assert_eq!(
        got,
        [json!({"score": 1.0, "related": true}), json!({"score": 0.0, "related": false})]
    );
    app.send(lines("?metod=jaccard", body)).await.refusal(422, "invalid_field");
    app.send(lines("?method=jaccrd", body)).await.refusal(422, "unknown_method");
    app.send(lines("?threshold=1e39", body)).await.refusal(422, "out_of_range");
    app.send(lines("?threshold=calibrated", body)).await.refusal(422, "not_calibrated");
}

#[tokio::test]
async fn answers_come_while_lines_are_still_being_sent() {
    let app = TestApp::new();
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|bytes| (Ok::<_, std::io::Error>(bytes), receiver))
    });
    let request = lines("?method=avg-cos", Body::from_stream(body));
    let response = app.app.router().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    for _ in 0..3 {
        sender.send(Bytes::from_static(b"[\"quake\",\"city\"]\n")).await.unwrap();
        let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await;
        assert!(frame.unwrap().unwrap().unwrap().into_data().unwrap().starts_with(b"{\"score\":"));
    }
    drop(sender);
    assert!(body.frame().await.is_none());
}

/// A service in which a whole chunk of lines may need all units.
fn with_few_units(deadline_ms: u64) -> TestApp {
    TestApp::with(|settings| {
        (settings.max_texts, settings.max_pairs, settings.max_candidates) = (100, 100, 100);
        settings.admission_units = 200;
        settings.compute_deadline_ms = deadline_ms;
    })
}

/// A stream keeps one unit for itself, so a whole chunk of lines may need more than there ever are beside it.
#[tokio::test]
async fn lines_are_answered_although_a_chunk_of_them_needs_all_units() {
    let app = with_few_units(1000);
    let body = "[\"quake\",\"city\"]\n".repeat(600);
    let answer = app.send(lines("?method=avg-cos", body)).await;
    let got = answers(&answer.text());
    assert_eq!(got.len(), 600);
    for line in got {
        assert!(line["score"].is_number(), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_stream_with_a_word() {
    let app = TestApp::new();
    let first =
        stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"[\"quake\",\"city\"]\n"))]);
    let silent = futures_util::StreamExt::chain(first, stream::pending());
    let answer = app.send(lines("?method=avg-cos", Body::from_stream(silent))).await;
    let got = answers(&answer.text());
    assert_eq!((&got[1]["line"], &got[1]["error"]["code"]), (&json!(2), &json!("request_timeout")));
}

#[tokio::test]
async fn a_service_that_stops_says_which_line_comes_next() {
    let app = TestApp::new();
    let first = Bytes::from_static(b"[\"quake\",\"city\"]\n[\"quake\",\"town\"]\n");
    let first = stream::iter([Ok::<_, std::io::Error>(first)]);
    let open = futures_util::StreamExt::chain(first, stream::pending());
    let request = lines("?method=avg-cos", Body::from_stream(open));
    let mut body = app.app.router().oneshot(request).await.unwrap().into_body();
    let answered = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(answers(std::str::from_utf8(&answered).unwrap()).len(), 2);
    app.app.streams.end();
    let rest = body.collect().await.unwrap().to_bytes();
    let last = answers(std::str::from_utf8(&rest).unwrap());
    assert_eq!((&last[0]["line"], &last[0]["error"]["code"]), (&json!(3), &json!("draining")));
    assert_eq!(last.len(), 1);
}

/// A chunk of lines that takes longer than a job may is scored by several jobs.
#[tokio::test]
async fn costly_lines_are_scored_although_a_chunk_of_them_takes_longer_than_the_deadline() {
    const LINES: usize = 200;
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let model = || Model::open(&default, &support::structure()).unwrap();
    let engine = Engine::new(model()).unwrap();
    let words = engine.model().vocabulary();
    let text = |first: usize, length: usize| {
        let ids = (first..first + length).map(|id| words.word(1000 + id as u32));
        ids.collect::<Vec<_>>().join(" ")
    };
    let pairs = |count: usize, length: usize| -> Vec<(String, String)> {
        (0..count).map(|line| (text(line, length), text(9000 - line, length))).collect()
    };
    let query = Query::new(Method::Wmd);
    let taken = |pairs: &[(String, String)]| {
        let begun = Instant::now();
        let scores = engine.similarity(pairs, &query).unwrap().scores;
        (begun.elapsed(), scores)
    };
    // Long enough that a busy machine's pauses are short beside the deadline, however fast it is.
    let lengths = [48, 72, 108, 162, 243, 365];
    let slow = |length: &usize| taken(&pairs(8, *length)).0 > Duration::from_millis(80);
    let length = lengths.into_iter().find(slow).unwrap_or(365);
    let pairs = pairs(LINES, length);
    let (all, expected) = taken(&pairs);
    let app = TestApp::with_model(model(), |settings| {
        settings.compute_deadline_ms = all.as_millis() as u64 / 3;
        settings.compute_threads = Some(1);
    });
    let body: String = pairs.iter().map(|pair| format!("{}\n", json!(pair))).collect();
    let answer = app.send(lines("?method=wmd", body)).await;
    let got = answers(&answer.text());
    assert_eq!(got.len(), LINES);
    for (line, expected) in got.iter().zip(expected) {
        assert_eq!(line["score"].as_f64().map(|score| score as f32), Some(expected), "{line}");
    }
}
