//! Limits of texts, bodies, answers, time and work: what goes beyond one is refused by its name.

use std::path::Path;
use std::time::Duration;

use axum::body::{Body, Bytes};
use cognate::model::Model;
use futures_util::stream;
use serde_json::json;

use crate::support;
use crate::support::app::{TestApp, post};

#[tokio::test]
async fn limits_say_what_they_are_and_what_was_found() {
    let app = TestApp::with(|settings| {
        settings.max_pairs = 2;
        settings.tokens_per_text = 3;
        settings.tokens_total = 10;
    });
    let many = json!({"pairs": [["a", "b"], ["a", "b"], ["a", "b"]]}).to_string();
    let problem = app.post("/similarity", many).await.refusal(422, "too_many_items");
    assert_eq!(problem["detail"], "3 pairs; the limit is 2 (setting `max_pairs`)");
    assert_eq!(
        (&problem["errors"][0]["limit"], &problem["errors"][0]["actual"]),
        (&json!(2), &json!(3))
    );
    let long = json!({"a": "the new city of quakes", "b": "town", "oov": "error"}).to_string();
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
    let app = TestApp::with_model(model, |settings| {
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
    // Words that are not listed, none of which was met before, take longer than words are weighed by.
    let letter = |number: usize| char::from(b"bcdfghjklmnpqrst"[number % 16]);
    let word = |at: usize| (0..5).map(|place| letter(at >> (4 * place))).collect::<String>();
    let text = |pair: usize| (0..400).map(|at| word(400 * pair + at) + " ").collect::<String>();
    let pairs: Vec<_> = (0..100).map(|pair| json!([text(2 * pair), text(2 * pair + 1)])).collect();
    let pairs = json!({"pairs": pairs, "method": "avg-cos"}).to_string();
    let problem = app.post("/similarity", pairs).await.refusal(503, "deadline_exceeded");
    assert_eq!(problem["retry_after_s"], 1);
    app.until_idle(Duration::from_secs(1)).await;
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
    let page = app.get("/metrics").await.text();
    assert!(
        page.contains("cognate_connections_ended_total{reason=\"body_timeout\"} 1\n"),
        "{page}"
    );
    assert_eq!(app.app.admission.in_use(), 0);
}

#[tokio::test]
async fn a_server_without_free_units_refuses_at_once_where_nobody_may_wait() {
    let app = TestApp::with(|settings| {
        settings.admission_units = 5;
        settings.admission_wait_ms = 0;
    });
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
async fn a_request_waits_until_units_are_free_and_is_answered() {
    let app = TestApp::with(|settings| {
        settings.admission_units = 5;
        settings.admission_wait_ms = 60_000;
    });
    let five = json!({"pairs": vec![json!(["quake", "city"]); 5]}).to_string();
    let mut long = post("/similarity", format!("{five}{}", " ".repeat(10_000)));
    long.headers_mut().insert("content-length", (five.len() + 10_000).into());
    // One waits once its items are counted, the other before its body is read.
    for request in [post("/similarity", five), long] {
        let held = app.app.admission.admit().unwrap();
        let freed = async {
            while app.app.admission.waiting() == 0 {
                tokio::task::yield_now().await;
            }
            let page = app.get("/metrics").await.text();
            assert!(page.contains("cognate_admission_waiting 1\n"), "{page}");
            assert!(page.contains("cognate_admission_units_in_use 1\n"), "it holds nothing");
            drop(held);
        };
        let (answer, ()) = tokio::join!(app.send(request), freed);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!((app.app.admission.in_use(), app.app.admission.waiting()), (0, 0));
    }
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_shed_total{reason=\"admission\"} 0\n"), "{page}");
}

/// Twelve clients whose requests are more than the units twice over, and take a few milliseconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_few_large_requests_at_once_are_all_answered() {
    let app = TestApp::with(|settings| {
        settings.max_candidates = 1000;
        settings.admission_units = 6500;
        // However slow and busy the machine is.
        settings.compute_deadline_ms = 60_000;
        settings.admission_wait_ms = 60_000;
    });
    let candidates = vec!["the new city of quakes and the town"; 1000];
    let body = json!({"query": "quake", "candidates": candidates, "top_k": 1}).to_string();
    let clients = (0..12).map(|_| {
        let (app, body) = (app.clone(), body.clone());
        tokio::spawn(async move {
            let first = app.post("/rank", body.clone()).await.status;
            (first, app.post("/rank", body).await.status)
        })
    });
    for client in clients.collect::<Vec<_>>() {
        let (first, second) = client.await.unwrap();
        assert_eq!((first.as_u16(), second.as_u16()), (200, 200));
    }
    app.until_idle(Duration::from_secs(10)).await;
}
