//! Traces: which callers are believed, what the log says of them, and what a collector gets.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use cognate_server::http::observe::trace::{Parent, TraceId};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::listener::answer;
use crate::support::process::Process;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn arguments(given: &[&str]) -> Vec<String> {
    let always = ["--shutdown-delay-s", "0", "--log", "info,cognate=debug"];
    always.iter().chain(given).map(|&argument| argument.to_owned()).collect()
}

/// Sends one request on a connection of its own; gives the first line of the answer.
async fn ask(process: &Process, line: &str, headers: &str, body: &str) -> String {
    let headers = format!("content-type: application/json\r\n{headers}");
    ask_as_sent(process, line, &headers, body).await
}

async fn ask_as_sent(process: &Process, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(process.address).await.unwrap();
    let length = body.len();
    let request =
        format!("{line} HTTP/1.1\r\nhost: h\r\n{headers}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (head, _) = answer(&mut stream).await.unwrap();
    head.lines().next().unwrap().to_owned()
}

#[test]
fn only_valid_parents_are_believed() {
    let trace = TraceId(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
    let parent = |sampled| Some(Parent { trace, span: 0xb7ad_6b71_6920_3331, sampled });
    let table = [
        (PARENT, parent(true)),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", parent(false)),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe", parent(false)),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", parent(true)),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", parent(true)),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", parent(true)),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", None),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", None),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", None),
        ("00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", None),
        ("00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1", None),
        ("0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-001", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-é", None),
        ("0é-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", None),
        ("", None),
    ];
    for (header, expected) in table {
        assert_eq!(Parent::read(header.as_bytes()), expected, "{header}");
    }
    assert_eq!(trace.to_string(), TRACE);
    let mut headers = HeaderMap::new();
    assert_eq!(Parent::from_headers(&headers), None);
    headers.append("traceparent", HeaderValue::from_static(PARENT));
    assert_eq!(Parent::from_headers(&headers), parent(true));
    headers.append("traceparent", HeaderValue::from_static(PARENT));
    assert_eq!(Parent::from_headers(&headers), None, "told twice");
}

#[tokio::test]
async fn log_lines_tell_the_trace() {
    let mut process = Process::start(&arguments(&[]));
    let header = format!("x-request-id: with\r\ntraceparent: {PARENT}\r\n");
    assert!(ask(&process, "GET /health", &header, "").await.contains("200"));
    let invalid = format!("x-request-id: without\r\ntraceparent: {PARENT}00\r\n");
    assert!(ask(&process, "GET /nowhere", &invalid, "").await.contains("404"));
    process.until_log("the second line", |log| log.contains("\"without\""));
    let log = process.log();
    let line = |id: &str| log.lines().find(|line| line.contains(id)).unwrap_or_default();
    assert!(line("\"with\"").contains(&format!("\"trace_id\":\"{TRACE}\"")), "{log}");
    assert!(!line("\"without\"").contains("trace_id"), "{log}");
    process.signal("TERM");
    assert!(process.wait(Duration::from_secs(10)).success());
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_that_exports_nothing_says_so() {
    let model = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let given = arguments(&["--otlp-endpoint", "http://127.0.0.1:4318"]);
    let mut process = Process::start_with(&model, &given);
    assert_eq!(process.wait(Duration::from_secs(10)).code(), Some(2));
    let expected = "--otlp-endpoint: `http://127.0.0.1:4318`: this build exports no spans";
    assert!(process.log().contains(expected), "{}", process.log());
}

#[cfg(feature = "otlp")]
mod exported {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Instant;

    use axum::Router;
    use axum::body::Bytes;
    use axum::http::StatusCode;
    use axum::routing::post;
    use tokio::net::TcpListener;

    use super::*;

    const TRACE_BYTES: [u8; 16] = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    const PARENT_BYTES: [u8; 8] = 0xb7ad_6b71_6920_3331_u64.to_be_bytes();
    const QUESTION: &str = r#"{"pairs":[["the quake hits the city","a secret"]]}"#;

    /// A collector that answers so, and hands over what it gets.
    async fn collector(status: StatusCode) -> (String, Receiver<Vec<u8>>) {
        let (sender, receiver) = channel();
        let keep = move |headers: HeaderMap, body: Bytes| async move {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            let _ = sender.send(body.to_vec());
            status
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/v1/traces", post(keep));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (format!("http://{address}"), receiver)
    }

    /// Everything that was exported before the process ended.
    fn all(exported: &Receiver<Vec<u8>>) -> Vec<u8> {
        exported.try_iter().flatten().collect()
    }

    /// How often bytes occur in others.
    fn count(bytes: &[u8], part: &[u8]) -> usize {
        bytes.windows(part.len()).filter(|window| *window == part).count()
    }

    /// A field of a message that protobuf writes with its length.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    /// An attribute of a span: a key, and a value whose field is 1 for text.
    fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
        field(9, &[field(1, key.as_bytes()), field(2, value)].concat())
    }

    fn text(key: &str, value: &str) -> Vec<u8> {
        attribute(key, &field(1, value.as_bytes()))
    }

    /// Stops a process, which has to be well and quick. The collector has threads of its own.
    fn stop(process: &mut Process) {
        process.signal("TERM");
        let begun = Instant::now();
        assert!(process.wait(Duration::from_secs(10)).success(), "{}", process.log());
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_request_is_a_span_of_its_callers_trace() {
        let (endpoint, exported) = collector(StatusCode::OK).await;
        let mut process = Process::start(&arguments(&["--otlp-endpoint", &endpoint]));
        let header = format!("x-request-id: known\r\ntraceparent: {PARENT}\r\n");
        let first = ask(&process, "POST /similarity", &header, QUESTION).await;
        assert!(first.contains("200"), "{first}");
        // Far fewer than a batch: they go out after a while.
        let sent = exported.recv_timeout(Duration::from_secs(10)).unwrap();
        for (what, expected) in [
            ("trace", field(1, &TRACE_BYTES)),
            ("parent", field(4, &PARENT_BYTES)),
            ("name and kind", [&field(5, b"/similarity")[..], &[6 << 3, 2]].concat()),
            ("method", text("http.request.method", "POST")),
            ("route", text("http.route", "/similarity")),
            ("status", attribute("http.response.status_code", &[3 << 3, 200, 1])),
            ("id", text("cognate.request_id", "known")),
        ] {
            assert_eq!(count(&sent, &expected), 1, "{what}: {}", sent.escape_ascii());
        }
        for nowhere in ["quake", "secret", "cognate.code", "error.type", "application/json"] {
            assert_eq!(count(&sent, nowhere.as_bytes()), 0, "{nowhere}: {}", sent.escape_ascii());
        }
        for own in ["service.name", "cognate", "service.version", env!("CARGO_PKG_VERSION")] {
            assert_ne!(count(&sent, own.as_bytes()), 0, "{own}: {}", sent.escape_ascii());
        }
        stop(&mut process);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_last_spans_are_sent_at_the_end() {
        let (endpoint, exported) = collector(StatusCode::OK).await;
        let mut process = Process::start(&arguments(&["--otlp-endpoint", &endpoint]));
        let header = format!("traceparent: {}00\r\n", PARENT.strip_suffix("01").unwrap());
        assert!(ask(&process, "GET /methods", &header, "").await.contains("200"));
        assert!(ask(&process, "POST /similarity", "", "{").await.contains("400"));
        assert!(ask(&process, "BREW /secret", "", "").await.contains("404"));
        let lines = "content-type: application/x-ndjson\r\n";
        let stream = ask_as_sent(&process, "POST /embed", lines, "\"quake\"\n[]\n").await;
        assert!(stream.contains("200"), "{stream}");
        stop(&mut process);
        let sent = all(&exported);
        for (what, expected, times) in [
            ("not recorded by the caller", field(5, b"/methods"), 0),
            ("refused", text("cognate.code", "malformed_json"), 1),
            ("not an error of ours", b"error.type".to_vec(), 0),
            ("no route", field(5, b"unmatched"), 1),
            ("only known routes", b"http.route".to_vec(), 2),
            ("no path", b"secret".to_vec(), 0),
            ("a stream", text("cognate.stream.outcome", "complete"), 1),
            ("its lines", attribute("cognate.stream.lines", &[3 << 3, 2]), 1),
            ("its items", attribute("cognate.stream.items", &[3 << 3, 1]), 1),
            ("no such method", text("http.request.method", "_OTHER"), 1),
        ] {
            assert_eq!(count(&sent, &expected), times, "{what}: {}", sent.escape_ascii());
        }
        let log = process.log();
        let line = log.lines().find(|line| line.contains("unmatched")).unwrap();
        assert!(line.contains("\"trace_id\":\""), "a trace of its own: {log}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_collector_that_is_no_help_does_no_harm() {
        let down = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = down.local_addr().unwrap();
        drop(down);
        // Taken by the kernel, never answered.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (unwilling, _exported) = collector(StatusCode::SERVICE_UNAVAILABLE).await;
        for (endpoint, reason) in [
            (format!("http://{address}"), "Connection refused"),
            (format!("http://{}", silent.local_addr().unwrap()), "it took too long"),
            (unwilling, "it answers 503"),
        ] {
            let mut process = Process::start(&arguments(&["--otlp-endpoint", &endpoint]));
            let told = |log: &str| log.matches("spans did not reach the collector").count();
            for _ in 0..100 {
                assert!(ask(&process, "GET /health", "", "").await.contains("200"));
            }
            process.until_log("a line of the loss", |log| told(log) > 0);
            for _ in 0..100 {
                assert!(ask(&process, "GET /health", "", "").await.contains("200"));
            }
            stop(&mut process);
            let log = process.log();
            assert!(log.contains(reason), "{reason} in\n{log}");
            assert_eq!(told(&log), 1, "{log}");
        }
    }
}
