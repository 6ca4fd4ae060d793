//! Clients that read late, slowly or not at all, and how their streams are told of.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use cognate_server::http::Settings;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tower::ServiceExt;

use super::{answers, ended, lines, lines_to, until_counted};
use crate::support::app::TestApp;
use crate::support::listener::{Served, settings};
use crate::support::process::Process;

const PAIR: &str = "[\"quake\",\"city\"]\n";
const LINES: usize = 100_000;

/// Lines with long names: more bytes, going in as coming out, than the kernel holds for both sides.
fn long_lines() -> String {
    let line = |number| format!("{{\"id\":\"{number:0>250}\",\"a\":\"quake\",\"b\":\"city\"}}\n");
    (0..LINES).map(line).collect()
}

fn serve(change: impl Fn(&mut Settings)) -> (TestApp, Served) {
    let app = TestApp::with(&change);
    let served = Served::start(&settings(&change), app.app.router());
    (app, served)
}

/// A client whose kernel takes next to nothing of what it does not read.
async fn narrow(address: std::net::SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(address).await.unwrap()
}

fn head(length: usize) -> String {
    format!(
        "POST /similarity?method=avg-cos HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\
         x-request-id: walk-1\r\ncontent-type: application/x-ndjson\r\ncontent-length: {length}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_gets_every_answer() {
    let (app, served) = serve(|_| ());
    let body = long_lines();
    let mut client = narrow(served.address).await;
    client.write_all(head(body.len()).as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.300}");
    assert_eq!(answer.matches("\"score\":").count(), LINES);
    assert!(answer.ends_with("\r\n0\r\n\r\n"));
    until_counted(&app, &ended("complete")).await;
    let page = app.get("/metrics").await.text();
    for line in [
        "cognate_stream_spool_bytes 0",
        "cognate_unsent_bytes 0",
        "cognate_requests_total{route=\"/similarity\",method=\"POST\",status=\"200\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
}

/// A body of lines that never ends, and whether somebody still has it.
fn endless() -> (Body, Arc<()>) {
    let held = Arc::new(());
    let kept = held.clone();
    let chunk = Bytes::from(PAIR.repeat(1000));
    let body = stream::repeat_with(move || {
        let _ = &kept;
        Ok::<_, std::io::Error>(chunk.clone())
    });
    (Body::from_stream(body), held)
}

/// Answers fill what they may fill; then the client is told, and nothing more is taken in.
#[tokio::test]
async fn a_client_that_never_reads_is_told_in_the_last_line() {
    let app = TestApp::with(|settings| {
        settings.stream_spool_bytes = Some(1 << 20);
        settings.write_timeout_s = 1;
    });
    let (body, held) = endless();
    let response = app.app.router().oneshot(lines("", body)).await.unwrap();
    while Arc::strong_count(&held) > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() > 1 << 20 && body.len() < 2 << 20, "{} bytes", body.len());
    let got = answers(std::str::from_utf8(&body).unwrap());
    let last = got.last().unwrap();
    assert_eq!(last["error"]["code"], "response_too_large");
    assert_eq!(last["line"], got.len());
    let detail = last["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("`stream_spool_bytes`") && detail.contains("1048576"), "{detail}");
    until_counted(&app, &ended("spool_full")).await;
    let page = app.get("/metrics").await.text();
    let of_route = "cognate_requests_total{route=\"/similarity\",method=\"POST\",status=";
    assert!(page.contains(&format!("{of_route}\"spool_full\"}} 1\n")), "{page}");
    assert!(!page.contains(&format!("{of_route}\"200\"}}")), "not a plain 200: {page}");
}

/// What is sent after the end is thrown away, so that a client that sends first comes to read why.
#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_finds_the_last_line() {
    let (app, served) = serve(|settings| {
        settings.stream_spool_bytes = Some(1 << 20);
        settings.write_timeout_s = 1;
    });
    let body = long_lines();
    let mut client = narrow(served.address).await;
    client.write_all(head(body.len()).as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    let scores = answer.matches("\"score\":").count();
    assert!(scores > 3000 && scores < LINES / 2, "{scores}");
    assert!(answer.ends_with("\r\n0\r\n\r\n"));
    let last = answer.lines().rfind(|line| line.contains("\"line\":")).unwrap();
    assert!(last.contains(&format!("\"line\":{}", scores + 1)), "{last}");
    assert!(last.contains("`stream_spool_bytes`"), "{last}");
    until_counted(&app, &ended("spool_full")).await;
}

/// All streams together have no more room than all streams may.
#[tokio::test]
async fn streams_that_nobody_reads_share_the_room_of_all() {
    let app = TestApp::with(|settings| {
        (settings.stream_spool_bytes, settings.spool_bytes) = (Some(1 << 20), 1 << 20);
        settings.write_timeout_s = 1;
    });
    let mut unread = Vec::new();
    for _ in 0..3 {
        let (body, held) = endless();
        let response = app.app.router().oneshot(lines("", body)).await.unwrap();
        unread.push((response, held));
    }
    while unread.iter().any(|(_, held)| Arc::strong_count(held) > 1) {
        let (used, most) = app.app.spools.in_use();
        assert!(used <= most && most == 1 << 20, "{used}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (response, _) in unread {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let got = answers(std::str::from_utf8(&body).unwrap());
        let detail = got.last().unwrap()["error"]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("`spool_bytes`"), "{detail}");
    }
}

#[tokio::test]
async fn who_reads_nothing_after_it_sent_everything_is_given_up() {
    let (app, served) = serve(|settings| settings.write_timeout_s = 1);
    let body = long_lines();
    let mut client = narrow(served.address).await;
    client.write_all(head(body.len()).as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    until_counted(&app, &ended("slow_reader")).await;
    assert_eq!(app.app.spools.in_use().0, 0);
    assert_eq!(app.app.streams.in_use().0, 0);
}

/// A stream may rest, but not over answers that wait in files.
#[tokio::test]
async fn who_rests_and_reads_nothing_is_given_up() {
    let (app, served) = serve(|settings| settings.write_timeout_s = 1);
    let body = long_lines();
    let mut client = narrow(served.address).await;
    // One more byte is to come.
    client.write_all(head(body.len() + 1).as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    until_counted(&app, &ended("slow_reader")).await;
    assert_eq!(app.app.spools.in_use().0, 0);
    assert_eq!(app.app.streams.in_use().0, 0);
}

#[tokio::test]
async fn a_stream_whose_client_is_gone_is_no_plain_200() {
    let (app, served) = serve(|_| ());
    let mut client = narrow(served.address).await;
    client.write_all(head(PAIR.len() * LINES).as_bytes()).await.unwrap();
    client.write_all(PAIR.repeat(1000).as_bytes()).await.unwrap();
    let mut status = [0; 12];
    client.read_exact(&mut status).await.unwrap();
    drop(client);
    until_counted(&app, &ended("client_gone")).await;
    let page = app.get("/metrics").await.text();
    assert!(page.contains("method=\"POST\",status=\"client_gone\"} 1\n"), "{page}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_told_to_who_still_reads() {
    let (app, served) = serve(|_| ());
    let mut client = served.connect().await;
    client.write_all(head(PAIR.len() * 3).as_bytes()).await.unwrap();
    client.write_all(PAIR.repeat(2).as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("{\"line\":3,\"error\":{\"code\":\"request_timeout\""), "{answer}");
    until_counted(&app, &ended("broken_body")).await;
}

/// The log says which request it was, and a service without a place for files says so and serves on.
#[tokio::test]
async fn the_log_tells_of_streams_that_did_not_end_well() {
    let folder = ["--spool-folder", "/nowhere/at/all", "--stream-idle-s", "1"].map(str::to_owned);
    let mut process = Process::start(&folder);
    assert!(process.log().contains("/nowhere/at/all"), "{}", process.log());
    let mut client = TcpStream::connect(process.address).await.unwrap();
    client.write_all(head(PAIR.len() * LINES).as_bytes()).await.unwrap();
    let (mut reader, mut writer) = client.into_split();
    let sent = tokio::spawn(async move {
        writer.write_all(PAIR.repeat(20_000).as_bytes()).await.unwrap();
        writer
    });
    let mut answer = String::new();
    reader.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer.matches("\"score\":").count(), 20_000);
    drop(sent.await);
    process.until_log("the end of the stream", |log| log.contains("stream ended early"));
    let log = process.log();
    let line = log.lines().find(|line| line.contains("stream ended early")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let fields = line.get("fields").unwrap_or(&line);
    assert_eq!(
        (&fields["request_id"], &fields["outcome"]),
        (&"walk-1".into(), &"slow_sender".into())
    );
    assert_eq!((&fields["lines"], &fields["answered"]), (&20_000.into(), &20_000.into()));
    assert_eq!(line["level"], "INFO");
}

/// The order to stop reaches a stream that waits for its reader.
#[tokio::test]
async fn a_stream_without_room_hears_that_the_service_stops() {
    let app = TestApp::with(|settings| settings.stream_spool_bytes = None);
    let (body, held) = endless();
    let response = app.app.router().oneshot(lines_to("/similarity", body)).await.unwrap();
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    app.app.streams.end();
    while Arc::strong_count(&held) > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut text = first.to_vec();
    while let Some(bytes) = body.next().await {
        text.extend_from_slice(&bytes.unwrap());
    }
    let got = answers(std::str::from_utf8(&text).unwrap());
    let last = got.last().unwrap();
    assert_eq!((&last["error"]["code"], &last["line"]), (&"draining".into(), &got.len().into()));
    until_counted(&app, &ended("draining")).await;
}
