//! Refusals of a service that has no room, as they are given by the head of a request alone: what they
//! say, and that they cost the connection nothing else that is asked on it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Request, Response};
use cognate_server::http::Settings;
use cognate_server::http::auth::keys::{Scope, line};
use cognate_server::http::net::Gate;
use cognate_server::http::net::shutdown::Phase;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::app::{TestApp, post};
use crate::support::listener::{Served, settings};
use crate::support::process::Process;

const UNITS: usize = 10_000;
const JSON: &str = "content-type: application/json\r\n";
const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: h\r\n\r\n";
const SMALL: &str = r#"{"a":"quake","b":"city"}"#;

/// The service's gate, and how many requests it refused.
struct Counted(Arc<dyn Gate>, AtomicUsize);

impl Gate for Counted {
    fn may_refuse(&self) -> bool {
        self.0.may_refuse()
    }

    fn refuse(&self, request: Request<()>) -> Option<Response<Bytes>> {
        let refused = self.0.refuse(request);
        self.1.fetch_add(usize::from(refused.is_some()), Relaxed);
        refused
    }
}

struct Full {
    app: TestApp,
    served: Served,
    gate: Arc<Counted>,
    /// All units.
    held: Vec<Box<dyn Send>>,
}

/// A service without a free unit, for which nobody waits.
fn full(change: impl Fn(&mut Settings)) -> Full {
    let change = |settings: &mut Settings| {
        (settings.admission_units, settings.admission_wait_ms) = (UNITS, 0);
        change(settings);
    };
    let app = TestApp::with(change);
    let gate = Arc::new(Counted(app.app.gate(), AtomicUsize::new(0)));
    let dynamic: Arc<dyn Gate> = gate.clone();
    let served = Served::behind(&settings(change), app.app.router(), Some(dynamic));
    let held = (0..UNITS).map(|_| Box::new(app.app.admission.admit().unwrap()) as Box<dyn Send>);
    let held = held.collect();
    Full { app, served, gate, held }
}

impl Full {
    fn refused(&self) -> usize {
        self.gate.1.load(Relaxed)
    }
}

fn question(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: h\r\n{fields}content-length: {length}\r\n\r\n{body}")
}

/// A body of about a thousand pairs.
fn long() -> String {
    format!("{SMALL}{}", " ".repeat(120_000))
}

/// Reads one answer, its head in small letters, and nothing of what follows it.
async fn read_text(client: &mut TcpStream) -> (String, String) {
    let reading = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        client.read_exact(&mut body).await.unwrap();
        (head.trim_end().to_owned(), String::from_utf8(body).unwrap())
    };
    timeout(Duration::from_secs(10), reading).await.unwrap()
}

async fn read(client: &mut TcpStream) -> (String, Value) {
    let (head, body) = read_text(client).await;
    (head, serde_json::from_str(&body).unwrap_or_default())
}

async fn asked(client: &mut TcpStream, request: &str) -> (String, Value) {
    // A refusal may come before all of the request is sent.
    let (mut incoming, mut outgoing) = client.split();
    let mut byte = [0; 1];
    let (sent, came) = tokio::join!(
        outgoing.write_all(request.as_bytes()),
        timeout(Duration::from_secs(10), incoming.peek(&mut byte)),
    );
    sent.unwrap();
    assert_eq!(came.unwrap().unwrap(), 1);
    read(client).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_costs_no_other_request_on_its_connection() {
    let mut full = full(|_| ());
    let mut client = full.served.connect().await;
    let (refused, small) = (question("/similarity", JSON, &long()), question("/rank", JSON, "{}"));
    for round in 1..=50 {
        let (head, problem) = asked(&mut client, &refused).await;
        assert!(head.starts_with("http/1.1 503") && !head.contains("connection"), "{head}");
        assert_eq!(problem["code"], "overloaded");
        assert_eq!(full.refused(), 2 * round - 1);
        let (head, _) = asked(&mut client, HEALTH).await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let (head, _) = asked(&mut client, &small).await;
        assert!(head.starts_with("http/1.1 503"), "{head}");
    }
    assert_eq!(full.served.open(), 1);
    full.held.clear();
    let (head, answer) = asked(&mut client, &question("/similarity", JSON, SMALL)).await;
    assert!(head.starts_with("http/1.1 200") && answer["scores"].is_array(), "{head}");
    let (head, _) = asked(&mut client, &refused).await;
    assert!(head.starts_with("http/1.1 200"), "there is room again: {head}");
    assert_eq!(full.refused(), 100);
}

/// However a request is cut into pieces, its refusal and the next answer come, in this order.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_may_come_in_pieces() {
    let full = full(|_| ());
    let refused = question("/similarity", JSON, &long());
    let head = refused.find("\r\n\r\n").unwrap() + 4;
    let cuts: [&[usize]; 5] =
        [&[head], &[head + 1, head + 60_000], &[head - 2], &[10, head], &[refused.len() - 1]];
    for cuts in cuts {
        let mut client = full.served.connect().await;
        let mut from = 0;
        for &to in cuts {
            client.write_all(&refused.as_bytes()[from..to]).await.unwrap();
            sleep(Duration::from_millis(20)).await;
            from = to;
        }
        // The next request comes along with the last piece.
        let rest = [&refused[from..], HEALTH].concat();
        client.write_all(rest.as_bytes()).await.unwrap();
        assert!(read(&mut client).await.0.starts_with("http/1.1 503"), "{cuts:?}");
        assert!(read(&mut client).await.0.starts_with("http/1.1 200"), "{cuts:?}");
    }
    assert_eq!(full.refused(), 3, "a head in pieces goes the usual way");
    // Several requests in one piece.
    let mut client = full.served.connect().await;
    let short = question("/similarity", JSON, SMALL);
    client.write_all([&short, HEALTH, &short, HEALTH].concat().as_bytes()).await.unwrap();
    for status in ["503", "200", "503", "200"] {
        assert!(read(&mut client).await.0[9..].starts_with(status));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_wait_for_a_body_that_does_not_come() {
    let full = full(|settings| settings.body_timeout_s = 1);
    let mut client = full.served.connect().await;
    let refused = question("/similarity", JSON, &long());
    let begun = Instant::now();
    client.write_all(&refused.as_bytes()[..1000]).await.unwrap();
    assert!(read(&mut client).await.0.starts_with("http/1.1 503"));
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    // A client that went on would have had a second.
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
    assert_eq!(full.refused(), 1);
    // One that closes its side after half of the body gets its answer, too.
    let mut client = full.served.connect().await;
    client.write_all(&refused.as_bytes()[..1000]).await.unwrap();
    client.shutdown().await.unwrap();
    assert!(read(&mut client).await.0.starts_with("http/1.1 503"));
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
}

/// The refusal by the head is the one that the route gives, but for what differs from one to the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_the_head_says_what_the_route_says() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, line("shop", Scope::Query, "key").unwrap()).unwrap();
    let key = "authorization: Bearer key\r\n";
    let full = full(|settings| {
        settings.keys_file = Some(keys.clone());
        settings.body_bytes = 200_000;
    });
    let cases = [
        ("/similarity", JSON, key, "503", true),
        ("/similarity", JSON, "", "401", true),
        ("/rank", "content-type: application/json; charset=utf-8\r\n", key, "503", true),
        ("/embed", JSON, key, "503", true),
        ("/explain", JSON, key, "503", true),
        ("/v1/embeddings", JSON, key, "503", true),
        ("/v2/rerank", JSON, key, "503", true),
        ("/rerank", JSON, key, "503", true),
        ("/score", JSON, key, "503", true),
        ("/api/embed", JSON, key, "503", true),
        ("/similarity?method=jaccard", JSON, key, "503", false),
        ("/similarity", "content-type: text/plain\r\n", key, "503", false),
        ("/nothing", JSON, key, "404", false),
        ("/-/reload", JSON, "", "401", false),
    ];
    let (mut client, mut expected) = (full.served.connect().await, 0);
    for (path, media, key, status, by_head) in cases {
        let fields = format!("{media}{key}x-request-id: mine\r\n");
        let (head, mut problem) = asked(&mut client, &question(path, &fields, SMALL)).await;
        let mut request = post(path, SMALL);
        let headers = request.headers_mut();
        for field in fields.lines() {
            let (name, value) = field.split_once(": ").unwrap();
            headers.insert(axum::http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        }
        let usual = full.app.send(request).await;
        assert!(head[9..].starts_with(status), "{path}: {head}");
        assert_eq!(usual.status.as_str(), status, "{path}");
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(": ").unwrap();
            let same = usual.headers.get(name).map(|value| value.to_str().unwrap().to_lowercase());
            match name {
                "date" | "content-length" => {}
                "retry-after" => assert!(same.is_some() && ["1", "2"].contains(&value)),
                _ => assert_eq!(same.as_deref(), Some(value), "{path}: {name}"),
            }
        }
        for name in usual.headers.keys() {
            assert!(head.contains(&format!("\r\n{name}: ")), "{path}: {name} in {head}");
        }
        let mut usual = usual.json();
        for problem in [&mut problem, &mut usual] {
            if let Some(seconds) = problem.get_mut("retry_after_s") {
                *seconds = Value::Null;
            }
        }
        assert_eq!(problem, usual, "{path}");
        assert!(problem.to_string().contains("mine"), "{problem}");
        expected += usize::from(by_head);
        assert_eq!(full.refused(), expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_by_the_head_are_counted_and_count_for_the_connection() {
    let full = full(|settings| settings.requests_per_connection = 3);
    let mut client = full.served.connect().await;
    let refused = question("/similarity", JSON, &long());
    for last in [false, false, true] {
        let (head, problem) = asked(&mut client, &refused).await;
        assert_eq!(head.contains("connection: close"), last, "{head}");
        let id = problem["request_id"].as_str().unwrap();
        assert!(head.contains(&format!("x-request-id: {id}")) && !id.is_empty(), "{head}");
        assert!(head.contains(&format!("retry-after: {}", problem["retry_after_s"])), "{head}");
    }
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(full.refused(), 2, "the last one is said by the usual way");
    let page = full.app.get("/metrics").await.text();
    let counted =
        "cognate_requests_total{route=\"/similarity\",method=\"POST\",status=\"503\"} 3\n";
    assert!(page.contains(counted), "{page}");
    assert!(page.contains("cognate_shed_total{reason=\"admission\"} 3\n"), "{page}");
    assert!(page.contains("cognate_requests_in_flight 1\n"), "this page alone: {page}");
    // Once the service is about to stop, every answer says so.
    full.served.orders.order(Phase::Leaving);
    let mut client = full.served.connect().await;
    assert!(asked(&mut client, &refused).await.0.contains("connection: close"));
}

/// hyper's clock for heads runs while it sees none, and must not end a connection that is used.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_refused_for_long_lives_on() {
    let full = full(|settings| settings.header_timeout_s = 1);
    let mut client = full.served.connect().await;
    let (refused, begun, mut asks) = (question("/similarity", JSON, &long()), Instant::now(), 0);
    while begun.elapsed() < Duration::from_millis(2500) {
        assert!(asked(&mut client, &refused).await.0.starts_with("http/1.1 503"));
        asks += 1;
        sleep(Duration::from_millis(20)).await;
    }
    assert!(full.refused() > asks / 2 && full.refused() < asks, "{} of {asks}", full.refused());
}

/// The log of the built binary has a line for it, with what other lines have.
#[tokio::test]
async fn a_refusal_by_the_head_has_its_line_in_the_log() {
    let limits = ["--admission-units", "10000", "--admission-wait-ms", "0"];
    let flags = [&limits[..], &["--body-timeout-s", "300"]].concat();
    let mut process = Process::start(&flags.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let mut holder = TcpStream::connect(process.address).await.unwrap();
    let unfinished = question("/similarity", JSON, &" ".repeat(2_000_000));
    holder.write_all(&unfinished.as_bytes()[..500]).await.unwrap();
    let mut client = TcpStream::connect(process.address).await.unwrap();
    let peer = client.local_addr().unwrap().to_string();
    let begun = Instant::now();
    // A question that came before the unfinished one has its units would take its room.
    loop {
        client.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        let (_, page) = read_text(&mut client).await;
        if page.contains("\ncognate_admission_units_in_use 9") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{page}");
        sleep(Duration::from_millis(10)).await;
    }
    let fields = format!("{JSON}x-request-id: shed\r\n");
    let (head, _) = asked(&mut client, &question("/similarity", &fields, &long())).await;
    assert!(head.starts_with("http/1.1 503"), "{head}");
    process.until_log("the refusal", |log| log.contains("\"status\":503"));
    let log = process.log();
    let line = log.lines().find(|line| line.contains("\"status\":503")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let expected = serde_json::json!({"level": "INFO", "message": "refused", "peer": peer,
        "request_id": "shed", "route": "/similarity", "method": "POST", "code": "overloaded"});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(line[field], *value, "{field} in {line}");
    }
}
