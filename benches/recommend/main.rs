//! What `/rank` takes for recommendations: many queries in one request beside as many requests, and long
//! lists as lines, with the memory that they take.
//!
//! `cargo bench --bench recommend [-- METHOD…]` asks the router itself, without sockets, on the default
//! model and one compute thread. Times are processor time of the whole process, figures of memory the
//! most that this process held at once, reset before each (Linux).

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use cognate::engine::Engine;
use cognate::model::{Model, OpenOptions};
use cognate_server::http::{App, Models, Settings};
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use support::{Clock, Contestant};
use tower::ServiceExt;

/// A mean of vectors, a set method, the model's own choice, one with bounds, a ranker.
const METHODS: [&str; 5] = ["avg-cos", "dynamax-jaccard", "coverage-blend", "wmd", "bm25"];
const QUERIES: usize = 100;
const CANDIDATES: usize = 1000;
const STREAMED: [usize; 3] = [1_000, 10_000, 100_000];
/// Words of a text.
const WORDS: usize = 10;
const ROUNDS: usize = 3;

fn main() {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let methods =
        || METHODS.iter().filter(|name| wanted.is_empty() || wanted.iter().any(|w| w == *name));
    let lines = support::running_text();
    let short = |line: &String| line.split_whitespace().take(WORDS).collect::<Vec<_>>().join(" ");
    let texts: Arc<[String]> = lines.iter().map(short).collect();
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    let model = Model::open(Path::new(default), &OpenOptions::default()).expect("the default");
    let settings =
        Settings { compute_threads: Some(1), compute_deadline_ms: 60_000, ..Settings::default() };
    let engine = Engine::new(model).expect("an engine");
    let app =
        App::with_models(settings, Models::with_engine("default", engine)).expect("a service");
    let router = app.router();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");

    let (queries, candidates) = texts.split_at(QUERIES);
    let candidates = &candidates[..CANDIDATES];
    println!(
        "{QUERIES} queries, {CANDIDATES} candidates of {WORDS} words, the best 10 of each; ms in all"
    );
    println!("{:>16} {:>12} {:>12} {:>8}", "method", "100 requests", "one request", "ratio");
    let mut several = Vec::new();
    for &method in methods() {
        let body = |more: Value| {
            let mut body = json!({"candidates": candidates, "method": method, "top_k": 10});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
            body.to_string()
        };
        let singles: Vec<String> =
            queries.iter().map(|query| body(json!({"query": query}))).collect();
        let together = body(json!({"queries": queries}));
        let single = || singles.iter().map(|body| runtime.block_on(ask(&router, body))).sum();
        let joint = || runtime.block_on(ask(&router, &together));
        let mut contestants: Vec<Contestant<'_>> =
            vec![("100 requests", Box::new(single)), ("one request", Box::new(joint))];
        let seconds = support::interleaved_by(Clock::Process, &mut contestants, ROUNDS);
        let [alone, joint] = [seconds[0] * 1e3, seconds[1] * 1e3];
        println!("{method:>16} {alone:>12.1} {joint:>12.1} {:>8.2}", alone / joint);
        several.push(json!({"method": method, "requests_ms": alone, "one_request_ms": joint}));
    }

    println!("\ncandidates as lines, the best 10; us a candidate and MiB at most beyond the start");
    println!("{:>16} {:>24} {:>10} {:>10} {:>8}", "method", "question", "candidates", "us", "MiB");
    let questions = [
        ("query", json!({"query": queries[0], "top_k": 10})),
        (
            "like 5, unlike 2, varied",
            json!({"like": queries[..5], "unlike": queries[5..7], "top_k": 10,
            "diversify": {"lambda": 0.7}}),
        ),
    ];
    let mut streamed = Vec::new();
    for &method in methods().filter(|&&method| method != "bm25") {
        for (name, question) in &questions {
            for count in STREAMED {
                let mut question = question.clone();
                question["method"] = json!(method);
                let held = reset_peak();
                let answer = || runtime.block_on(ask_lines(&router, &question, &texts, count));
                let mut contestants: Vec<Contestant<'_>> = vec![("lines", Box::new(answer))];
                let seconds = support::interleaved_by(Clock::Process, &mut contestants, ROUNDS);
                let (each, most) = (seconds[0] * 1e6 / count as f64, mebibytes("VmHWM:") - held);
                println!("{method:>16} {name:>24} {count:>10} {each:>10.2} {most:>8.1}");
                streamed.push(json!({"method": method, "question": name, "candidates": count,
                    "us": each, "most_mib": most}));
            }
        }
    }
    support::record("recommend", &json!({"queries": several, "lines": streamed}));
}

/// Sends a request to the router and returns the number of bytes of the answer.
async fn ask(router: &Router, body: &str) -> u64 {
    let request = Request::post("/rank").header("content-type", "application/json");
    let request = request.body(Body::from(body.to_owned())).expect("a request");
    answer(router, request).await
}

/// Asks for the best of so many candidates, which are made as they are read.
async fn ask_lines(router: &Router, question: &Value, texts: &Arc<[String]>, count: usize) -> u64 {
    let texts = Arc::clone(texts);
    let first = std::iter::once(format!("{question}\n"));
    let lines = (0..count).map(move |index| {
        let text = &texts[(QUERIES + index) % texts.len()];
        format!("{}\n", json!({"id": index, "text": text}))
    });
    let mut lines = first.chain(lines);
    // As many lines as a client's buffer holds.
    let pieces = std::iter::from_fn(move || {
        let piece: String = lines.by_ref().take(256).collect();
        (!piece.is_empty()).then(|| Ok::<_, std::io::Error>(Bytes::from(piece)))
    });
    let request = Request::post("/rank").header("content-type", "application/x-ndjson");
    let request = request.body(Body::from_stream(stream::iter(pieces)));
    answer(router, request.expect("a request")).await
}

async fn answer(router: &Router, request: Request<Body>) -> u64 {
    let response = router.clone().oneshot(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    body.len() as u64
}

/// Forgets the most memory that was held at once; what is held now.
fn reset_peak() -> f64 {
    // If the reset fails, the figures cover the process's whole life.
    let _ = fs::write("/proc/self/clear_refs", "5");
    mebibytes("VmRSS:")
}

/// A figure of the process's memory.
fn mebibytes(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.map_or(f64::NAN, |kibibytes| kibibytes / 1024.0)
}
