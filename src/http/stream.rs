//! `POST /similarity` as lines: pairs in, scores out, while the pairs are still being sent.
//!
//! Memory is bounded by one chunk of lines and two chunks of answers: while the client does not
//! read, nothing more is computed, and while nothing is computed, nothing more is read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use axum::body::Body;
use axum::body::Bytes;
use axum::extract::Query;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::Response;
use futures_util::stream;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::engine::Counts;
use crate::engine::Measure;
use crate::http::admission::Permit;
use crate::http::app::App;
use crate::http::asked::Asked;
use crate::http::asked::Choice;
use crate::http::asked::Oov;
use crate::http::body;
use crate::http::compute::Work;
use crate::http::endpoint;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::fields::Pair;
use crate::http::fields::Real;
use crate::http::fields::Text;
use crate::http::fields::Two;
use crate::http::json;
use crate::http::lines::Line;
use crate::http::lines::Lines;
use crate::http::lines::MOST_LINE_BYTES;
use crate::http::similarity::Threshold;
use crate::http::similarity::threshold;

/// Lines that are scored together.
const CHUNK: usize = 256;
/// Chunks of answers that wait for the client to read.
const ANSWERS_AHEAD: usize = 2;
/// How long to wait before asking again for room to compute.
const RETRY: Duration = Duration::from_millis(2);

/// Settings of a stream, in the query string.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamSettings {
    model: Option<String>,
    method: Option<String>,
    measure: Option<Measure>,
    oov: Option<Oov>,
    truncate: Option<bool>,
    threshold: Option<String>,
}

/// One line: `["a","b"]` or `{"a":…,"b":…}`.
struct PairLine<'b>(Pair<'b>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedPair<'b> {
    #[serde(borrow)]
    a: Text<'b>,
    #[serde(borrow)]
    b: Text<'b>,
}

impl<'de: 'b, 'b> Deserialize<'de> for PairLine<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = PairLine<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of two strings or an object with `a` and `b`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Two.visit_seq(list).map(PairLine)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let NamedPair { a, b } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PairLine(Pair(a, b)))
            }
        }
        from.deserialize_any(Either)
    }
}

/// One line of the answer.
#[derive(Serialize)]
struct Scored {
    score: f32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unscored: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<bool>,
}

/// One line that could not be scored.
#[derive(Serialize)]
struct Failed<'e> {
    line: u64,
    error: Failure<'e>,
}

#[derive(Serialize)]
struct Failure<'e> {
    code: Code,
    detail: &'e str,
}

/// Whether a request's body is lines.
pub fn is_lines(headers: &HeaderMap) -> bool {
    let bare = |media: &str| media.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    body::media_type(headers).is_some_and(|media| bare(media) == "application/x-ndjson")
}

/// What a stream is scored by.
struct Stream {
    app: Arc<App>,
    asked: Asked,
    threshold: Option<f64>,
}

/// Answers a stream.
pub async fn answer(app: Arc<App>, request: Request) -> Result<Response, ApiError> {
    let permit = app.admission.admit().map_err(|error| body::left_unread(error, &request))?;
    body::check_encoding(request.headers())?;
    let stream = Arc::new(Stream::of(&app, &request)?);
    let (answers, ready) = mpsc::channel(ANSWERS_AHEAD);
    let mut response = Response::new(Body::from_stream(stream::unfold(ready, |mut ready| async {
        let chunk: Option<Bytes> = ready.recv().await;
        chunk.map(|chunk| (Ok::<_, std::convert::Infallible>(chunk), ready))
    })));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    endpoint::mark(headers, &stream.asked, Duration::ZERO);
    tokio::spawn(stream.run(request.into_body(), answers, permit));
    Ok(response)
}

impl Stream {
    fn of(app: &Arc<App>, request: &Request) -> Result<Self, ApiError> {
        let Query(settings) =
            Query::<StreamSettings>::try_from_uri(request.uri()).map_err(|_| {
                let detail = "the query string may hold model, method, measure, oov, truncate and \
                              threshold";
                ApiError::at(Code::InvalidField, "", detail)
            })?;
        let text = |text: &Option<String>| text.clone().map(|text| Text(text.into()));
        let (model, method) = (text(&settings.model), text(&settings.method));
        let choice = Choice {
            model: model.as_ref(),
            method: method.as_ref(),
            measure: settings.measure,
            oov: settings.oov,
            truncate: settings.truncate,
        };
        let asked = choice.resolve(&app.shelf())?;
        asked.check_scores()?;
        let wanted = match settings.threshold.as_deref() {
            None => None,
            Some("calibrated") => Some(Threshold::Calibrated),
            Some(number) => {
                let fits = |number: f64| Real::of::<serde::de::value::Error>(number).ok();
                let number = number.parse::<f64>().ok().and_then(fits).ok_or_else(|| {
                    ApiError::at(Code::OutOfRange, "/threshold", "the threshold is no number")
                })?;
                Some(Threshold::Number(number))
            }
        };
        let threshold = threshold(&asked, wanted)?;
        Ok(Self { app: Arc::clone(app), asked, threshold })
    }

    /// Reads, scores and answers until the client ends the stream or goes away.
    async fn run(self: Arc<Self>, mut body: Body, answers: mpsc::Sender<Bytes>, permit: Permit) {
        let idle = Duration::from_secs(self.app.settings.body_timeout_s);
        let mut lines = Lines::default();
        let mut ended = false;
        while !ended {
            let failure = match timeout(idle, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        lines.push(&data);
                    }
                    None
                }
                Ok(None) => {
                    lines.finish();
                    ended = true;
                    None
                }
                Ok(Some(Err(_))) => Some("the body broke off"),
                Err(_) => Some("no more lines arrived in time"),
            };
            loop {
                let chunk = lines.take(CHUNK);
                if chunk.is_empty() {
                    break;
                }
                let Ok(answer) = self.score_on_pool(chunk).await else { return };
                // Nobody reads any more: the rest is not worth scoring.
                if answers.send(answer).await.is_err() {
                    return;
                }
            }
            if let Some(detail) = failure {
                let mut last = Vec::new();
                fail(&mut last, lines.seen() + 1, &ApiError::new(Code::RequestTimeout, detail));
                let _ = answers.send(last.into()).await;
                return;
            }
        }
        drop(permit);
    }

    /// Scores a chunk of lines, waiting for room as long as the deadline allows.
    async fn score_on_pool(self: &Arc<Self>, chunk: Vec<Line>) -> Result<Bytes, ()> {
        let app = &self.app;
        let patience = Duration::from_millis(app.settings.compute_deadline_ms);
        let deadline = Instant::now() + patience;
        let chunk = Arc::new(chunk);
        let refused = loop {
            let refused = match app.admission.admit() {
                Ok(mut permit) => match app.admission.top_up(&mut permit, chunk.len()) {
                    Ok(()) => {
                        let (stream, lines) = (Arc::clone(self), Arc::clone(&chunk));
                        let job = move |work: &Work| {
                            let scored = stream.score(&lines, work);
                            drop(permit);
                            scored
                        };
                        match app.compute.run(deadline, &app.metrics, job).await {
                            Some(Ok(answer)) => return Ok(answer),
                            Some(Err(error)) => break error,
                            None => app.admission.queue_full(),
                        }
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if Instant::now() > deadline {
                break refused;
            }
            tokio::time::sleep(RETRY).await;
        };
        app.metrics.refused(&refused);
        let mut answer = Vec::new();
        for line in chunk.iter() {
            fail(&mut answer, line.number, &refused);
        }
        Ok(answer.into())
    }

    /// The answers to a chunk, a line each.
    fn score(&self, lines: &[Line], work: &Work) -> Result<Bytes, ApiError> {
        work.go_on()?;
        let engine = &self.asked.served.engine;
        let parsed: Vec<Result<(Text<'_>, Text<'_>), ApiError>> = lines.iter().map(parse).collect();
        let pairs: Vec<(&Text<'_>, &Text<'_>)> =
            parsed.iter().filter_map(|pair| pair.as_ref().ok()).map(|(a, b)| (a, b)).collect();
        let mut counts = Counts::default();
        // Mostly all pairs are sound; one that is not spoils the batch, which is then scored singly.
        let together = engine.similarity(&pairs, &self.asked.query).ok();
        let mut answer = Vec::with_capacity(lines.len() * 24);
        let mut place = 0;
        for (line, pair) in lines.iter().zip(&parsed) {
            let (a, b) = match pair {
                Ok(pair) => pair,
                Err(error) => {
                    fail(&mut answer, line.number, error);
                    continue;
                }
            };
            let scored = match &together {
                Some(all) => Ok(Scored {
                    score: all.scores.get(place).copied().unwrap_or(0.0),
                    unscored: all.unscored.binary_search(&place).is_ok(),
                    truncated: all.truncated.binary_search(&place).is_ok(),
                    related: None,
                }),
                None => {
                    work.go_on()?;
                    engine.similarity(&[(a, b)], &self.asked.query).map(|one| {
                        counts.add(one.counts);
                        Scored {
                            score: one.scores.first().copied().unwrap_or(0.0),
                            unscored: !one.unscored.is_empty(),
                            truncated: !one.truncated.is_empty(),
                            related: None,
                        }
                    })
                }
            };
            place += 1;
            match scored {
                Ok(mut scored) => {
                    scored.related = self.threshold.map(|least| f64::from(scored.score) >= least);
                    // Numbers and booleans alone: this cannot fail.
                    let _ = serde_json::to_writer(&mut answer, &scored);
                    answer.push(b'\n');
                }
                Err(error) => {
                    fail(&mut answer, line.number, &ApiError::from(error).of_one_pair());
                }
            }
        }
        counts.add(together.map_or(Counts::default(), |all| all.counts));
        self.app.metrics.computed(self.asked.query.method, counts);
        Ok(answer.into())
    }
}

fn parse(line: &Line) -> Result<(Text<'_>, Text<'_>), ApiError> {
    let Some(bytes) = &line.bytes else {
        let detail = format!("the line has more than {MOST_LINE_BYTES} bytes");
        return Err(ApiError::new(Code::BodyTooLarge, detail));
    };
    let PairLine(Pair(a, b)) = json::read(bytes)?;
    Ok((a, b))
}

fn fail(answer: &mut Vec<u8>, line: u64, error: &ApiError) {
    let failed = Failed { line, error: Failure { code: error.code, detail: &error.detail } };
    // Strings and numbers alone: this cannot fail.
    let _ = serde_json::to_writer(&mut *answer, &failed);
    answer.push(b'\n');
}
