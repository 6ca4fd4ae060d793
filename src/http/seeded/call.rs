//! Requests to the service's router, whose clients send and read in pieces, and checks of the
//! answers.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method as Verb, Request, StatusCode, header};
use cognate_testing::Chance;
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::ServiceExt;

use crate::http::net::Peer;
use crate::http::seeded::{NAMES, PAIRS, Run};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
/// A text longer than the bytes that count as an item before items are counted.
const TEXT: &str = "the quake hits the city and the earthquake shakes the town of new york, in which \
                    o'neill hits 0 and the quake hits the city again";

pub(super) struct Call {
    run: Rc<Run>,
    chance: Chance,
    /// Part of its items' names.
    number: usize,
    peer: usize,
    /// Whether it never pauses for longer than the service waits for it.
    steady: bool,
    here: Arc<()>,
}

struct Answer {
    fingerprint: String,
    body: String,
}

type Refused = String;

impl Call {
    pub fn new(run: &Rc<Run>, number: usize, chance: &mut Chance) -> Self {
        let (run, here) = (Rc::clone(run), Arc::default());
        let (chance, peer) = (Chance(chance.next()), chance.below(3));
        Self { run, chance, number, peer, steady: number == 0, here }
    }

    pub async fn prepare(mut self) {
        self.peer = 2;
        if self.run.service.served() != Some(0) {
            self.reload(0).await.unwrap();
        }
        for collection in 0..NAMES.len() {
            self.make(collection).await.unwrap();
        }
    }

    pub async fn any(mut self) {
        let collection = self.chance.below(2);
        let answered = match self.chance.below(16) {
            0..3 => self.score().await,
            3..6 => self.stream().await,
            6..9 => self.put(collection).await,
            9..12 => self.follow(collection).await,
            12..14 => self.look(collection).await,
            14 => match self.delete(collection).await {
                Ok(()) => self.make(collection).await,
                refused => refused,
            },
            _ => {
                self.peer = 2;
                let model = self.chance.below(3);
                self.reload(model).await
            }
        };
        let count = match answered {
            Ok(()) => &self.run.answered,
            Err(code) => {
                let usual = ["overloaded", "request_timeout", "not_found", "bad_model"];
                assert!(usual.contains(&&*code), "refused by {code}");
                &self.run.refused
            }
        };
        count.set(count.get() + 1);
    }

    pub async fn clear(mut self) {
        self.peer = 2;
        for collection in 0..NAMES.len() {
            match self.look(collection).await {
                Ok(()) => self.delete(collection).await.unwrap(),
                Err(code) => assert_eq!(code, "not_found"),
            }
        }
    }

    /// A body in pieces, which breaks off once its client is gone.
    fn body(&mut self, text: &str) -> Body {
        let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
        let most = 1 + rest.len() / (1 + self.chance.below(5));
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(1 + self.chance.below(most)));
            pieces.push((self.pause(), Bytes::copy_from_slice(piece)));
            rest = after;
        }
        let (mut pieces, here) = (pieces.into_iter(), Arc::downgrade(&self.here));
        Body::from_stream(stream::unfold((), move |()| {
            let (piece, here) = (pieces.next(), here.clone());
            async move {
                let (pause, piece) = piece?;
                sleep(pause).await;
                let lost = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
                Some((if here.strong_count() > 0 { Ok(piece) } else { lost() }, ()))
            }
        }))
    }

    /// Mostly short, and sometimes longer than the service waits for a client.
    fn pause(&mut self) -> Duration {
        let most = if !self.steady && self.chance.below(50) == 0 { 4000 } else { 40 };
        Duration::from_millis(self.chance.below(most) as u64)
    }

    async fn send(
        &mut self,
        verb: Verb,
        path: &str,
        media: &str,
        body: &str,
    ) -> Result<Answer, Refused> {
        let peer = Peer((self.run.service.peers[self.peer], 1).into());
        let mut request = Request::builder().method(verb).uri(path).extension(peer);
        request = request.header(header::CONTENT_TYPE, media);
        if self.chance.below(2) == 0 {
            request = request.header(header::CONTENT_LENGTH, body.len());
        }
        let request = request.body(self.body(body)).unwrap();
        let response = self.run.service.router.clone().oneshot(request).await.unwrap();
        let (head, mut body) = response.into_parts();
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            whole.extend_from_slice(&frame.unwrap().into_data().unwrap());
            sleep(self.pause()).await;
        }
        let body = String::from_utf8(whole).unwrap();
        let fingerprint = head.headers.get("x-model-fingerprint");
        let fingerprint = fingerprint.map_or("", |value| value.to_str().unwrap()).to_owned();
        match head.status {
            StatusCode::OK => Ok(Answer { fingerprint, body }),
            _ => Err(read(&body)["code"].as_str().unwrap().to_owned()),
        }
    }

    /// The scores of the model that answered, which must be the served one if no reload was begun
    /// after `begun` of them.
    fn scores(&self, fingerprint: &str, begun: usize) -> &[f32] {
        let models = &self.run.service.models;
        let place = models.iter().position(|model| model.fingerprint == fingerprint).unwrap();
        if self.run.reloads.none_since(begun) {
            assert_eq!(place, self.run.model.get(), "a model that was replaced before");
        }
        &models[place].scores
    }

    async fn score(&mut self) -> Result<(), Refused> {
        let begun = self.run.reloads.begun.get();
        // Sometimes as many as take a client's share of the units.
        let most = 1 << self.chance.below(10);
        let pairs: Vec<usize> =
            (0..1 + self.chance.below(most)).map(|at| at % PAIRS.len()).collect();
        let texts: Vec<_> = pairs.iter().map(|&pair| PAIRS[pair]).collect();
        let asked = json!({ "pairs": texts }).to_string();
        let answer = self.send(Verb::POST, "/similarity", JSON, &asked).await?;
        let body = read(&answer.body);
        assert_eq!(body["fingerprint"], answer.fingerprint);
        let scores = self.scores(&answer.fingerprint, begun);
        let expected: Vec<f32> = pairs.iter().map(|&pair| scores[pair]).collect();
        let found: Vec<f32> = serde_json::from_value(body["scores"].clone()).unwrap();
        assert_eq!(found, expected, "scores of another model");
        Ok(())
    }

    /// Lines whose ids are sometimes long, so that unread answers fill their limit.
    async fn stream(&mut self) -> Result<(), Refused> {
        let begun = self.run.reloads.begun.get();
        let longest = [10, 10, 10, 20_000][self.chance.below(4)];
        let ids: Vec<String> = (0..1 + self.chance.below(24))
            .map(|at| format!("{at}-{}", "x".repeat(self.chance.below(longest))))
            .collect();
        let line = |(at, id): (usize, &String)| {
            let (a, b) = PAIRS[at % PAIRS.len()];
            format!("{}\n", json!({"id": id, "a": a, "b": b}))
        };
        let lines: String = ids.iter().enumerate().map(line).collect();
        let answer = self.send(Verb::POST, "/similarity", LINES, &lines).await?;
        let scores = self.scores(&answer.fingerprint, begun);
        let answered = answered(&answer, ids.len(), &["request_timeout", "response_too_large"]);
        for (at, line) in answered.iter().enumerate() {
            assert_eq!(line["id"], ids[at]);
            let score = line["score"].as_f64().unwrap() as f32;
            assert_eq!(score, scores[at % PAIRS.len()], "a score of another model");
        }
        Ok(())
    }

    /// Items whose names state how many of them are written together.
    fn items(&mut self, most: usize) -> (Vec<String>, Vec<Value>) {
        let count = 1 + self.chance.below(most);
        let ids: Vec<String> =
            (0..count).map(|at| format!("{}.{at}.{count}", self.number)).collect();
        let items = ids.iter().map(|id| json!({"id": id, "text": TEXT})).collect();
        (ids, items)
    }

    async fn put(&mut self, collection: usize) -> Result<(), Refused> {
        let (ids, items) = self.items(4);
        let begun = self.run.collections[collection].changes.begun.get();
        let path = format!("/collections/{}/items", NAMES[collection]);
        let put = self.send(Verb::POST, &path, JSON, &json!({ "items": items }).to_string()).await;
        let kept = &self.run.collections[collection];
        match put {
            Ok(_) => kept.acknowledge(ids, begun),
            Err(code) => {
                kept.refused.borrow_mut().extend(ids);
                return Err(code);
            }
        }
        Ok(())
    }

    /// Items as lines, each matched against those before it by the same model.
    async fn follow(&mut self, collection: usize) -> Result<(), Refused> {
        let reloads = self.run.reloads.begun.get();
        let (ids, items) = self.items(9);
        // Lines are written one by one, whatever others there are.
        let ids: Vec<String> = ids.into_iter().map(|id| format!("line-{id}")).collect();
        let line = |(id, mut item): (&String, Value)| {
            item["id"] = id.as_str().into();
            format!("{item}\n")
        };
        let lines: String = ids.iter().zip(items).map(line).collect();
        let begun = self.run.collections[collection].changes.begun.get();
        let path = format!("/collections/{}/match?threshold=0.5", NAMES[collection]);
        let answer = self.send(Verb::POST, &path, LINES, &lines).await?;
        self.scores(&answer.fingerprint, reloads);
        let answered = answered(&answer, ids.len(), &["request_timeout", "not_found"]);
        for (line, id) in answered.iter().zip(&ids) {
            assert_eq!(line["id"], **id);
        }
        let there = ids.into_iter().take(answered.len());
        self.run.collections[collection].acknowledge(there, begun);
        Ok(())
    }

    async fn look(&mut self, collection: usize) -> Result<(), Refused> {
        let kept = &self.run.collections[collection];
        let (begun, there) = (kept.changes.begun.get(), kept.there.borrow().clone());
        let path = format!("/collections/{}/items?limit=1000", NAMES[collection]);
        let answer = self.send(Verb::GET, &path, JSON, "").await?;
        let body = read(&answer.body);
        let ids = body["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap());
        let ids: BTreeSet<&str> = ids.collect();
        let kept = &self.run.collections[collection];
        if kept.changes.none_since(begun) {
            let lost = there.iter().find(|id| !ids.contains(&***id));
            assert_eq!(lost, None, "an item is lost that was acknowledged");
        }
        let refused = kept.refused.borrow();
        assert!(!ids.iter().any(|id| refused.contains(*id)), "an item is there that was refused");
        for id in ids.iter().filter(|id| !id.starts_with("line")) {
            let [number, _, count] = id.split('.').collect::<Vec<_>>()[..] else { panic!("{id}") };
            let whole = (0..count.parse().unwrap())
                .all(|at: usize| ids.contains(&*format!("{number}.{at}.{count}")));
            assert!(whole, "of what was written together only a part is there");
        }
        Ok(())
    }

    async fn make(&mut self, collection: usize) -> Result<(), Refused> {
        let path = format!("/collections/{}", NAMES[collection]);
        self.send(Verb::PUT, &path, JSON, "{}").await.map(drop)
    }

    async fn delete(&mut self, collection: usize) -> Result<(), Refused> {
        let run = Rc::clone(&self.run);
        let kept = &run.collections[collection];
        kept.changes.begin();
        kept.there.borrow_mut().clear();
        let path = format!("/collections/{}", NAMES[collection]);
        let deleted = self.send(Verb::DELETE, &path, JSON, "").await;
        kept.there.borrow_mut().clear();
        kept.changes.end();
        deleted.map(drop)
    }

    /// Replaces the served model by a known one or a bad one.
    async fn reload(&mut self, model: usize) -> Result<(), Refused> {
        let run = Rc::clone(&self.run);
        let others = run.reloads.open.get();
        run.reloads.begin();
        let begun = run.reloads.begun.get();
        let known = run.service.models.get(model);
        run.service.replace_file(known.map_or(b"no model", |known| &known.bytes));
        let reloaded = self.send(Verb::POST, "/-/reload", JSON, "").await;
        let is_alone = others == 0 && run.reloads.begun.get() == begun;
        run.reloads.end();
        match (&reloaded, known) {
            (Ok(answer), Some(known)) if is_alone => {
                assert_eq!(read(&answer.body)["models"][0]["fingerprint"], known.fingerprint);
            }
            (Err(_), None) => {}
            _ => assert!(!is_alone, "{:?}", reloaded.is_ok()),
        }
        // From now on requests are answered by the last model that was put into use.
        run.model.set(run.service.served().expect("there is a model"));
        reloaded.map(drop)
    }
}

fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The lines of an answer to so many lines: all of them, or those before a line with one of these
/// codes.
fn answered(answer: &Answer, asked: usize, codes: &[&str]) -> Vec<Value> {
    let mut lines: Vec<Value> = answer.body.lines().map(read).collect();
    let failed = lines.iter().position(|line| line["error"].is_object());
    match failed {
        None => assert_eq!(lines.len(), asked, "lines without an answer"),
        Some(first) => {
            for line in lines.drain(first..) {
                let code = line["error"]["code"].as_str().unwrap();
                assert!(codes.contains(&code), "{line}");
            }
        }
    }
    lines
}
