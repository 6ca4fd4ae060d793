//! Clients that try to use the service up: answers that nobody reads, bodies that never end, streams
//! that drip, requests refused before they were read.

use std::time::{Duration, Instant};

use cognate_server::http::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::app::TestApp;
use crate::support::listener::{Served, answer, closed_within, settings};
use crate::support::process::{Process, limit_data, memory};

pub(super) const MIB: u64 = 1 << 20;
/// A request that anybody may send.
const NEXT: &[u8] = b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n";

/// A request's head and body as bytes.
pub(super) fn request(verb_and_path: &str, fields: &str, body: &str) -> (String, String) {
    let length = body.len();
    let head =
        format!("{verb_and_path} HTTP/1.1\r\nhost: h\r\n{fields}content-length: {length}\r\n\r\n");
    (head, body.to_owned())
}

/// The app behind a listener, with settings that both share.
fn serve(change: impl Fn(&mut Settings)) -> (TestApp, Served) {
    let app = TestApp::with(&change);
    let gate = Some(app.app.gate());
    let served = Served::behind(&settings(&change), app.app.router(), gate);
    (app, served)
}

pub(super) async fn health(process: &Process) -> String {
    let mut client = TcpStream::connect(process.address).await.unwrap();
    client.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    timeout(Duration::from_secs(5), answer(&mut client)).await.unwrap().unwrap().0
}

/// A client whose kernel takes next to nothing of what it does not read.
async fn narrow_client(process: &Process) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(process.address).await.unwrap()
}

#[tokio::test]
async fn answers_that_nobody_reads_take_no_more_memory_than_is_set_aside() {
    let model = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let unsent = 64 * MIB;
    let process = Process::serve(&model, &["--unsent-bytes".to_owned(), unsent.to_string()]);
    let idle = memory(&process, "VmRSS:");
    limit_data(&process, 480 * MIB);
    let texts = vec!["\"the\""; 10_000].join(",");
    let (head, body) = request(
        "POST /embed",
        "content-type: application/json\r\n",
        &format!("{{\"texts\":[{texts}]}}"),
    );
    let (mut clients, mut answered, mut refused) = (Vec::new(), 0, 0);
    for _ in 0..24 {
        let mut client = narrow_client(&process).await;
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(body.as_bytes()).await.unwrap();
        let mut status = [0; 15];
        client.read_exact(&mut status).await.expect("the service lives");
        match &status[9..12] {
            b"200" => answered += 1,
            b"503" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
        clients.push(client);
    }
    assert!(answered >= 1 && refused >= 20, "{answered} answered, {refused} refused");
    let taken = memory(&process, "VmRSS:").saturating_sub(idle);
    assert!(taken <= unsent + 64 * MIB, "{} MiB over idle", taken / MIB);
    assert!(health(&process).await.starts_with("http/1.1 200"));
    // Small answers are free, and large ones are possible again once the others are gone.
    drop(clients);
    let begun = Instant::now();
    loop {
        let mut client = TcpStream::connect(process.address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(body.as_bytes()).await.unwrap();
        let (head, _) = answer(&mut client).await.unwrap();
        if head.starts_with("http/1.1 200") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{head}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn bodies_that_do_not_say_how_long_they_are_are_paid_for_as_they_come() {
    let process = Process::start(&[]);
    let idle = memory(&process, "VmRSS:");
    limit_data(&process, 480 * MIB);
    let head = "POST /rank HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{}\r\n", 64 << 10, " ".repeat(64 << 10));
    let mut clients = Vec::new();
    for _ in 0..60 {
        let mut client = TcpStream::connect(process.address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..127 {
            // One that was refused need not take the rest.
            if client.write_all(chunk.as_bytes()).await.is_err() {
                break;
            }
        }
        clients.push(client);
    }
    let taken = memory(&process, "VmRSS:").saturating_sub(idle);
    assert!(taken <= (48 + 64) * MIB, "{} MiB over idle", taken / MIB);
    assert!(health(&process).await.starts_with("http/1.1 200"));
    let mut refused = 0;
    for client in &mut clients {
        let mut status = [0; 12];
        if client.read_exact(&mut status).await.is_ok() {
            match &status[9..12] {
                b"503" => refused += 1,
                other => assert_eq!(other, b"408"),
            }
        }
    }
    assert!(refused >= 40, "only {refused} of 60 were refused");
}

/// Sends the head, waits for the answer, sends the body, and asks once more: nothing may be lost
/// unless the answer said that the connection closes.
async fn early(served: &Served, (head, body): &(String, String)) -> (String, bool) {
    let mut client = served.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    let (head, _) = timeout(Duration::from_secs(5), answer(&mut client)).await.unwrap().unwrap();
    let closes = head.contains("connection: close");
    let sent =
        client.write_all(body.as_bytes()).await.is_ok() && client.write_all(NEXT).await.is_ok();
    let next = timeout(Duration::from_secs(5), answer(&mut client)).await.unwrap();
    assert!(closes || (sent && next.is_some()), "the next request was lost after {head}");
    (head, closes)
}

#[tokio::test]
async fn a_refusal_before_the_body_was_read_loses_no_other_request() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let scope = cognate_server::http::auth::keys::Scope::Query;
    std::fs::write(&keys, cognate_server::http::auth::keys::line("a", scope, "key").unwrap())
        .unwrap();
    let (_, locked) = serve(|settings| settings.keys_file = Some(keys.clone()));
    let (app, open) = serve(|settings| settings.admission_units = 10_000);
    let json = "content-type: application/json\r\n";
    let ask = |fields: &str| request("POST /similarity", fields, "{\"a\":\"x\",\"b\":\"y\"}");
    let cases = [
        ("401", &locked, ask(json)),
        ("404", &open, request("POST /nothing", json, "{}")),
        ("405", &open, request("PUT /similarity", json, "{}")),
        ("415", &open, ask("content-type: text/plain\r\n")),
        ("415", &open, ask("content-type: application/json\r\ncontent-encoding: br\r\n")),
        ("422", &open, request("POST /similarity?method=jaccard", json, "{}")),
        ("403", &open, request("POST /-/reload", json, "{}")),
        ("200", &open, request("GET /health", "", "{}")),
    ];
    for (status, served, sent) in &cases {
        let (head, closes) = early(served, sent).await;
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{head}");
        assert!(!closes, "a short body costs no connection: {head}");
    }
    let held = (0..10_000).map(|_| app.app.admission.admit().unwrap()).collect::<Vec<_>>();
    let (head, closes) = early(&open, &ask(json)).await;
    assert!(head.starts_with("http/1.1 503") && !closes, "{head}");
    drop(held);
    // What is not worth reading, or would first have to be asked for, ends the connection in words.
    let long = request("POST /nothing", json, &"x".repeat(300 << 10));
    let waiting = ask("content-type: text/plain\r\nexpect: 100-continue\r\n");
    for sent in [long, waiting] {
        let (head, closes) = early(&open, &sent).await;
        assert!(closes && !head.contains("100 continue"), "{head}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_side_after_sending_gets_its_answer() {
    let (_, served) = serve(|_| ());
    let pairs = vec!["[\"new york quake\",\"city\"]"; 2000].join(",");
    let long = format!("{{\"method\":\"dynamax\",\"pairs\":[{pairs}]}}");
    let json = "content-type: application/json\r\n";
    let lines = "[\"quake\",\"city\"]\n".repeat(5000);
    let cases = [
        (request("GET /health", "", ""), 1),
        (request("POST /similarity", json, "{\"a\":\"quake\",\"b\":\"city\"}"), 1),
        (request("POST /similarity", json, &long), 1),
        (request("POST /similarity", "content-type: application/x-ndjson\r\n", &lines), 5000),
    ];
    for ((head, body), answers) in cases {
        for _ in 0..10 {
            let mut client = served.connect().await;
            let (mut reader, mut writer) = client.split();
            let send = async {
                writer.write_all(head.as_bytes()).await.unwrap();
                writer.write_all(body.as_bytes()).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            let mut read = String::new();
            let (_, received) = tokio::join!(send, reader.read_to_string(&mut read));
            received.unwrap();
            assert!(read.starts_with("HTTP/1.1 200"), "{read}");
            let found = read.matches("\"score").count() + read.matches("\"ok\"").count();
            assert_eq!(found, answers, "{}", read.get(..400).unwrap_or(&read));
        }
    }
}

const STREAM: &[u8] = b"POST /similarity HTTP/1.1\r\nhost: h\r\n\
    content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";

/// Sends a piece every 200 ms until the connection ends; how long that took.
async fn drip(served: &Served, piece: &[u8], most: Duration) -> Option<Duration> {
    let mut client = served.connect().await;
    client.write_all(STREAM).await.unwrap();
    let (mut reader, mut writer) = client.into_split();
    let dripping = tokio::spawn({
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        async move {
            while writer.write_all(&chunk).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
    let begun = Instant::now();
    let ended = timeout(most, reader.read_to_end(&mut Vec::new())).await;
    dripping.abort();
    ended.ok().map(|_| begun.elapsed())
}

#[tokio::test]
async fn a_stream_that_does_not_get_on_ends() {
    let (app, served) = serve(|settings| settings.body_timeout_s = 1);
    let most = Duration::from_secs(4);
    let (bytes, lines, mass) = tokio::join!(
        drip(&served, b"[", most),
        drip(&served, b"[\"quake\",\"city\"]\n", most),
        drip(&served, &[b' '; 300], most),
    );
    let ended = bytes.expect("bytes kept a stream alive");
    assert!(ended < Duration::from_secs(3), "{ended:?}");
    assert_eq!((lines, mass), (None, None), "a stream that got on was ended");
    let begun = Instant::now();
    while app.app.streams.in_use().0 > 0 {
        assert!(begun.elapsed() < most, "a stream keeps its place after its end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Between lines a stream may rest for longer than a body may take, and empty lines keep it open.
#[tokio::test]
async fn a_stream_may_rest_between_its_lines() {
    let (app, served) =
        serve(|settings| (settings.body_timeout_s, settings.stream_idle_s) = (1, 4));
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let line = chunk("[\"quake\",\"city\"]\n");
    let mut client = served.connect().await;
    client.write_all(STREAM).await.unwrap();
    let (mut reader, mut writer) = client.into_split();
    let mut read = String::new();
    let blank = chunk("\n");
    let send = async {
        for piece in [&line, &blank, &blank, &line] {
            tokio::time::sleep(Duration::from_secs(2)).await;
            writer.write_all(piece).await.unwrap();
        }
        // Nothing more, and the connection stays open.
        writer
    };
    let (_writer, ended) = tokio::join!(send, reader.read_to_string(&mut read));
    ended.unwrap();
    assert_eq!(read.matches("\"score\":").count(), 2, "{read}");
    assert!(read.contains("{\"line\":5,\"error\":{\"code\":\"request_timeout\""), "{read}");
    assert!(read.contains("`stream_idle_s`"), "{read}");
    let counted = "cognate_streams_ended_total{outcome=\"slow_sender\"} 1\n";
    while !app.get("/metrics").await.text().contains(counted) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // What is no stream has no rest.
    let mut client = served.connect().await;
    let head = "POST /similarity HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
                content-length: 9\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    assert!(answer(&mut client).await.unwrap().0.starts_with("http/1.1 408"));
    // Nor has a stream in the middle of a line.
    let mut client = served.connect().await;
    client.write_all(&[STREAM, &line, &chunk("[\"quake\"")].concat()).await.unwrap();
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    assert!(read.contains("{\"line\":2,\"error\":{\"code\":\"request_timeout\""), "{read}");
    assert!(read.contains("`body_timeout_s`"), "{read}");
}

#[tokio::test]
async fn streams_leave_connections_for_others() {
    let (app, served) = serve(|settings| {
        (settings.max_connections, settings.max_streams) = (8, Some(3));
    });
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut client = served.connect().await;
        client.write_all(STREAM).await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        assert_eq!(&status[9..], b"200");
        streams.push(client);
    }
    let mut fourth = served.connect().await;
    fourth.write_all(STREAM).await.unwrap();
    let (head, body) = answer(&mut fourth).await.unwrap();
    assert!(head.starts_with("http/1.1 503") && head.contains("retry-after"), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("max_streams"));
    let mut health = served.connect().await;
    health.write_all(NEXT).await.unwrap();
    assert!(answer(&mut health).await.unwrap().0.starts_with("http/1.1 200"));
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_shed_total{reason=\"streams\"} 1\n"), "{page}");
    assert!(page.contains("cognate_streams 3\n") && page.contains("cognate_streams_limit 3\n"));
}

#[tokio::test]
async fn a_head_that_others_could_read_differently_is_refused() {
    let (_, served) = serve(|_| ());
    let body = "{\"a\":\"quake\",\"b\":\"city\"}";
    let length = body.len();
    let post = |fields: &str| {
        let json = "content-type: application/json";
        format!(
            "POST /similarity HTTP/1.1\r\n{fields}{json}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let chunked =
        "POST /similarity HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip, chunked\r\n\r\n";
    let cases = [
        (post("host: h\r\n"), "200", false),
        (post(""), "400", true),
        (post("host: h\r\nhost: h\r\n"), "400", true),
        (post("host: a b/c@\r\n"), "400", true),
        (chunked.to_owned(), "400", true),
        ("CONNECT h:80 HTTP/1.1\r\nhost: h\r\n\r\n".to_owned(), "405", false),
        ("TRACE /similarity HTTP/1.1\r\nhost: h\r\n\r\n".to_owned(), "405", false),
        (
            format!("GET /health HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "y".repeat(40 << 10)),
            "431",
            true,
        ),
    ];
    for (sent, status, closes) in cases {
        let mut client = served.connect().await;
        client.write_all(sent.as_bytes()).await.unwrap();
        let (head, body) = answer(&mut client).await.unwrap();
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{sent:.80}\n{head}");
        if status == "400" {
            assert!(String::from_utf8_lossy(&body).contains("\"code\":\"invalid_head\""));
        }
        if closes {
            assert!(closed_within(&mut client, Duration::from_secs(4)).await.is_some(), "{head}");
        }
    }
}

#[tokio::test]
async fn a_chunked_body_that_was_read_whole_costs_no_connection() {
    let (_, served) = serve(|_| ());
    let mut client = served.connect().await;
    let body = "{\"a\":\"quake\",\"b\":\"city\"}";
    let chunked = format!(
        "POST /similarity HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for _ in 0..3 {
        client.write_all(chunked.as_bytes()).await.unwrap();
        let (head, _) = answer(&mut client).await.expect("the connection lives on");
        assert!(head.starts_with("http/1.1 200") && !head.contains("connection: close"), "{head}");
    }
    client.write_all(NEXT).await.unwrap();
    assert!(answer(&mut client).await.is_some());
}

#[tokio::test]
async fn a_short_body_of_unknown_length_is_paid_for_as_a_short_one() {
    let app = TestApp::with(|settings| settings.admission_units = 10_000);
    let _held = (0..9_990).map(|_| app.app.admission.admit().unwrap()).collect::<Vec<_>>();
    let pieces = ["{\"a\":\"quake\",", "\"b\":\"city\"}"].map(Ok::<_, std::io::Error>);
    let body = axum::body::Body::from_stream(futures_util::stream::iter(pieces));
    assert_eq!(app.post("/similarity", body).await.status, 200);
}
