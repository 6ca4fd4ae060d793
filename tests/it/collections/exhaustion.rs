//! Small requests about collections that try to use the service up: filters, listings that nobody waits
//! for, rankings of everything. What each takes is bounded before it is taken.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::killed::{ask, send};
use super::{call, done};
use crate::support::app::TestApp;
use crate::support::default_model;
use crate::support::process::{Process, limit_data, memory};

const MIB: u64 = 1 << 20;

/// A filter of so many bytes that a tree of it would be eighty times as long.
fn long_filter() -> String {
    format!(r#"{{"any":[{}{{"a":0}}]}}"#, r#"{"a":0},"#.repeat(900_000))
}

#[test]
fn a_filter_as_long_as_a_body_takes_no_memory() {
    let process = Process::start(&[]);
    ask(process.address, "PUT", "/collections/news", "{}");
    let item = r#"{"items":[{"id":1,"text":"the quake"}]}"#;
    ask(process.address, "POST", "/collections/news/items", item);
    let idle = memory(&process, "VmRSS:");
    limit_data(&process, 480 * MIB);
    for of in [r#""candidates":["b"]"#, r#""collection":"news""#] {
        let body = format!(r#"{{"query":"a",{of},"filter":{}}}"#, long_filter());
        let (status, answer) = send(process.address, "POST", "/rank", &body).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["code"]), (422, &json!("invalid_field")), "{answer}");
        assert_eq!(answer["errors"][0]["pointer"], "/filter", "{answer}");
    }
    // The body itself was held, as admission knows.
    let most = memory(&process, "VmHWM:").saturating_sub(idle);
    assert!(most <= 64 * MIB, "{} MiB over idle", most / MIB);
}

/// Items whose attribute is one of a hundred numbers.
async fn with_numbers(app: &TestApp, count: usize) {
    done(app, "PUT", "/collections/news", Some(&json!({}))).await;
    let item = |at: usize| json!({"id": at, "text": "the quake", "attributes": {"n": at % 100}});
    for first in (0..count).step_by(5_000) {
        let items: Vec<Value> = (first..count.min(first + 5_000)).map(item).collect();
        done(app, "POST", "/collections/news/items", Some(&json!({ "items": items }))).await;
    }
}

/// A filter of the most conditions that there may be, none of which holds, of more attributes than have
/// columns.
fn dear_filter() -> Value {
    let none = |at: usize| json!({format!("n{}", at % 40): {"gt": 1000 + at}});
    json!({"any": (0..340).map(none).collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_filter_that_would_take_longer_than_there_is_time_is_refused() {
    // Time enough for a busy machine to begin, and too little for so many conditions.
    let app = TestApp::with(|settings| settings.compute_deadline_ms = 40);
    with_numbers(&app, 30_000).await;
    let filter = dear_filter();
    let rank = json!({"collection": "news", "query": "quake", "filter": filter});
    let refused = call(&app, "POST", "/rank", Some(&rank)).await.refusal(422, "too_much_work");
    assert_eq!(refused["errors"][0]["pointer"], "/filter");
    let written = filter.to_string().replace('"', "%22").replace('{', "%7B").replace('}', "%7D");
    let path = format!("/collections/news/items?filter={written}");
    let refused = call(&app, "GET", &path, None).await.refusal(422, "too_much_work");
    assert_eq!(refused["errors"][0]["pointer"], "/filter");
    // One question of each is no trouble.
    let one = "/collections/news/items?limit=1&filter=%7B%22n%22:7%7D";
    assert_eq!(done(&app, "GET", one, None).await["total"], 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_hold_up_no_write() {
    let app = TestApp::with(|settings| settings.compute_threads = Some(1));
    with_numbers(&app, 20_000).await;
    let written = dear_filter().to_string().replace('"', "%22");
    let written = written.replace('{', "%7B").replace('}', "%7D");
    let path = format!("/collections/news/items?limit=1&filter={written}");
    let mut listings = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let (app, path) = (TestApp::over(app.app.clone()), path.clone());
        listings.spawn(async move { call(&app, "GET", &path, None).await.status });
    }
    let item = json!({"items": [{"id": "new", "text": "a flood"}]});
    done(&app, "POST", "/collections/news/items", Some(&item)).await;
    done(&app, "GET", "/collections/news/items/new", None).await;
    app.app.reload().await.unwrap();
    let answered = std::iter::from_fn(|| listings.try_join_next()).count();
    assert!(answered < 30, "the listings were answered before");
    // Who does not wait any more is not computed for.
    listings.abort_all();
    while listings.join_next().await.is_some() {}
    app.until_idle(std::time::Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_ranking_whose_memory_is_not_there_is_refused() {
    let app = TestApp::with(|settings| settings.unsent_bytes = Some(1 << 19));
    with_numbers(&app, 10_000).await;
    let rank = |more: Value| {
        let mut rank = json!({"collection": "news", "query": "quake", "method": "dynamax",
            "shortlist": "all"});
        rank.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rank
    };
    let refused = call(&app, "POST", "/rank", Some(&rank(json!({})))).await;
    let refused = refused.refusal(422, "too_much_work");
    assert!(refused["detail"].as_str().unwrap().contains("unsent_bytes"), "{refused}");
    for fewer in [json!({"shortlist": 100}), json!({"filter": {"n": 7}})] {
        let found = done(&app, "POST", "/rank", Some(&rank(fewer))).await;
        assert_eq!(found["items"], 100);
    }
    let metrics = app.get("/metrics").await.text();
    assert!(metrics.contains("\ncognate_unsent_bytes 0\n"), "it is given back: {metrics}");
}

#[test]
fn a_ranking_by_feedback_keeps_of_each_item_its_tokens_alone() {
    let model = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let process = Process::serve(&model, &[]);
    ask(process.address, "PUT", "/collections/news", "{}");
    let words = ["earthquake", "city", "flood", "river", "xqzvw", "kitchen", "election"];
    for first in (0..60_000).step_by(10_000) {
        let text = |at: usize| {
            let word = |place: usize| words[(at / 7_usize.pow(place as u32 % 5) + place) % 7];
            (0..12).map(word).collect::<Vec<_>>().join(" ")
        };
        let item = |at: usize| format!(r#"{{"id":{at},"text":"{}"}}"#, text(at));
        let items: Vec<String> = (first..first + 10_000).map(item).collect();
        let body = format!(r#"{{"items":[{}]}}"#, items.join(","));
        ask(process.address, "POST", "/collections/news/items", &body);
    }
    let before = memory(&process, "VmHWM:");
    for more in [r#""method":"rm3""#, r#""fuse":[{"method":"rm3"},{"method":"bm25"}]"#] {
        let body = format!(r#"{{"collection":"news","query":"earthquake in the city",{more}}}"#);
        // In a slow build it may be late, which is no matter here.
        let (status, answer) = send(process.address, "POST", "/rank", &body).unwrap();
        assert!([200, 503].contains(&status), "{status}: {answer}");
    }
    let taken = memory(&process, "VmHWM:") - before;
    assert!(taken <= 48 * MIB, "{} MiB for 60,000 items", taken / MIB);
}

/// Loads items of an event, so many of the same text, each with its number behind it.
fn with_event(process: &Process, count: usize, text: &str) {
    ask(process.address, "PUT", "/collections/day", "{}");
    for first in (0..count).step_by(100) {
        let item = |at: usize| {
            let event = json!({"id": "e", "size": 2, "score": 0.5});
            json!({"id": at, "text": format!("{at} {text}"), "event": event})
        };
        let items: Vec<Value> = (first..first + 100).map(item).collect();
        let body = json!({ "items": items }).to_string();
        ask(process.address, "POST", "/collections/day/items", &body);
    }
}

/// Readers of alerts who read nothing are told little, and nobody else waits for them.
#[test]
fn alerts_that_nobody_reads_take_little() {
    let process = Process::start(&[]);
    with_event(&process, 1000, &"quake ".repeat(1300));
    let idle = memory(&process, "VmRSS:");
    limit_data(&process, 480 * MIB);
    let head = "GET /collections/day/events/stream?after=&follow=false HTTP/1.1\r\nhost: x\r\n\r\n";
    let reader = |_| {
        let mut stream = TcpStream::connect(process.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let readers: Vec<TcpStream> = (0..64).map(reader).collect();
    // Each was sent what the sockets hold, and has more waiting for it.
    let waiting = || {
        let (_, metrics) = send(process.address, "GET", "/metrics", "").unwrap();
        let line = metrics.lines().find_map(|line| line.strip_prefix("cognate_unsent_bytes "));
        line.unwrap().parse::<f64>().unwrap()
    };
    let begun = Instant::now();
    while waiting() < 64.0 * 64.0 * 1024.0 && begun.elapsed() < Duration::from_secs(60) {
        let (status, _) = send(process.address, "GET", "/collections/day/items/5", "").unwrap();
        assert_eq!(status, 200);
        sleep(Duration::from_millis(100));
    }
    let most = memory(&process, "VmHWM:").saturating_sub(idle);
    assert!(most <= 64 * MIB, "{} MiB over idle", most / MIB);
    let (_, metrics) = send(process.address, "GET", "/metrics", "").unwrap();
    assert!(metrics.contains("\ncognate_stream_spool_bytes 0\n"), "no alert is put into a file");
    drop(readers);
}

/// Words as long as texts are no names of events, and what is counted of texts is paid for.
#[test]
fn names_of_events_of_long_words_take_little() {
    let process = Process::start(&[]);
    let words = ["b", "c", "d", "f"].map(|letter| letter.repeat(2000));
    with_event(&process, 2000, &words.join(" "));
    let idle = memory(&process, "VmRSS:");
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let address = process.address;
            std::thread::spawn(move || send(address, "GET", "/collections/day/events", "").unwrap())
        })
        .collect();
    for asked in asked {
        let (status, answer) = asked.join().unwrap();
        assert_eq!(status, 200, "{answer}");
    }
    let most = memory(&process, "VmHWM:").saturating_sub(idle);
    assert!(most <= 64 * MIB, "{} MiB over idle", most / MIB);
}

/// A second look is weighed by the words of both sides.
#[tokio::test]
async fn a_match_whose_second_look_would_be_late_is_refused() {
    let app = TestApp::with_model(default_model(), |settings| settings.compute_threads = Some(2));
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let long = |at: usize| format!("{at} {}", "quake in the city of lima ".repeat(80));
    let items = |from: usize, count: usize| -> Vec<Value> {
        (from..from + count).map(|at| json!({"id": at, "text": long(at)})).collect()
    };
    done(&app, "POST", "/collections/news/items", Some(&json!({"items": items(0, 100)}))).await;
    let matched = |count: usize| {
        json!({"items": items(1000, count), "second": "wmd", "nearest": 1000, "add": "none",
            "threshold": 0, "last": 1000})
    };
    let refused = call(&app, "POST", "/collections/news/match", Some(&matched(100))).await;
    refused.refusal(422, "too_much_work");
    let short = json!({"items": [{"id": "a", "text": "quake"}], "second": "wmd", "threshold": 0});
    done(&app, "POST", "/collections/news/match", Some(&short)).await;
}
