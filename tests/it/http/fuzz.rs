//! Bad input by the ten thousand: bodies, heads and bare bytes made from good ones by a seeded
//! mutator. Nothing may fail on the server's side, and every refusal is a proper one.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::support::app::TestApp;
use crate::support::listener::{Served, settings};
use crate::support::{Chance, rounds};

const SEED: u64 = 20_261_121;

/// Good bodies and the routes they belong to.
const BODIES: [(&str, &str); 18] = [
    (
        "/similarity",
        r#"{"pairs":[["the quake","an earthquake"],["new york","o'neill"]],"method":"dynamax","threshold":0.5}"#,
    ),
    (
        "/similarity",
        r#"{"a":"the quake","b":"the city","measure":"euclidean","method":"avg-cos","oov":"error"}"#,
    ),
    (
        "/embed",
        r#"{"texts":["new york","the town"],"method":"sif","normalize":true,"encoding":"base64"}"#,
    ),
    ("/embed", r#"{"texts":"über","method":"avg_cos","truncate":true}"#),
    (
        "/rank",
        r#"{"query":"quake","candidates":["city",{"id":3,"text":"town"},{"id":"x","text":"york"}],"top_k":2,"min_score":-0.5}"#,
    ),
    (
        "/rank",
        r#"{"query":"the new city","candidates":["a","b"],"method":"wmd","return_text":true}"#,
    ),
    (
        "/rank",
        r#"{"query":"the new city","candidates":[{"id":1,"text":"a city","boost":0.5,"data":{"a":[1,"b"]}},"new"],"boost_by":"multiply","exclude":[1,"x"],"offset":1}"#,
    ),
    (
        "/rank",
        r#"{"like":["the new city",{"text":"quake","weight":2}],"unlike":["york"],"strategy":"mean","unlike_weight":0.2,"candidates":["a city",{"id":2,"text":"quake"},"quakes"],"collapse":0.9,"explain":true}"#,
    ),
    (
        "/rank",
        r#"{"queries":["new city","quake"],"candidates":["a city","the quake","b"],"diversify":{"lambda":0.5,"pool":3},"top_k":2,"method":"sif"}"#,
    ),
    ("/explain", r#"{"a":"the quake hits","b":"an earthquake shakes","method":"blend"}"#),
    ("/-/reload", ""),
    ("/embed", r#"{"inputs":["a quake","new york"],"truncate":true,"dimensions":2}"#),
    ("/", r#"{"inputs":{"source_sentence":"a quake","sentences":["new york","the city"]}}"#),
    (
        "/v1/embeddings",
        r#"{"input":["a quake","x"],"model":"tiny:sif","encoding_format":"base64"}"#,
    ),
    (
        "/rerank",
        r#"{"query":"a quake","documents":["new york",{"text":"the city"}],"top_n":1,"relevant_spans":{"mode":"enabled"}}"#,
    ),
    ("/m/tiny/avg-cos/rerank", r#"{"query":"a quake","texts":["new york"],"raw_scores":true}"#),
    ("/score", r#"{"queries":"a quake","documents":["new york","the city"],"model":"tiny"}"#),
    ("/vectors", r#"{"texts":["a quake",""],"config":{"dimensions":2}}"#),
];

/// Pieces that are dangerous somewhere.
const PIECES: [&str; 24] = [
    "null",
    "true",
    "-1",
    "1e39",
    "1e400",
    "1e-400",
    "99999999999999999999",
    "0.5",
    "\"\"",
    "[]",
    "{}",
    "[[[[",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\u{fdfa}",
    "e\u{301}\u{301}\u{301}",
    "\u{200d}",
    "\"a\":",
    ",",
    "}",
    "]",
    "\"method\":\"wmd\"",
    "NaN",
];

fn mutate(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, chance.below(256) as u8),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => {
                let piece = PIECES[chance.below(PIECES.len())];
                drop(bytes.splice(at..at, piece.bytes()));
            }
            5 => {
                let end = at + chance.below(bytes.len() - at + 1);
                let copy = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            _ => {
                let end = at + chance.below(bytes.len() - at + 1).min(12);
                drop(bytes.drain(at..end));
            }
        }
    }
}

#[tokio::test]
async fn bad_bodies_and_heads_meet_proper_refusals() {
    let app = TestApp::new();
    let mut chance = Chance(SEED);
    let mut met = std::collections::BTreeMap::new();
    for round in 0..rounds(20_000, 100_000) {
        let (path, body) = BODIES[chance.below(BODIES.len())];
        let mut body = body.as_bytes().to_vec();
        mutate(&mut body, &mut chance);
        let shown = String::from_utf8_lossy(&body).into_owned();
        let mut request = Request::post(path).header("content-type", "application/json");
        if chance.below(8) == 0 {
            let names = [
                "content-type",
                "content-length",
                "content-encoding",
                "authorization",
                "x-request-id",
                "accept",
                "x-\u{7f}",
            ];
            let mut value = b"application/json".to_vec();
            mutate(&mut value, &mut chance);
            let name = HeaderName::from_bytes(names[chance.below(names.len())].as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
                request = request.header(name, value);
            }
        }
        let answer = app.send(request.body(Body::from(body)).unwrap()).await;
        let status = answer.status.as_u16();
        *met.entry(status).or_insert(0_u32) += 1;
        match status {
            200 => {
                answer.json();
            }
            400..=499 | 503 => {
                let said = answer.json();
                let code = said.get("code").or(said.pointer("/error/code"));
                let code = code.and_then(|code| code.as_str()).unwrap().to_owned();
                // Other dialects have forms of their own.
                if answer.header("content-type") == "application/problem+json" {
                    answer.refusal(status, &code);
                }
            }
            _ => panic!("round {round}: {status} for {shown}"),
        }
    }
    assert!(met[&200] > 100 && met[&400] > 100 && met[&422] > 100, "{met:?}");
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_panics_total 0\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bare_bytes_never_end_the_server() {
    let app = TestApp::new();
    let settings = settings(|settings| settings.header_timeout_s = 1);
    let served = Served::start(&settings, app.app.router());
    let mut chance = Chance(SEED);
    let mut buffer = vec![0; 4096];
    for _ in 0..rounds(1500, 10_000) {
        let (path, body) = BODIES[chance.below(BODIES.len())];
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut bytes = head.into_bytes();
        mutate(&mut bytes, &mut chance);
        let mut stream = served.connect().await;
        // The server may answer and close before everything is sent.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        while let Ok(Ok(read @ 1..)) =
            timeout(Duration::from_secs(5), stream.read(&mut buffer)).await
        {
            answer.extend_from_slice(&buffer[..read]);
        }
        let first = String::from_utf8_lossy(&answer[..answer.len().min(15)]).into_owned();
        let fine = first.is_empty()
            || ["2", "4"].iter().any(|class| first.starts_with(&format!("HTTP/1.1 {class}")));
        assert!(
            fine || first.starts_with("HTTP/1.1 505") || first.starts_with("HTTP/1.0"),
            "{first}"
        );
    }
    served.until_open(0).await;
    let mut stream = served.connect().await;
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let (head, _) = crate::support::listener::answer(&mut stream).await.unwrap();
    assert!(head.starts_with("http/1.1 200"), "{head}");
}
