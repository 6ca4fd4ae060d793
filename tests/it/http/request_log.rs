//! The log of requests, as the built binary writes it: who asked, what, how much, and what came of
//! it; and how much of that is written.

use std::time::{Duration, Instant};

use cognate_server::http::auth::keys::{Scope, line};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::listener::answer;
use crate::support::process::Process;

const SHOP: &str = "the-key-of-the-shop";
const OPS: &str = "the-key-of-the-operators";

/// The binary with a key of each scope.
fn serve(folder: &tempfile::TempDir, more: &[&str]) -> Process {
    let keys = folder.path().join("keys");
    let lines = [line("shop", Scope::Query, SHOP), line("ops", Scope::Admin, OPS)];
    std::fs::write(&keys, lines.map(Result::unwrap).join("\n")).unwrap();
    let always = ["--shutdown-delay-s", "0", "--keys-file", keys.to_str().unwrap()];
    let arguments: Vec<String> = always.iter().chain(more).map(|&one| one.to_owned()).collect();
    Process::start(&arguments)
}

/// Sends one request and reads its answer; gives where the client sent it from.
async fn ask(process: &Process, id: &str, verb_and_path: &str, key: &str, body: &str) -> String {
    ask_for(process, id, verb_and_path, key, "application/json", body).await
}

/// Sends one request with a body of that media type.
async fn ask_for(
    process: &Process,
    id: &str,
    verb_and_path: &str,
    key: &str,
    media: &str,
    body: &str,
) -> String {
    let mut stream = TcpStream::connect(process.address).await.unwrap();
    let peer = stream.local_addr().unwrap().to_string();
    let length = body.len();
    let request = format!(
        "{verb_and_path} HTTP/1.1\r\nhost: h\r\nx-request-id: {id}\r\nauthorization: Bearer {key}\r\n\
         content-type: {media}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(&mut stream).await.unwrap();
    peer
}

/// Every line so far.
fn lines(process: &Process) -> Vec<Value> {
    let log = process.log();
    log.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

/// The line of the request of that id, once it is there.
fn told(process: &mut Process, id: &str) -> Value {
    let field = format!("\"request_id\":\"{id}\"");
    process.until_log(id, |log| log.lines().any(|line| line.contains(&field)));
    lines(process).into_iter().find(|line| line["request_id"] == id).unwrap()
}

/// What a key asked of which collection, there or not; what is no name is not repeated.
#[tokio::test]
async fn a_line_names_the_collection() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = serve(&folder, &[]);
    let of = json!({"collection": "none", "query": "quake"}).to_string();
    for (id, what, body, named) in [
        ("shown", "GET /collections/none", "", Some("none")),
        ("listed", "GET /collections/none/items?limit=1", "", Some("none")),
        ("ranked", "POST /rank", of.as_str(), Some("none")),
        ("unnamed", "GET /collections/No%20name", "", None),
    ] {
        ask(&process, id, what, OPS, body).await;
        let line = told(&mut process, id);
        assert_eq!(line.get("collection").and_then(Value::as_str), named, "{line}");
    }
}

#[tokio::test]
async fn a_line_says_who_asked_what_and_what_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = serve(&folder, &["--rate-limit-per-key", "2"]);
    let body = json!({"query": "quake", "candidates": ["city", "town", "new york"],
        "method": "avg-cos"});
    let body = body.to_string();
    let peer = ask(&process, "good", "POST /rank", SHOP, &body).await;
    let good = told(&mut process, "good");
    let expected = json!({"level": "INFO", "message": "answered", "key": "shop", "peer": peer,
        "route": "/rank", "method": "POST", "model": "default", "scoring_method": "avg-cos",
        "items": 3, "body_bytes": body.len(), "status": 200, "code": "", "detail": ""});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(good[field], *value, "{field} in {good}");
    }
    let took = good["took_ms"].as_f64().unwrap();
    assert_eq!((took * 1e3).round() / 1e3, took, "to the microsecond");

    // Refusals tell whose they are, too, as far as that was found out.
    let rank = "POST /rank";
    let peer = ask(&process, "nobody", rank, "another-key", &body).await;
    let nobody = told(&mut process, "nobody");
    assert_eq!((&nobody["status"], &nobody["code"]), (&json!(401), &json!("unauthorized")));
    assert_eq!((&nobody["peer"], nobody.get("key")), (&json!(peer), None), "{nobody}");
    ask(&process, "wrong", rank, SHOP, "{\"query\": 1}").await;
    let wrong = told(&mut process, "wrong");
    assert_eq!((&wrong["key"], &wrong["code"]), (&json!("shop"), &json!("invalid_field")));
    assert_eq!((&wrong["body_bytes"], wrong.get("model")), (&json!(12), None), "{wrong}");
    while !process.log().contains("\"rate_limited\"") {
        ask(&process, "again", rank, SHOP, &body).await;
    }
    let spent = lines(&process).into_iter().find(|line| line["code"] == "rate_limited").unwrap();
    assert_eq!((&spent["level"], &spent["key"]), (&json!("INFO"), &json!("shop")));
    let time = spent["timestamp"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    assert!(spent["detail"].as_str().unwrap().contains("`rate_limit_per_key`"), "{spent}");

    // Of a stream, model and method are known when its answer begins.
    let lines = "POST /similarity?method=avg-cos";
    ask_for(&process, "stream", lines, OPS, "application/x-ndjson", "").await;
    let stream = told(&mut process, "stream");
    assert_eq!(
        (&stream["scoring_method"], &stream["model"]),
        (&json!("avg-cos"), &json!("default"))
    );
    assert_eq!((&stream["status"], &stream["items"]), (&json!(200), &json!(0)), "{stream}");

    // Who steers the service is told, and who only looks after it is not.
    ask(&process, "reload", "POST /-/reload", OPS, "").await;
    let reload = told(&mut process, "reload");
    assert_eq!((&reload["key"], &reload["status"]), (&json!("ops"), &json!(200)));
    ask(&process, "health", "GET /health", SHOP, "").await;
    ask(&process, "last", "GET /models", OPS, "").await;
    told(&mut process, "last");
    let log = process.log();
    assert!(!log.contains("\"health\""), "{log}");
    for secret in [SHOP, OPS, "another-key", "york"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

/// Whoever takes a key back looks whether its id is among those that went.
#[tokio::test]
async fn a_reload_tells_which_keys_came_and_went() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = serve(&folder, &[]);
    let hang_up = |process: &mut Process| {
        let loads = |log: &str| log.matches("\"keys loaded\"").count();
        let before = loads(&process.log());
        process.signal("HUP");
        process.until_log("the keys", |log| loads(log) > before);
        let last = lines(process).into_iter().rfind(|line| line["message"] == "keys loaded");
        let mut last = last.unwrap();
        ["added", "removed", "unchanged", "keys"].map(|field| last[field].take())
    };
    let start = lines(&process).into_iter().find(|line| line["message"] == "keys loaded").unwrap();
    assert_eq!(
        (&start["keys"], &start["added"], &start["unchanged"]),
        (&json!(2), &json!(null), &json!(null))
    );
    assert_eq!(hang_up(&mut process), [json!(null), json!(null), json!(true), json!(2)]);
    // One key has other rights now, one has another id, one is gone and one is new.
    let write = |keys: [(&str, Scope, &str); 3]| {
        let lines = keys.map(|(id, scope, key)| line(id, scope, key).unwrap());
        std::fs::write(folder.path().join("keys"), lines.join("\n")).unwrap();
    };
    write([("shop", Scope::Query, SHOP), ("ops", Scope::Query, OPS), ("web", Scope::Query, "web")]);
    assert_eq!(hang_up(&mut process), [json!("ops,web"), json!("ops"), json!(null), json!(3)]);
    write([
        ("shop", Scope::Query, SHOP),
        ("ops", Scope::Query, OPS),
        ("web-2", Scope::Query, "web-2"),
    ]);
    assert_eq!(hang_up(&mut process), [json!("web-2"), json!("web"), json!(null), json!(3)]);
    write([
        ("shop-2", Scope::Query, SHOP),
        ("ops", Scope::Query, OPS),
        ("web-2", Scope::Query, "web-2"),
    ]);
    assert_eq!(hang_up(&mut process), [json!("shop-2"), json!("shop"), json!(null), json!(3)]);
}

/// What the chunks of an answer hold.
async fn chunks(client: &mut TcpStream) -> String {
    let (mut read, mut part) = (String::new(), [0; 4096]);
    while !read.ends_with("\r\n0\r\n\r\n") {
        let count = client.read(&mut part).await.unwrap();
        assert!(count > 0, "{read}");
        read.push_str(str::from_utf8(&part[..count]).unwrap());
    }
    let (_, body) = read.split_once("\r\n\r\n").unwrap();
    // Every other line is the size of a chunk.
    body.split("\r\n").skip(1).step_by(2).collect()
}

/// A stream is told and counted when it ends, with all that it was: its head says nothing of that.
#[tokio::test]
async fn a_stream_is_told_as_long_and_as_large_as_it_was() {
    const LASTS: Duration = Duration::from_millis(200);
    let mut process = Process::start(&[]);
    let mut client = TcpStream::connect(process.address).await.unwrap();
    let head = "POST /similarity?method=avg-cos HTTP/1.1\r\nhost: h\r\nx-request-id: long\r\n\
                content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    let [pair, fault] = ["[\"quake\",\"city\"]\n", "[]\n"];
    let chunk = |line: &str| format!("{:x}\r\n{line}\r\n", line.len());
    let begun = Instant::now();
    client.write_all(format!("{head}{}", chunk(pair)).as_bytes()).await.unwrap();
    tokio::time::sleep(LASTS).await;
    let rest = format!("{}{}0\r\n\r\n", chunk(fault), chunk(pair));
    client.write_all(rest.as_bytes()).await.unwrap();
    let lines = chunks(&mut client).await;
    let most = begun.elapsed();
    let line = told(&mut process, "long");
    let expected = json!({"level": "INFO", "message": "answered", "outcome": "complete",
        "lines": 3, "answered": 3, "items": 2, "body_bytes": 2 * pair.len() + fault.len(),
        "answer_bytes": lines.len(), "route": "/similarity", "scoring_method": "avg-cos",
        "codes": "invalid_field 1"});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(line[field], *value, "{field} in {line}");
    }
    let [took, computed] = ["took_ms", "computed_ms"].map(|field| line[field].as_f64().unwrap());
    assert!(took >= LASTS.as_secs_f64() * 1e3, "{line}");
    assert!(computed > 0.0 && computed < most.as_secs_f64() * 1e3, "{line}");
    for says in [
        "cognate_stream_duration_seconds_bucket{route=\"/similarity\",le=\"0.1\"} 0\n",
        "cognate_stream_duration_seconds_count{route=\"/similarity\"} 1\n",
        "cognate_stream_computed_seconds_count{route=\"/similarity\"} 1\n",
        "cognate_stream_lines_total{route=\"/similarity\"} 3\n",
        "cognate_stream_items_total{route=\"/similarity\"} 2\n",
    ] {
        until_page(&process, says).await;
    }
    let mut operator = TcpStream::connect(process.address).await.unwrap();
    operator.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    let (_, page) = answer(&mut operator).await.unwrap();
    let timed = "cognate_request_duration_seconds_count{route=\"/similarity\"}";
    assert!(!String::from_utf8_lossy(&page).contains(timed), "its time is that of a stream");
}

#[tokio::test]
async fn who_wants_fewer_lines_gets_fewer() {
    let folder = tempfile::tempdir().unwrap();
    for (wanted, refused) in [("refused", true), ("none", false)] {
        let mut process = serve(&folder, &["--log-requests", wanted]);
        ask(&process, "good", "GET /models", SHOP, "").await;
        ask(&process, "bad", "GET /models", "another-key", "").await;
        ask(&process, "stranger", "POST /-/backup", "another-key", "").await;
        ask(&process, "reload", "POST /-/reload", OPS, "").await;
        // The log keeps the order of requests, and a reload is always told.
        told(&mut process, "reload");
        let ids: Vec<Value> = lines(&process).iter().map(|one| one["request_id"].clone()).collect();
        assert!(!ids.contains(&json!("good")), "{wanted}: {ids:?}");
        for id in ["bad", "stranger"] {
            assert_eq!(ids.contains(&json!(id)), refused, "{wanted}: {ids:?}");
        }
    }
}

/// What a log that is looked through for what went wrong must show: writes that were refused for want of room,
/// one by one and in a stream.
#[tokio::test]
async fn want_of_room_is_a_warning() {
    let mut process = Process::start(&["--collection-items".to_owned(), "1".to_owned()]);
    ask(&process, "made", "PUT /collections/news", "", "{}").await;
    let body = r#"{"items": [{"id": "a", "text": "quake"}, {"id": "b", "text": "city"}]}"#;
    ask(&process, "full", "POST /collections/news/items", "", body).await;
    let line = told(&mut process, "full");
    assert_eq!(
        (&line["level"], &line["status"], &line["code"], line.get("codes")),
        (&json!("WARN"), &json!(507), &json!("collection_full"), None),
        "{line}"
    );
    let lines = "{\"id\":\"a\",\"text\":\"quake\"}\n{\"id\":\"b\",\"text\":\"\"}\n{}\n";
    let path = "POST /collections/news/match";
    ask_for(&process, "lines", path, "", "application/x-ndjson", lines).await;
    let line = told(&mut process, "lines");
    assert_eq!(line["codes"], "empty_text 1, invalid_field 1", "{line}");
}

/// However many requests there are, the log has a bounded number of lines of them and says how many
/// it has not.
#[tokio::test]
async fn of_many_requests_a_sample_is_told_and_the_rest_counted() {
    const SENT: u64 = 2000;
    let mut process = Process::start(&[]);
    let mut stream = TcpStream::connect(process.address).await.unwrap();
    let request = b"GET /models HTTP/1.1\r\nhost: h\r\n\r\n";
    for _ in 0..SENT {
        stream.write_all(request).await.unwrap();
        answer(&mut stream).await.unwrap();
    }
    let counts = |log: &str| {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.fold((0, 0), |(told, left_out), line| match line["message"].as_str() {
            Some("answered") => (told + 1, left_out),
            Some("lines left out of the log") => {
                (told, left_out + line["answered"].as_u64().unwrap())
            }
            _ => (told, left_out),
        })
    };
    process.until_log("every request in one of the two counts", |log| {
        // A line that is still being written is not read.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let (told, left_out) = counts(whole);
        told + left_out == SENT
    });
    let (told, left_out) = counts(&process.log());
    assert!(told >= 100 && left_out > 0, "{told} told, {left_out} left out");
}

/// A client that goes away before it is answered leaves a line, and so does one that is too slow.
#[tokio::test]
async fn clients_that_leave_and_connections_that_end_early_are_told() {
    let five = ["--admission-units", "5", "--max-pairs", "5", "--max-candidates", "5"];
    let more = ["--max-texts", "5", "--header-timeout-s", "1"];
    let arguments = five.iter().chain(&more).map(|&one| one.to_owned()).collect::<Vec<_>>();
    let mut process = Process::start(&arguments);
    let mut slow = TcpStream::connect(process.address).await.unwrap();
    let peer = slow.local_addr().unwrap();
    slow.write_all(b"GET /models HTTP").await.unwrap();
    process.until_log("a head that took too long", |log| log.contains("header_timeout_s"));
    let early = |process: &Process, reason: &str| {
        lines(process).into_iter().find(|line| line["reason"] == reason).unwrap()
    };
    let line = early(&process, "header_timeout");
    assert_eq!((&line["level"], &line["peer"]), (&json!("INFO"), &json!(peer.to_string())));

    // One holds all units until its body comes, and another waits for them.
    let head = |id: &str| {
        format!(
            "POST /rank HTTP/1.1\r\nhost: h\r\nx-request-id: {id}\r\n\
             content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
        )
    };
    let mut first = TcpStream::connect(process.address).await.unwrap();
    first.write_all(head("first").as_bytes()).await.unwrap();
    until_page(&process, "cognate_admission_units_in_use 5\n").await;
    let mut gone = TcpStream::connect(process.address).await.unwrap();
    gone.write_all(head("gone").as_bytes()).await.unwrap();
    until_page(&process, "cognate_admission_waiting 1\n").await;
    let peer = gone.local_addr().unwrap();
    gone.set_zero_linger().unwrap();
    drop(gone);
    let line = told(&mut process, "gone");
    assert_eq!((&line["message"], line.get("status")), (&json!("client gone"), None), "{line}");
    process.until_log("the end of its connection", |log| log.contains("\"client_gone\""));
    assert_eq!(early(&process, "client_gone")["peer"], peer.to_string());
}

/// Asks for the metrics until they say so.
async fn until_page(process: &Process, says: &str) {
    let mut operator = TcpStream::connect(process.address).await.unwrap();
    loop {
        operator.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        let (_, page) = answer(&mut operator).await.unwrap();
        if String::from_utf8_lossy(&page).contains(says) {
            return;
        }
    }
}
