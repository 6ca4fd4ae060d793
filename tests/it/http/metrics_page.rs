//! What Prometheus reads: every name is there from the start, routes come with their first request, and
//! clients cannot make it grow.

use std::io::Read;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Request;
use cognate_server::http::auth::client::Client;
use flate2::read::MultiGzDecoder;
use futures_util::stream;
use serde_json::json;
use tower::ServiceExt;

use crate::support::app::TestApp;

const SERIES: [&str; 39] = [
    "cognate_build_info{version=",
    "# TYPE cognate_stream_duration_seconds histogram",
    "cognate_requests_in_flight",
    "cognate_connections 0",
    "cognate_connections_limit 2048",
    "cognate_connections_refused_total 0",
    "cognate_connections_ended_total{reason=\"header_timeout\"} 0",
    "cognate_connections_ended_total{reason=\"body_timeout\"} 0",
    "cognate_connections_ended_total{reason=\"write_timeout\"} 0",
    "cognate_key_requests_total{key=\"none\",outcome=\"answered\"} 0",
    "cognate_key_requests_total{key=\"none\",outcome=\"failed\"} 0",
    "cognate_shed_total{reason=\"admission\"} 0",
    "cognate_shed_total{reason=\"queue\"} 0",
    "cognate_shed_total{reason=\"deadline\"} 0",
    "cognate_shed_total{reason=\"draining\"} 0",
    "cognate_shed_total{reason=\"not_ready\"} 0",
    "cognate_shed_total{reason=\"quota\"} 0",
    "cognate_texts_total 0",
    "cognate_tokens_total 0",
    "cognate_unknown_tokens_total 0",
    "cognate_method_requests_total{method=\"dynamax-jaccard\"} 0",
    "cognate_admission_units 65536",
    "cognate_admission_units_in_use 0",
    "cognate_admission_waiting 0",
    "cognate_compute_jobs 0",
    "cognate_compute_queued 0",
    "cognate_panics_total 0",
    "cognate_non_finite_total 0",
    "cognate_reloads_total 0",
    "cognate_reload_failures_total 0",
    "cognate_ready 1",
    "cognate_model_bytes{model=\"tiny\"}",
    "cognate_model_words{model=\"tiny\"} 12",
    "cognate_model_intact{model=\"tiny\"} 1",
    "cognate_runtime_lateness_seconds_count 0",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_max_fds",
];

#[tokio::test]
async fn every_series_is_there_before_anything_happened() {
    let answer = TestApp::new().get("/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    let page = answer.text();
    for series in SERIES {
        assert!(page.lines().any(|line| line.starts_with(series)), "{series} in\n{page}");
    }
    for line in page.lines().filter(|line| line.starts_with("# TYPE ")) {
        let name = line.split(' ').nth(2).unwrap();
        assert!(page.contains(&format!("# HELP {name} ")), "{name} is not explained");
    }
}

/// Series of a route come with its first request, a stream's with its end; the page is compressed for
/// who asks.
#[tokio::test]
async fn a_fresh_page_is_small() {
    let app = TestApp::new();
    let page = app.get("/metrics").await.text();
    assert!(page.len() <= 20_000, "{} bytes", page.len());
    assert!(!page.contains("route="), "{page}");
    let request = Request::get("/metrics").header("accept-encoding", "gzip");
    let packed = app.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    let mut plain = String::new();
    MultiGzDecoder::new(&*packed.body).read_to_string(&mut plain).unwrap();
    for count in [
        "requests_total{route=\"/metrics\",method=\"GET\",status=\"200\"}",
        "request_duration_seconds_count{route=\"/metrics\"}",
    ] {
        assert!(plain.contains(&format!("cognate_{count} 1\n")), "{plain}");
    }
    assert!(!plain.contains("cognate_stream_lines_total{"), "{plain}");
}

#[tokio::test]
async fn answers_are_counted_by_what_was_read() {
    let app = TestApp::strict();
    let pairs = json!([["the quake hits", "zzz city"], ["new york", "town"]]);
    app.ask("/similarity", json!({"pairs": pairs, "method": "avg-cos"})).await;
    app.ask("/rank", json!({"query": "quake", "candidates": ["city", "town"], "method": "wmd"}))
        .await;
    let page = app.get("/metrics").await.text();
    for line in [
        "cognate_texts_total 7",
        "cognate_unknown_tokens_total 1",
        "cognate_method_requests_total{method=\"avg-cos\"} 1",
        "cognate_requests_total{route=\"/similarity\",method=\"POST\",status=\"200\"} 1",
        "cognate_request_duration_seconds_count{route=\"/rank\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
}

/// Of a stream, each chunk of lines that got a score is an answer of its method, and nothing else is.
#[tokio::test]
async fn a_stream_counts_the_chunks_that_were_scored() {
    const SOUND: &str = "[\"quake\",\"city\"]\n";
    let counted = async |app: &TestApp| {
        let page = app.get("/metrics").await.text();
        let count = page.lines().find_map(|line| {
            line.strip_prefix("cognate_method_requests_total{method=\"avg-cos\"} ")
        });
        count.unwrap().parse::<usize>().unwrap()
    };
    let lines = |body: Body| {
        let request = Request::post("/similarity?method=avg-cos");
        request.header("content-type", "application/x-ndjson").body(body).unwrap()
    };
    let app = TestApp::new();
    app.send(lines(Body::from("{\n".repeat(300)))).await;
    assert_eq!(counted(&app).await, 0, "no line is a pair");
    app.send(lines(Body::from(SOUND.repeat(300)))).await;
    assert_eq!(counted(&app).await, 2, "300 lines are two chunks");

    // The stream itself holds the only unit.
    let full = TestApp::with(|settings| {
        settings.admission_units = 1;
        settings.compute_deadline_ms = 20;
    });
    let refused = full.send(lines(Body::from(SOUND))).await.text();
    assert!(refused.contains("\"overloaded\""), "{refused}");
    assert_eq!(counted(&full).await, 0, "every line was refused");

    // A client that goes away before its answer is there.
    let (sender, receiver) = tokio::sync::oneshot::channel::<Bytes>();
    let late = stream::once(async { Ok::<_, std::io::Error>(receiver.await.unwrap()) });
    let response = app.app.router().oneshot(lines(Body::from_stream(late))).await.unwrap();
    drop(response);
    sender.send(Bytes::from(SOUND)).unwrap();
    while app.app.streams.in_use().0 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(counted(&app).await, 3, "the chunk was scored, though nobody read its scores");
}

/// Work that finds no place to wait was admitted before: it counts as shed by the queue alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_counted_once() {
    let app = TestApp::with(|settings| {
        settings.compute_threads = Some(1);
        settings.compute_queue = 0;
    });
    let (finish, finished) = mpsc::channel::<()>();
    let held = {
        let app = app.app.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + Duration::from_secs(60);
            let wait = move |_: &_| {
                let _ = finished.recv();
                Ok(())
            };
            app.compute.run(&Client::default(), deadline, &app.metrics, wait).await
        })
    };
    while app.app.compute.counts().0 == 0 {
        tokio::task::yield_now().await;
    }
    let pairs = vec![["the quake hits the city", "new york"]; 5000];
    let question = json!({ "pairs": pairs }).to_string();
    app.post("/similarity", question).await.refusal(503, "overloaded");
    drop(finish);
    held.await.unwrap().unwrap().unwrap();
    let page = app.get("/metrics").await.text();
    for line in
        ["cognate_shed_total{reason=\"queue\"} 1", "cognate_shed_total{reason=\"admission\"} 0"]
    {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
}

/// Ten thousand paths, and verbs of the client's making, add nothing.
#[tokio::test]
async fn no_client_makes_the_page_grow() {
    let app = TestApp::new();
    let ask = async |verb: &str, path: &str| {
        let request = Request::builder().method(verb).uri(path).body(Body::empty()).unwrap();
        app.send(request).await
    };
    for verb in ["GET", "BREW"] {
        ask(verb, "/first").await;
        ask(verb, "/similarity").await;
    }
    // The first page is a route's first request, too.
    app.get("/metrics").await;
    let series = app.get("/metrics").await.text().lines().count();
    for number in 0..10_000 {
        let path = format!("/p{number}?key={number}");
        ask(if number % 2 == 0 { "GET" } else { "BREW" }, &path).await;
    }
    assert_eq!(app.get("/metrics").await.text().lines().count(), series);
}
