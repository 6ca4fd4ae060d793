//! Clients that are told apart, by their keys or their addresses: whatever one of them holds, a share is
//! left to the others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Request;
use cognate_server::http::auth::client::Client;
use cognate_server::http::auth::keys::{Scope, line};
use cognate_server::http::{Peer, Settings};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::support::app::{Answer, TestApp};
use crate::support::listener::{Served, answer, settings};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

/// A key file with the keys of two clients, or of one.
fn key_file(folder: &tempfile::TempDir, ids: &[&str]) -> PathBuf {
    let path = folder.path().join("keys");
    let lines = ids.iter().map(|id| line(id, Scope::Query, &format!("{id}-key")).unwrap());
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    path
}

/// A service behind its gate, with settings that both share.
fn serve(change: impl Fn(&mut Settings)) -> (TestApp, Served) {
    let app = TestApp::with(&change);
    let served = Served::behind(&settings(change), app.app.router(), Some(app.app.gate()));
    (app, served)
}

/// A question of a key as bytes.
fn question(path: &str, key: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {key}-key\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// A client whose kernel takes next to nothing of what it does not read.
async fn narrow_client(served: &Served) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(served.address).await.unwrap()
}

fn texts(count: usize) -> String {
    format!("{{\"texts\":[{}]}}", vec!["\"quake\""; count].join(","))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_reads_no_answers_leaves_room_for_those_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder, &["greedy", "other"]);
    let (app, served) = serve(|settings| {
        settings.keys_file = Some(keys.clone());
        settings.unsent_bytes = Some(1 << 20);
    });
    let ask = question("/embed", "greedy", &texts(1200));
    let (mut unread, mut refused) = (Vec::new(), 0);
    for _ in 0..12 {
        let mut client = narrow_client(&served).await;
        client.write_all(ask.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        match &status[9..] {
            b"200" => unread.push(client),
            b"503" => {
                let mut rest = vec![0; 2048];
                let length = client.read(&mut rest).await.unwrap();
                let rest = String::from_utf8_lossy(&rest[..length]).into_owned();
                assert!(rest.contains("`unsent_bytes` and `client_share`"), "{rest}");
                refused += 1;
            }
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert!(!unread.is_empty() && refused >= 6, "{} unread, {refused} refused", unread.len());
    let page = app.get("/metrics").await.text();
    let taken = |line: &str| line.strip_prefix("cognate_unsent_bytes ")?.parse::<usize>().ok();
    let taken = page.lines().find_map(taken).unwrap();
    assert!((1..=512 << 10).contains(&taken), "{taken} bytes are taken");
    // A large answer to the other key, as often as it likes.
    for _ in 0..4 {
        let mut client = served.connect().await;
        client.write_all(question("/embed", "other", &texts(1200)).as_bytes()).await.unwrap();
        let (head, body) = answer(&mut client).await.unwrap();
        assert!(head.starts_with("http/1.1 200") && body.len() > 64 << 10, "{head}");
    }
    // One answer that is larger than the share is refused before it is computed.
    let mut client = served.connect().await;
    client.write_all(question("/embed", "other", &texts(3000)).as_bytes()).await.unwrap();
    let (head, body) = answer(&mut client).await.unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(head.starts_with("http/1.1 422"), "{head}");
    assert!(body.contains("response_too_large") && body.contains("`client_share`"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_requests_under_way_leaves_units_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder, &["greedy", "other"]);
    let (app, served) = serve(|settings| {
        settings.keys_file = Some(keys.clone());
        (settings.admission_units, settings.admission_wait_ms) = (20_000, 0);
        settings.body_timeout_s = 300;
    });
    // A body of eight megabytes, of which nothing comes, is paid for with all that a client may have.
    let mut holder = served.connect().await;
    let long = question("/similarity", "greedy", &" ".repeat(8 << 20));
    let head = long.find("\r\n\r\n").unwrap() + 4;
    holder.write_all(&long.as_bytes()[..head]).await.unwrap();
    let begun = Instant::now();
    while app.app.admission.in_use() < 10_000 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", app.app.admission.in_use());
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(app.app.admission.in_use(), 10_000);
    let pairs = vec!["[\"quake\",\"city\"]"; 5000].join(",");
    let many = format!("{{\"pairs\":[{pairs}]}}");
    for body in ["{\"a\":\"quake\",\"b\":\"city\"}", &many] {
        let mut client = served.connect().await;
        client.write_all(question("/similarity", "greedy", body).as_bytes()).await.unwrap();
        let (head, body) = answer(&mut client).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert!(head.starts_with("http/1.1 503") && head.contains("retry-after"), "{head}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`admission_units` and `client_share`"), "{detail}");
        let mut client = served.connect().await;
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains("\"overloaded\""), "{body}");
        client.write_all(question("/similarity", "other", &many).as_bytes()).await.unwrap();
        let (head, _) = answer(&mut client).await.unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }
    drop(holder);
}

/// What the gate says of a client that has its share, the route says as well.
#[tokio::test(flavor = "multi_thread")]
async fn the_gate_says_what_the_route_says_to_a_client_that_has_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder, &["greedy", "other"]);
    let (app, served) = serve(|settings| {
        settings.keys_file = Some(keys.clone());
        (settings.admission_units, settings.admission_wait_ms) = (20_000, 0);
        settings.body_timeout_s = 300;
    });
    let mut holder = served.connect().await;
    let long = question("/similarity", "greedy", &" ".repeat(8 << 20));
    let head = long.find("\r\n\r\n").unwrap() + 4;
    holder.write_all(&long.as_bytes()[..head]).await.unwrap();
    // One more unit than half of those that large requests may have: the gate looks at each question.
    let begun = Instant::now();
    while app.app.admission.in_use() < 10_000 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", app.app.admission.in_use());
        sleep(Duration::from_millis(5)).await;
    }
    assert!(app.app.gate().may_refuse());
    let refuse = |key: &str| {
        let request = Request::post("/similarity")
            .header("host", "h")
            .header("authorization", format!("Bearer {key}-key"))
            .header("content-type", JSON)
            .header("content-length", 24);
        app.app.gate().refuse(request.body(()).unwrap())
    };
    let by_head = refuse("greedy").expect("it has its share");
    let body = by_head.into_body();
    let by_head: Value = serde_json::from_slice(&body).unwrap();
    let request = Request::post("/similarity")
        .header("authorization", "Bearer greedy-key")
        .header("content-type", JSON);
    let usual = app.send(request.body(Body::from("{\"a\":\"quake\",\"b\":\"b\"}")).unwrap()).await;
    assert_eq!(usual.refusal(503, "overloaded")["detail"], by_head["detail"]);
    assert!(refuse("other").is_none(), "another key has its own");
    assert!(refuse("unknown").is_none(), "who has no key is told so by the route");
    drop(holder);
}

/// A stream whose lines do not come yet.
fn stream(fields: &[(&str, &str)], peer: [u8; 4]) -> Request<Body> {
    let mut request = Request::post("/similarity").header("content-type", LINES);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
    let request = request.extension(Peer((peer, 4000).into()));
    request.body(Body::from_stream(never)).unwrap()
}

/// Opens a stream, which lasts until the task is ended, or is refused.
async fn open(
    app: &TestApp,
    request: Request<Body>,
) -> Result<tokio::task::JoinHandle<Answer>, Answer> {
    let before = app.app.streams.in_use().0;
    let sent = tokio::spawn({
        let app = app.clone();
        async move { app.send(request).await }
    });
    let begun = Instant::now();
    while app.app.streams.in_use().0 == before {
        if sent.is_finished() {
            return Err(sent.await.unwrap());
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "neither opened nor refused");
        sleep(Duration::from_millis(2)).await;
    }
    Ok(sent)
}

fn told_of_share(refused: Result<tokio::task::JoinHandle<Answer>, Answer>) {
    let refused = refused.err().expect("it has its share");
    let problem = refused.refusal(503, "overloaded");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`max_streams` and `client_share`"), "{detail}");
}

#[tokio::test]
async fn a_key_with_streams_leaves_places_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder, &["greedy", "other"]);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(keys);
        settings.max_streams = Some(4);
    });
    let here = [127, 0, 0, 1];
    let of = |key| [("authorization", key)];
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(open(&app, stream(&of("greedy-key"), here)).await.ok().unwrap());
    }
    // From another machine it is the same key.
    told_of_share(open(&app, stream(&of("greedy-key"), [192, 0, 2, 9])).await);
    for _ in 0..2 {
        held.push(open(&app, stream(&of("other-key"), here)).await.ok().unwrap());
    }
    assert_eq!(app.app.streams.in_use(), (4, 4));
}

#[tokio::test]
async fn the_only_key_has_all_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder, &["only"]);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(keys);
        settings.max_streams = Some(4);
    });
    let mut held = Vec::new();
    for _ in 0..4 {
        let request = stream(&[("authorization", "only-key")], [192, 0, 2, 1]);
        held.push(open(&app, request).await.ok().unwrap());
    }
    assert_eq!(app.app.streams.in_use(), (4, 4));
}

#[tokio::test]
async fn without_keys_addresses_are_told_apart_and_programs_of_this_machine_are_not() {
    let app = TestApp::with(|settings| settings.max_streams = Some(8));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(open(&app, stream(&[], [192, 0, 2, 1])).await.ok().unwrap());
    }
    told_of_share(open(&app, stream(&[], [192, 0, 2, 1])).await);
    held.push(open(&app, stream(&[], [192, 0, 2, 2])).await.ok().unwrap());
    for _ in 0..3 {
        held.push(open(&app, stream(&[], [127, 0, 0, 1])).await.ok().unwrap());
    }
    assert_eq!(app.app.streams.in_use(), (8, 8));
    // Who sets no share lets one have all.
    let app = TestApp::with(|settings| {
        settings.max_streams = Some(4);
        settings.client_share = 100;
    });
    for _ in 0..4 {
        held.push(open(&app, stream(&[], [192, 0, 2, 1])).await.ok().unwrap());
    }
}

#[tokio::test]
async fn a_key_whose_requests_wait_for_a_thread_leaves_places_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder, &["greedy", "other"]);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(keys);
        (settings.compute_threads, settings.compute_queue) = (Some(1), 3);
        settings.compute_deadline_ms = 60_000;
    });
    // The only thread is busy until it is told otherwise.
    let (release, released) = channel::<()>();
    let service = Arc::clone(&app.app);
    let busy = tokio::spawn(async move {
        let deadline = Instant::now() + Duration::from_secs(60);
        let work = move |_: &_| {
            let _ = released.recv();
            Ok(())
        };
        service.compute.run(&Client::default(), deadline, &service.metrics, work).await
    });
    let until = async |running: usize, waiting: usize| {
        let begun = Instant::now();
        while app.app.compute.counts() != (running, waiting) {
            let counts = app.app.compute.counts();
            assert!(begun.elapsed() < Duration::from_secs(20), "{counts:?}");
            sleep(Duration::from_millis(2)).await;
        }
    };
    until(1, 0).await;
    let pairs = vec!["[\"quake\",\"city\"]"; 5000].join(",");
    let large = format!("{{\"pairs\":[{pairs}]}}");
    let send = |key: &str| {
        let request = Request::post("/similarity")
            .header("authorization", format!("Bearer {key}-key"))
            .header("content-type", JSON)
            .body(Body::from(large.clone()));
        let app = app.clone();
        tokio::spawn(async move { app.send(request.unwrap()).await })
    };
    let mut waiting = Vec::new();
    for count in 1..=2 {
        waiting.push(send("greedy"));
        until(1, count).await;
    }
    let refused = timeout(Duration::from_secs(20), send("greedy")).await.unwrap().unwrap();
    let problem = refused.refusal(503, "overloaded");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`compute_queue` and `client_share`"), "{detail}");
    waiting.push(send("other"));
    until(1, 3).await;
    drop(release);
    assert!(busy.await.unwrap().unwrap().is_ok());
    for sent in waiting {
        let answer = sent.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}
