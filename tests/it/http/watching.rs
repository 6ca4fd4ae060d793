//! What operators watch: every metric that the alert rules and the dashboard name is served
//! from the first request on, and what a code means is told where they ask. Whether the queries are well formed is for
//! `deploy/check.sh`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use axum::http::Request;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::app::TestApp;
use crate::support::listener::answer;
use crate::support::process::Process;

/// Names that begin as ours do, wherever they stand in the text.
fn named(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("cognate_") || word.starts_with("process_"))
        .collect()
}

#[tokio::test]
async fn every_metric_that_is_watched_is_served() {
    // What a replica serves beside all else.
    let folder = tempfile::tempdir().unwrap();
    let replica = TestApp::with(|settings| settings.replica_of = Some(folder.path().to_owned()));
    // Series of a route come with its first request.
    let stream = Request::post("/similarity").header("content-type", "application/x-ndjson");
    replica.send(stream.body("[\"north\",\"east\"]\n".into()).unwrap()).await;
    let mut page = String::new();
    for _ in 0..500 {
        page = replica.get("/metrics").await.text();
        if page.contains("cognate_stream_lines_total{") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let served: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    for (file, at_least) in [("prometheus/alerts.yml", 15), ("grafana/dashboards/cognate.json", 25)]
    {
        let text = fs::read_to_string(deploy.join(file)).unwrap();
        let watched = named(&text);
        assert!(watched.len() >= at_least, "{file} watches only {watched:?}");
        let missing: Vec<_> = watched.difference(&served).collect();
        assert!(missing.is_empty(), "{file} watches {missing:?}, which are not served");
    }
}

#[tokio::test]
async fn an_address_of_their_own_tells_operators_what_a_code_means() {
    let process = Process::start(&["--admin-listen".to_owned(), "127.0.0.1:0".to_owned()]);
    let log = process.log();
    let (_, rest) = log.split_once("\"listening for operators\",\"address\":\"").unwrap();
    let mut stream = TcpStream::connect(rest.split('"').next().unwrap()).await.unwrap();
    for (path, status, says) in [
        ("/problems/not-written", "200", "<code>not_written</code>"),
        ("/problems/none", "404", "not_found"),
        ("/docs/index.html", "404", "not_found"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let (head, body) = answer(&mut stream).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{path}: {head}");
        assert!(body.contains(says), "{path}: {body}");
    }
}
