//! Every route has one way, which a list in the code tells: what its answer pays for and where it is
//! computed. The list is held to the document, to the answers themselves, and to the dearest request that
//! each route takes.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use cognate_server::http::Peer;
use cognate_server::http::api::ways::{WAYS, Way};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::app::TestApp;
use crate::support::process::{Process, limit_data, memory};
use crate::support::{default_model, default_path};

const MIB: u64 = 1 << 20;
const DEADLINE: Duration = Duration::from_millis(500);

/// How large requests are: texts, and words of each.
#[derive(Clone, Copy)]
struct Size {
    texts: usize,
    words: usize,
}

impl Size {
    fn text(self, at: usize) -> String {
        let words = ["quake", "lima", "storm", "night", "flood", "city", "house", "river"];
        let word = |word: usize| words[(at + word * word) % words.len()];
        let text: Vec<&str> = (0..self.words).map(word).collect();
        format!("{} {at}", text.join(" "))
    }

    fn list(self) -> Vec<String> {
        (0..self.texts).map(|at| self.text(at)).collect()
    }

    fn items(self, prefix: &str) -> Vec<Value> {
        let item = |at: usize| json!({"id": format!("{prefix}{at}"), "text": self.text(at)});
        (0..self.texts).map(item).collect()
    }

    fn lines(self, line: impl Fn(usize) -> Value) -> String {
        (0..self.texts).map(|at| format!("{}\n", line(at))).collect()
    }

    /// The request of a route, as its path and its body.
    fn request(self, route: &str) -> (String, String) {
        let (text, list) = (self.text(0), self.list());
        let news = |rest: &str| format!("/collections/news{rest}");
        let ids: Vec<String> = (0..self.texts).map(|at| format!("i{at}")).collect();
        // A small event is split and merged again; of a long list most are not there.
        let moved = if self.texts > 3 { &ids[..] } else { &ids[1..2] };
        let (path, body) = match route {
            "POST /" => ("/".to_owned(), json!({ "inputs": list })),
            "POST /api/embed" => ("/api/embed".to_owned(), json!({ "input": list })),
            "POST /api/embeddings" => ("/api/embeddings".to_owned(), json!({ "prompt": text })),
            "POST /collections/{name}/match" => {
                let items = self.items("m");
                (news("/match"), json!({ "items": items, "nearest": 1000, "add": "none" }))
            }
            "POST /embed" => ("/embed".to_owned(), json!({ "texts": list })),
            "POST /explain" => ("/explain".to_owned(), json!({ "a": text, "b": self.text(1) })),
            "POST /m/{model}/{method}/embed" => {
                ("/m/default/avg-cos/embed".to_owned(), json!({ "inputs": list }))
            }
            "POST /m/{model}/{method}/similarity" => (
                "/m/default/wmd/similarity".to_owned(),
                json!({"inputs": {"source_sentence": text, "sentences": list}}),
            ),
            "POST /rank" => {
                let ranked = json!({
                    "query": text, "candidates": list, "method": "wmd", "top_k": 1000,
                    "diversify": {}
                });
                ("/rank".to_owned(), ranked)
            }
            "POST /rerank" | "POST /v2/rerank" => {
                let path = route.split(' ').nth(1).unwrap().to_owned();
                (path, json!({"query": text, "documents": list, "return_documents": true}))
            }
            "POST /score" => ("/score".to_owned(), json!({"text_1": text, "text_2": list})),
            "POST /similarity" => {
                let pairs: Vec<[&String; 2]> = list.iter().map(|text| [text, &list[0]]).collect();
                ("/similarity".to_owned(), json!({ "pairs": pairs, "method": "wmd" }))
            }
            "POST /v1/embeddings" => ("/v1/embeddings".to_owned(), json!({ "input": list })),
            "POST /vectors" => ("/vectors".to_owned(), json!({ "texts": list })),
            "GET /collections/{name}/events" => {
                (news("/events?limit=100&least=1&sort=chatter"), Value::Null)
            }
            "GET /collections/{name}/events/{id}" => (news("/events/i0?limit=1000"), Value::Null),
            "GET /collections/{name}/events/{id}/similar" => {
                (news("/events/i0/similar?limit=32&least=1"), Value::Null)
            }
            "GET /collections/{name}/items" => {
                (news("/items?limit=1000&filter=%7B%22lang%22%3A%22en%22%7D"), Value::Null)
            }
            "GET /collections/{name}/facets" => {
                (news("/facets?names=lang,n&limit=1000"), Value::Null)
            }
            "POST /collections/{name}/events/{id}/merge" => {
                (news("/events/i0/merge?limit=1000"), json!({ "events": moved }))
            }
            "POST /collections/{name}/events/{id}/split" => {
                (news("/events/i0/split?limit=1000"), json!({ "ids": moved }))
            }
            "GET /collections/{name}/items/{id}/similar" => {
                (news("/items/i1/similar?top_k=1000&return_text=true"), Value::Null)
            }
            "GET /collections" => ("/collections".to_owned(), Value::Null),
            "GET /collections/{name}" | "DELETE /collections/{name}" => (news(""), Value::Null),
            "GET /collections/{name}/items/{id}" | "DELETE /collections/{name}/items/{id}" => {
                (news("/items/i1"), Value::Null)
            }
            "DELETE /collections/{name}/events/{id}" => (news("/events/i0"), Value::Null),
            "DELETE /collections/{name}/items" => (news("/items?all=true"), Value::Null),
            "PATCH /collections/{name}/items/{id}" => {
                (news("/items/i1"), json!({"attributes": {"lang": "en"}}))
            }
            "POST /collections/{name}/items" => {
                (news("/items"), json!({ "items": self.items("p") }))
            }
            "PUT /collections/{name}" => (news(""), json!({ "max_items": 100_000 })),
            "PUT /collections/{name}/items/{id}" => (news("/items/i1"), json!({ "text": text })),
            "GET /collections/{name}/events/stream" => {
                (news("/events/stream?follow=false&least=1"), Value::Null)
            }
            "POST /collections/{name}/items as lines" => {
                let items = self.items("l");
                return (news("/items"), self.lines(|at| items[at].clone()));
            }
            "PATCH /collections/{name}/items as lines" => {
                let line =
                    |at| json!({"id": format!("i{at}"), "attributes": {"lang": self.text(at)}});
                return (news("/items"), self.lines(line));
            }
            "POST /collections/{name}/match as lines" => {
                // Of long texts few lines: each has a deadline of its own, so more only take longer. Of short ones
                // all, each with a long answer, without the second look that would take minutes.
                let long = self.words > 100;
                let of_size = if long { Self { texts: 200, ..self } } else { self };
                let second = if long { "" } else { "&second=none" };
                let path = news(&format!("/match?nearest=1000&add=none{second}"));
                let items = of_size.items("n");
                return (path, of_size.lines(|at| items[at].clone()));
            }
            "POST /embed as lines" => {
                return ("/embed".to_owned(), self.lines(|at| json!(self.text(at))));
            }
            "POST /rank as lines" => {
                let first = json!({"query": text, "method": "wmd", "top_k": 1000});
                let rest = self.lines(|at| json!(self.text(at)));
                return ("/rank".to_owned(), format!("{first}\n{rest}"));
            }
            "POST /similarity as lines" => {
                let pair = |at| json!([self.text(at), self.text(0)]);
                return ("/similarity?method=wmd".to_owned(), self.lines(pair));
            }
            other => panic!("no request is known for {other}"),
        };
        (path, if body.is_null() { String::new() } else { body.to_string() })
    }
}

/// The verb of a route, and the media type of its body.
fn head_of(route: &str) -> (&str, &'static str) {
    let media = match route.ends_with(" as lines") {
        true => "application/x-ndjson",
        false => "application/json",
    };
    (route.split(' ').next().unwrap(), media)
}

/// Routes that compute, merging after splitting, and those that take the collection away last.
fn routes() -> Vec<(Way, &'static str)> {
    let each = WAYS.iter().filter(|(way, _)| *way != Way::Fixed);
    let mut routes: Vec<(Way, &str)> =
        each.flat_map(|(way, routes)| routes.iter().map(|route| (*way, *route))).collect();
    routes.sort_by_key(|(way, route)| {
        // What takes away more has a shorter path.
        let taken = if route.starts_with("DELETE") { usize::MAX - route.len() } else { 0 };
        (taken, *way == Way::Write, route.ends_with("/merge"))
    });
    routes
}

#[test]
fn the_list_of_ways_is_that_of_the_document() {
    let mut documented = BTreeSet::new();
    let document = cognate_server::http::openapi_document();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let route = format!("{} {path}", verb.to_uppercase());
            let bodies = operation["requestBody"]["content"].as_object();
            let lines = bodies.is_some_and(|bodies| bodies.contains_key("application/x-ndjson"));
            documented.extend(lines.then(|| format!("{route} as lines")));
            // Some take nothing but lines.
            let others = bodies.is_none_or(|bodies| bodies.len() > usize::from(lines));
            documented.extend(others.then_some(route));
        }
    }
    let listed = WAYS.iter().flat_map(|(_, routes)| routes.iter());
    let listed: Vec<String> = listed.map(|route| (*route).to_owned()).collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), documented);
    assert_eq!(listed.len(), documented.len(), "a route has one way");
}

/// Each answer says by which way it came, and leaves nothing behind.
#[tokio::test]
#[cfg_attr(not(debug_assertions), ignore = "answers say it in builds with assertions")]
async fn answers_come_by_the_way_that_is_listed() {
    let app = TestApp::with_model(default_model(), |_| ());
    let small = Size { texts: 3, words: 3 };
    app.send(request("PUT /collections/{name}", small)).await;
    let matched = json!({ "items": small.items("i"), "threshold": 0.1 }).to_string();
    assert_eq!(app.post("/collections/news/match", matched).await.status, StatusCode::OK);
    for (way, route) in routes() {
        let response = app.app.router().oneshot(request(route, small)).await.unwrap();
        let came = response.extensions().get::<Way>().copied();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status, StatusCode::OK, "{route}: {}", String::from_utf8_lossy(&body));
        assert_eq!(came, Some(way), "{route}");
        drop(body);
        app.until_idle(Duration::from_secs(1)).await;
        assert_eq!(app.app.unsent.in_use().0, 0, "{route}");
    }
}

fn request(route: &str, size: Size) -> Request<Body> {
    let (verb, media) = head_of(route);
    let (path, body) = size.request(route);
    let path = path.replace("/m/default/", "/m/tiny/");
    let request = Request::builder().method(verb).uri(path).header("content-type", media);
    request.extension(Peer(([127, 0, 0, 1], 1).into())).body(Body::from(body)).unwrap()
}

/// Sends a request and reads the answer to its end; its status.
fn send(process: &Process, route: &str, (path, body): (String, String)) -> Option<String> {
    let (verb, media) = head_of(route);
    let mut stream = TcpStream::connect(process.address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let length = body.len();
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: {media}\r\n\
         content-length: {length}\r\n\r\n"
    );
    let mut writer = stream.try_clone().ok()?;
    // Lines are answered while they are sent, so they are read meanwhile.
    let writing = std::thread::spawn(move || {
        let _ = writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body.as_bytes()));
    });
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    writing.join().ok()?;
    Some(String::from_utf8_lossy(answer.get(9..12)?).into_owned())
}

/// A figure of the server.
fn figure(process: &Process, name: &str) -> f64 {
    let mut stream = TcpStream::connect(process.address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is missing in {page}")).parse().unwrap()
}

/// The dearest request of each route leaves the server alive within 480 MiB above what it had, and a second
/// after its deadline nothing of it is computed, admitted or kept.
#[test]
fn the_dearest_request_of_each_route_is_bounded_in_memory_and_time() {
    let deadline = DEADLINE.as_millis().to_string();
    let arguments = ["--compute-deadline-ms".to_owned(), deadline];
    let process = Process::serve(&default_path(), &arguments);
    let kept = Size { texts: 500, words: 100 };
    let made = send(&process, "PUT /collections/{name}", kept.request("PUT /collections/{name}"));
    assert_eq!(made.as_deref(), Some("200"));
    let path = "/collections/news/match".to_owned();
    for items in kept.items("i").chunks(50) {
        let matched = json!({ "items": items, "threshold": 0.1 }).to_string();
        let ask =
            || send(&process, "POST /collections/{name}/match", (path.clone(), matched.clone()));
        // A busy machine may be late.
        let made = (0..10).map(|_| ask()).find(|status| status.as_deref() == Some("200"));
        assert!(made.is_some(), "{}", process.log());
    }
    limit_data(&process, 480 * MIB);
    let before = memory(&process, "VmRSS:");
    for (_, route) in routes() {
        let sizes = [Size { texts: 1800, words: 700 }, Size { texts: 10_000, words: 8 }];
        let mut requests = sizes.map(|size| size.request(route)).to_vec();
        requests.dedup();
        for request in requests {
            let status = send(&process, route, request);
            let status = status.unwrap_or_else(|| panic!("{route}: no answer\n{}", process.log()));
            assert_ne!(status, "500", "{route}: {}", process.log());
            let (begun, most) = (Instant::now(), DEADLINE + Duration::from_secs(1));
            let left = || {
                ["cognate_compute_jobs", "cognate_admission_units_in_use", "cognate_unsent_bytes"]
                    .map(|name| figure(&process, name))
            };
            while left() != [0.0; 3] {
                assert!(begun.elapsed() < most, "{route} left {:?}", left());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    let taken = memory(&process, "VmHWM:").saturating_sub(before);
    assert!(taken < 480 * MIB, "{} MiB over idle", taken / MIB);
}
