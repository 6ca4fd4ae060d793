//! Alerts of a collection's events: what is told, in which order, where a reader goes on that comes back.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::killed::{ask, send};
use crate::collections::{call, done};
use crate::support;
use crate::support::app::TestApp;
use crate::support::process::Process;

const QUAKE: &str = "strong earthquake shakes the city of Lima";
const FLOOD: &str = "the river floods the old town of Passau";

/// The body of a match: of each text its id, its minute, what it says.
fn posts(posts: &[(String, i64, &str)]) -> Value {
    let item = |(id, minute, text): &(String, i64, &str)| json!({"id": id, "text": text, "time": 1_714_521_600 + 60 * minute});
    json!({"items": posts.iter().map(item).collect::<Vec<_>>()})
}

/// Copies of two texts in turn, from a number on.
fn turns(from: i64, count: i64) -> Value {
    let each = (from..from + count).map(|at| {
        let (name, text) = if at % 2 == 0 { ("q", QUAKE) } else { ("f", FLOOD) };
        (format!("{name}{at}"), at, text)
    });
    posts(&each.collect::<Vec<_>>())
}

async fn with_turns(count: i64) -> TestApp {
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/day", Some(&json!({}))).await;
    done(&app, "POST", "/collections/day/match", Some(&turns(0, count))).await;
    app
}

/// The lines of a stream that ends with what there is.
async fn lines(app: &TestApp, query: &str) -> Vec<Value> {
    let path = format!("/collections/day/events/stream?follow=false&{query}");
    let answer = call(app, "GET", &path, None).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn short(line: &Value) -> String {
    let of = |field: &str| line[field].as_str().unwrap_or("-").to_owned();
    format!("{} {} {} {}", of("kind"), of("event"), line["size"], of("item"))
}

#[tokio::test]
async fn alerts_are_told_in_order_and_a_reader_goes_on_after_any_of_them() {
    let app = with_turns(8).await;
    let body = json!({"events": ["f1"]});
    done(&app, "POST", "/collections/day/events/q0/merge", Some(&body)).await;
    done(&app, "POST", "/collections/day/match", Some(&turns(8, 1))).await;
    let more = posts(&[("c1".into(), 30, "my cat sleeps"), ("c2".into(), 31, "my cat sleeps")]);
    done(&app, "POST", "/collections/day/match", Some(&more)).await;
    let all = lines(&app, "after=&grown=3,9").await;
    let told: Vec<String> = all.iter().map(short).collect();
    // What moved or was counted anew tells nothing but the merge.
    let expected = ["open - null -", "grown q0 9 q8", "begun c1 2 c2", "merged q0 9 -"];
    assert_eq!(told, expected);
    assert_eq!((&all[3]["from"], &all[1]["text"]), (&json!(["f1"]), &json!(QUAKE)));
    assert_eq!(all[1]["time"], "2024-05-01T00:08:00Z");
    // As the events tell it that have these texts alone; of a merge nothing is told.
    let events = done(&app, "GET", "/collections/day/events", None).await;
    let chatter = |of: &str| {
        let mut events = events["events"].as_array().unwrap().iter();
        events.find(|event| event["id"] == of).unwrap()["chatter"].as_f64().unwrap()
    };
    assert_eq!(
        [&all[1]["chatter"], &all[2]["chatter"]],
        [&json!(chatter("q0")), &json!(chatter("c1"))]
    );
    assert!(chatter("c1") > chatter("q0") && all[3]["chatter"].is_null(), "{all:?}");
    for place in 0..all.len() {
        let id = all[place]["id"].as_str().unwrap();
        let rest = lines(&app, &format!("grown=3,9&after={id}")).await;
        assert_eq!(rest[1..], all[place + 1..], "{id}");
        assert_eq!(rest[0]["gap"], Value::Null);
    }
    assert_eq!(lines(&app, "grown=3,9").await.len(), 1, "from now on");
    let told: Vec<String> = lines(&app, "after=&least=1").await.iter().map(short).collect();
    assert_eq!(told[1..], ["begun q0 1 q0", "begun c1 1 c1", "merged q0 9 -"]);

    // Server-sent events say the same.
    let request = Request::get("/collections/day/events/stream?follow=false&grown=3,9&after=x");
    let request = request
        .header("accept", "text/event-stream")
        .header("last-event-id", all[1]["id"].as_str().unwrap());
    let answer = app.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let text = answer.text();
    let records: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(records.len(), 3, "{text}");
    let id = all[2]["id"].as_str().unwrap();
    let data = records[1].strip_prefix(&format!("event: begun\nid: {id}\ndata: ")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(data).unwrap(), all[2]);

    let wrong = ["model=none", "after=x", "after=1.2", "after=1.2.3.x%0Ay", "grown=a", "grown=0"];
    for wrong in wrong.into_iter().chain(["least=0", "leest=1"]) {
        let path = format!("/collections/day/events/stream?{wrong}");
        let answer = call(&app, "GET", &path, None).await;
        assert_eq!(answer.status, 422, "{wrong}: {}", answer.text());
    }
    let none = call(&app, "GET", "/collections/none/events/stream", None).await;
    assert_eq!(none.status, 404);
}

#[tokio::test]
async fn bursts_are_told_by_the_past_of_the_event() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/day", Some(&json!({}))).await;
    let quake = |at: i64, minute: i64| (format!("q{at}"), minute, QUAKE);
    let mut all = vec![quake(0, 0), quake(1, 10)];
    all.extend((0..14).map(|at| quake(2 + at, 1440 + at)));
    done(&app, "POST", "/collections/day/match", Some(&posts(&all))).await;
    let told: Vec<String> = lines(&app, "after=").await.iter().map(short).collect();
    let expected = ["open - null -", "begun q0 2 q1", "grown q0 10 q9", "bursting q0 12 q11"];
    assert_eq!(told, expected);
    // What was too old when a text came is no past of its event, though one request brought both.
    for together in [1, 12] {
        let app = TestApp::with_model(support::default_model(), |_| ());
        done(&app, "PUT", "/collections/day", Some(&json!({"ttl": "2h"}))).await;
        let later = (0..10).map(|at| quake(2 + at, 150 + at));
        let all: Vec<_> = [quake(0, 0), quake(1, 60)].into_iter().chain(later).collect();
        for part in all.chunks(together) {
            done(&app, "POST", "/collections/day/match", Some(&posts(part))).await;
        }
        let told: Vec<String> = lines(&app, "after=").await.iter().map(short).collect();
        assert_eq!(told, expected[..3], "{together} a request");
    }
}

#[tokio::test]
async fn what_may_be_missing_is_told() {
    let app = with_turns(8).await;
    let all = lines(&app, "after=&grown=3").await;
    let told: Vec<String> = all.iter().map(short).collect();
    assert_eq!(told[1..], ["begun q0 2 q2", "begun f1 2 f3", "grown q0 3 q4", "grown f1 3 f5"]);
    done(&app, "DELETE", "/collections/day/items/q2", None).await;
    let rest = lines(&app, &format!("grown=3&after={}", all[1]["id"].as_str().unwrap())).await;
    assert_eq!((&rest[0]["kind"], &rest[0]["gap"]), (&json!("open"), &json!(true)));
    assert_eq!(rest[1..], all[2..], "what is later than what is gone");
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_little_and_is_told_where_to_go_on() {
    let app = TestApp::with(|settings| settings.write_timeout_s = 1);
    done(&app, "PUT", "/collections/day", Some(&json!({}))).await;
    let text = "quake ".repeat(1300);
    for from in (0..2000).step_by(500) {
        let item = |at| json!({"id": format!("l{at}"), "text": text, "event": format!("l{at}")});
        let body = json!({"items": (from..from + 500).map(item).collect::<Vec<_>>()});
        done(&app, "POST", "/collections/day/items", Some(&body)).await;
    }
    let request = Request::get("/collections/day/events/stream?after=&least=1");
    let router = app.app.router();
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    while app.app.streams.in_use().0 > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (memory, _) = app.app.unsent.in_use();
    assert!(memory < 256 << 10, "{memory}");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() < 256 << 10, "{}", body.len());
    let told: Vec<Value> = body
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let end = told.last().unwrap();
    assert_eq!((&end["kind"], &end["code"]), (&json!("end"), &json!("request_timeout")));
    let rest = lines(&app, &format!("least=1&after={}", end["id"].as_str().unwrap())).await;
    // Both streams have a line that opens them, and the first one that ends it.
    assert_eq!(told.len() - 2 + rest.len() - 1, 2000);
    assert_eq!(rest[1]["item"], format!("l{}", told.len() - 2));
}

/// A stream that is read line by line from a socket.
struct Reading {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Reading {
    fn open(address: SocketAddr, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let last = last.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        let head = format!(
            "GET /collections/day/events/stream?after=&least=1&grown=5,10,20,40,80 HTTP/1.1\r\nhost: localhost\r\n\
             accept: text/event-stream\r\n{last}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Self { lines: BufReader::new(stream).lines() }
    }

    /// The next alert; none once the connection is closed.
    fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.lines.next()?.ok()?;
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

fn serve(data: &Path) -> Process {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    let data = data.to_str().unwrap().to_owned();
    let settings = ["--shutdown-grace-s", "10", "--shutdown-delay-s", "0"].map(str::to_owned);
    Process::serve(model.as_ref(), &[&["--data".to_owned(), data][..], &settings].concat())
}

#[test]
fn a_reader_of_a_server_that_was_killed_misses_nothing_and_reads_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut process = serve(&data);
    ask(process.address, "PUT", "/collections/day", "{}");
    let (mut told, mut sent) = (Vec::<Value>::new(), 0);
    for _ in 0..3 {
        // The reader is behind when the server is killed.
        let last = told.last().map(|alert| alert["id"].as_str().unwrap().to_owned());
        let mut reading = Reading::open(process.address, last.as_deref());
        assert_eq!(reading.next().unwrap()["kind"], "open");
        for _ in 0..10 {
            ask(process.address, "POST", "/collections/day/match", &turns(sent, 6).to_string());
            sent += 6;
        }
        told.extend((0..2).map(|_| reading.next().unwrap()));
        process.signal("KILL");
        process.wait(Duration::from_secs(10));
        process = serve(&data);
    }
    let last = told.last().map(|alert| alert["id"].as_str().unwrap().to_owned());
    let mut reading = Reading::open(process.address, last.as_deref());
    assert_eq!(reading.next().unwrap()["gap"], Value::Null);
    let all = "/collections/day/events/stream?after=&least=1&grown=5,10,20,40,80&follow=false";
    let (status, all) = send(process.address, "GET", all, "").unwrap();
    assert_eq!(status, 200);
    let all = all.lines().filter(|line| line.starts_with('{'));
    let all: Vec<Value> = all.map(|line| serde_json::from_str(line).unwrap()).collect();
    while told.last().map(|alert| &alert["id"]) != all.last().map(|alert| &alert["id"]) {
        told.push(reading.next().unwrap());
    }
    assert_eq!(told, all[1..]);
    assert_eq!(told.len(), 12, "{told:?}");

    // A merge that came while it was away.
    drop(reading);
    ask(process.address, "POST", "/collections/day/events/q0/merge", r#"{"events": ["f1"]}"#);
    process.signal("KILL");
    process.wait(Duration::from_secs(10));
    process = serve(&data);
    let last = told.last().unwrap()["id"].as_str();
    let mut reading = Reading::open(process.address, last);
    let merged = [(); 2].map(|()| reading.next().unwrap());
    assert_eq!(merged.each_ref().map(short), ["open - null -", "merged q0 180 -"]);

    // A server that stops says so, and where to go on.
    process.signal("TERM");
    let end = reading.next().unwrap();
    assert_eq!((&end["kind"], &end["code"]), (&json!("end"), &json!("draining")));
    assert_eq!(end["id"], merged[1]["id"]);
    assert!(reading.next().is_none());
    assert!(process.wait(Duration::from_secs(30)).success());
}
