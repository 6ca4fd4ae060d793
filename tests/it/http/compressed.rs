//! Compressed bodies are read as plain ones are, within the same limits; answers are compressed where a
//! setting says so.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::http::Request;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use futures_util::stream;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;

use crate::support::app::{Answer, TestApp};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

async fn send(app: &TestApp, path: &str, media: &str, encoding: &str, body: Body) -> Answer {
    let request = Request::post(path).header("content-type", media);
    app.send(request.header("content-encoding", encoding).body(body).unwrap()).await
}

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

#[tokio::test]
async fn compressed_bodies_are_answered_as_plain_ones_are() {
    let app = TestApp::new();
    let json =
        json!({"pairs": vec![["the quake", "a city"]; 900], "method": "avg-cos"}).to_string();
    let lines: String = (0..2000)
        .map(|at| format!("[\"the quake {at}\",\"a city\"]\n\n[\"new york\",\"town\"]\n"))
        .collect();
    let items: String =
        (0..900).map(|id| format!("{{\"id\":{id},\"text\":\"the quake\"}}\n")).collect();
    let put = Request::put("/collections/news").header("content-type", JSON);
    assert_eq!(app.send(put.body(Body::from("{}")).unwrap()).await.status, 200);
    for (path, media, body) in [
        ("/similarity", JSON, &json),
        ("/similarity?method=avg-cos", LINES, &lines),
        ("/collections/news/items", LINES, &items),
        ("/collections/news/match", LINES, &items),
    ] {
        let plain = send(&app, path, media, "identity", Body::from(body.clone())).await.text();
        let (half, rest) = body.as_bytes().split_at(body.len() / 2);
        for (encoding, packed) in [
            ("gzip", gzip(body.as_bytes())),
            ("X-GZIP", [gzip(half), gzip(rest)].concat()),
            ("zstd", zstd(body.as_bytes())),
            ("zstd", [zstd(half), zstd(rest)].concat()),
        ] {
            assert!(packed.len() < body.len() / 2);
            // It comes in pieces that end anywhere.
            let pieces: Vec<_> =
                packed.chunks(7).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
            let body = Body::from_stream(stream::iter(pieces));
            let answer = send(&app, path, media, encoding, body).await;
            assert_eq!(answer.status, 200, "{path} {encoding}: {}", answer.text());
            if path.starts_with("/similarity") {
                assert_eq!(without_time(&answer.text()), without_time(&plain), "{path} {encoding}");
            }
        }
    }
    let told = app.get("/collections/news").await.json();
    assert_eq!(told["items"], 900);
}

fn without_time(answer: &str) -> String {
    answer.split("\"took_ms\"").next().unwrap_or_default().to_owned()
}

/// Lines as a feed repeats them: one text, some numbers.
fn repeated(count: usize) -> String {
    let line = |at| {
        format!(
            "[\"BREAKING: quake of magnitude {}.{} near the city, updates follow \
             https://news.example/live/{at} #quake #breaking\",\"quake near the city\"]\n",
            at % 7,
            at % 10
        )
    };
    (0..count).map(line).collect()
}

/// What unpacks to much more than may be read is refused when the limit is reached: the rest is not even
/// read.
#[tokio::test]
async fn a_body_that_unpacks_to_more_than_the_limit_is_not_unpacked() {
    let app = TestApp::with(|settings| settings.body_bytes = 64 << 10);
    let long = repeated(40_000).into_bytes();
    for (encoding, packed) in [("gzip", gzip(&long)), ("zstd", zstd(&long))] {
        let all = packed.len();
        let read = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        let pieces = packed.chunks(100).map(Bytes::copy_from_slice).collect::<Vec<_>>();
        let body = stream::iter(pieces.into_iter().map(move |piece| {
            counted.fetch_add(piece.len(), Ordering::Relaxed);
            Ok::<_, std::io::Error>(piece)
        }));
        let answer = send(&app, "/similarity", JSON, encoding, Body::from_stream(body)).await;
        let problem = answer.refusal(413, "body_too_large");
        assert!(problem["detail"].as_str().unwrap().contains("`body_bytes`"), "{problem}");
        let read = read.load(Ordering::Relaxed);
        assert!(read < all / 10 + 1000, "{encoding}: {read} of {all} bytes were read");
    }
    // A line that never ends keeps nothing.
    let line: Vec<u8> = long.into_iter().filter(|byte| *byte != b'\n').collect();
    let lines = send(&app, "/similarity", LINES, "gzip", Body::from(gzip(&line))).await;
    assert_eq!(lines.text().matches("body_too_large").count(), 1, "{}", lines.text());
}

/// What costs next to nothing to send is not answered at any length, alone or as many lines; texts are,
/// however much they repeat.
#[tokio::test]
async fn a_body_that_becomes_a_hundred_times_as_long_is_refused() {
    let app = TestApp::with(|settings| settings.body_bytes = 64 << 20);
    let lines = repeated(6000);
    let plain =
        send(&app, "/similarity?method=avg-cos", LINES, "identity", Body::from(lines.clone()));
    let plain = plain.await.text();
    for (encoding, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("zstd", zstd)] {
        for unit in ["\n", " ", "[\"a\",\"b\"]\n", "x\n"] {
            let packed = pack(unit.repeat((8 << 20) / unit.len()).as_bytes());
            assert!(packed.len() < (8 << 20) / 200, "{encoding} {unit:?}: {}", packed.len());
            let stream =
                send(&app, "/similarity", LINES, encoding, Body::from(packed.clone())).await;
            let text = stream.text();
            let last = text.lines().last().unwrap_or_default();
            assert!(last.contains("unsupported_encoding"), "{encoding} {unit:?}: {last}");
            assert!(text.lines().count() < 1 << 20, "{encoding} {unit:?}");
            let json = send(&app, "/similarity", JSON, encoding, Body::from(packed)).await;
            json.refusal(415, "unsupported_encoding");
        }
        let packed = pack(lines.as_bytes());
        assert!(packed.len() < lines.len() / 8, "{encoding}: {}", packed.len());
        let answer =
            send(&app, "/similarity?method=avg-cos", LINES, encoding, Body::from(packed)).await;
        assert_eq!(without_time(&answer.text()), without_time(&plain), "{encoding}");
    }
}

#[tokio::test]
async fn what_is_not_what_it_says_is_told() {
    let app = TestApp::new();
    let body = gzip(json!({"a": "quake", "b": "city"}).to_string().as_bytes());
    let mut damaged = body.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    let cut = &body[..body.len() / 2];
    for (encoding, body) in [
        ("gzip", damaged),
        ("gzip", cut.to_vec()),
        ("gzip", b"{}".to_vec()),
        ("zstd", body),
        ("zstd", zstd(b"{}")[..7].to_vec()),
    ] {
        let answer = send(&app, "/similarity", JSON, encoding, Body::from(body)).await;
        let problem = answer.refusal(400, "malformed_json");
        assert!(problem["detail"].as_str().unwrap().contains("content-encoding"), "{problem}");
    }
    for encoding in ["br", "deflate", "gzip, zstd"] {
        let answer = send(&app, "/similarity", JSON, encoding, Body::from("{}")).await;
        answer.refusal(415, "unsupported_encoding");
        assert_eq!(answer.header("accept-encoding"), "gzip, zstd, identity");
    }
}

/// The memory for a window is taken before it is used, and no window is larger than HTTP has them.
#[tokio::test]
async fn the_window_of_a_body_is_bounded_and_paid_for() {
    // The head of a frame whose window is 1 KiB times a power of two, and a last block of one byte.
    let frame = |log: u8| {
        Body::from([&[0x28, 0xB5, 0x2F, 0xFD, 0x00, log << 3][..], &[0x09, 0, 0, b'{']].concat())
    };
    let app = TestApp::new();
    send(&app, "/similarity", JSON, "zstd", frame(14)).await.refusal(415, "unsupported_encoding");
    send(&app, "/similarity", JSON, "zstd", frame(31)).await.refusal(415, "unsupported_encoding");
    let answer = send(&app, "/similarity", JSON, "zstd", frame(13)).await;
    answer.refusal(400, "malformed_json");
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_unsent_bytes 0\n"), "the window is given back");
    let little = TestApp::with(|settings| {
        (settings.unsent_bytes, settings.response_bytes) = (Some(2 << 20), 1 << 20);
    });
    let answer = send(&little, "/similarity", JSON, "zstd", frame(11)).await;
    let problem = answer.refusal(503, "overloaded");
    assert!(problem["detail"].as_str().unwrap().contains("`unsent_bytes`"), "{problem}");
}

#[tokio::test]
async fn answers_are_compressed_where_a_setting_says_so() {
    let apps = [false, true].map(|on| TestApp::with(|settings| settings.compress_answers = on));
    let ask = async |app: &TestApp, body: &str, media: &str, accepted: &str| {
        let request = Request::post("/similarity?").header("content-type", media);
        let request = request.header("accept-encoding", accepted).body(Body::from(body.to_owned()));
        app.send(request.unwrap()).await
    };
    let pairs = json!({"pairs": vec![["the quake", "a city"]; 900]}).to_string();
    let [plain, packs] = &apps;
    let expected = ask(plain, &pairs, JSON, "gzip").await;
    assert_eq!(expected.header("content-encoding"), "");
    let mut unpacked = String::new();
    let answer = ask(packs, &pairs, JSON, "gzip").await;
    assert_eq!(
        (answer.header("content-encoding"), answer.header("vary")),
        ("gzip", "accept-encoding")
    );
    assert!(answer.body.len() < expected.body.len() / 4);
    MultiGzDecoder::new(&*answer.body).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, expected.text());
    let answer = ask(packs, &pairs, JSON, "zstd, gzip;q=0.5").await;
    assert_eq!(answer.header("content-encoding"), "zstd");
    unpacked.clear();
    StreamingDecoder::new(&*answer.body).unwrap().read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, expected.text());
    for (body, media, accepted) in [
        (&*pairs, JSON, "identity"),
        ("{\"a\":\"quake\",\"b\":\"city\"}", JSON, "gzip"),
        (&*"[\"quake\",\"city\"]\n".repeat(900), LINES, "gzip"),
    ] {
        let answer = ask(packs, body, media, accepted).await;
        assert_eq!(answer.header("content-encoding"), "", "{media} {accepted}");
    }
}
