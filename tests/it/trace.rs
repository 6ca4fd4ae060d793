//! Traces: which callers are believed, and what the log says of them.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::HeaderValue;
use cognate::http::trace::Parent;
use cognate::http::trace::TraceId;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::connections_shared::answer;
use crate::process_shared::Process;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn arguments(given: &[&str]) -> Vec<String> {
    let always = ["--shutdown-delay-s", "0", "--log", "info,cognate=debug"];
    always.iter().chain(given).map(|&argument| argument.to_owned()).collect()
}

/// Sends one request on a connection of its own; gives the first line of the answer.
async fn ask(process: &Process, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(process.address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    );
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
    assert_eq!(Parent::of(&headers), None);
    headers.append("traceparent", HeaderValue::from_static(PARENT));
    assert_eq!(Parent::of(&headers), parent(true));
    headers.append("traceparent", HeaderValue::from_static(PARENT));
    assert_eq!(Parent::of(&headers), None, "told twice");
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
