//! `POST /similarity` as lines: pairs in, scores out, while the pairs are still being sent.
//!
//! Memory is bounded by one chunk of lines and two chunks of answers: while the client does not
//! read, nothing more is computed, and while nothing is computed, nothing more is read.

mod line;
mod lines;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

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
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio::time::sleep;
use tokio::time::timeout_at;

use crate::engine::Counts;
use crate::engine::Measure;
use crate::http::api::pipeline;
use crate::http::api::similarity_stream::line::Scored;
use crate::http::api::similarity_stream::line::fail;
use crate::http::api::similarity_stream::line::parse;
use crate::http::api::similarity_stream::lines::Line;
use crate::http::api::similarity_stream::lines::Lines;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::quota::Bucket;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::request::body;
use crate::http::request::cost::estimate;
use crate::http::request::fields::Text;
use crate::http::request::query::OovPolicy;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
use crate::http::request::threshold::Cutoff;
use crate::http::request::threshold::Threshold;
use crate::http::work::pool;
use crate::http::work::pool::JobContext;
use crate::http::work::pool::PART_NANOS;
use crate::http::work::streams::Place;

/// Lines that are scored together.
const CHUNK: usize = 256;
/// Chunks of answers that wait for the client to read.
const ANSWERS_AHEAD: usize = 2;
/// How long to wait before asking again for room to compute.
const RETRY: Duration = Duration::from_millis(2);
/// How long to wait before asking again for memory for an answer.
const MEMORY_RETRY: Duration = Duration::from_millis(20);
/// Bytes that a client must send within the body's timeout if it completes no line in it.
const LEAST_PROGRESS: usize = 1 << 10;

/// Settings of a stream, in the query string.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamSettings {
    model: Option<String>,
    method: Option<String>,
    measure: Option<Measure>,
    oov: Option<OovPolicy>,
    truncate: Option<bool>,
    threshold: Option<String>,
}

/// Whether a request's body is lines.
pub fn is_lines(headers: &HeaderMap) -> bool {
    let bare = |media: &str| media.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    body::media_type(headers).is_some_and(|media| bare(media) == "application/x-ndjson")
}

/// What a stream is scored by.
struct Stream {
    app: Arc<App>,
    resolved: Resolved,
    cutoff: Option<Cutoff>,
    /// What the caller's key may still ask, if there is a quota.
    bucket: Option<Arc<Bucket>>,
}

/// Answers a stream.
pub async fn answer(app: Arc<App>, request: Request) -> Result<Response, ApiError> {
    let permit = app.admission.admit()?;
    body::check_encoding(request.headers())?;
    let stream = Arc::new(Stream::of(&app, &request)?);
    let place = app.streams.take()?;
    let (answers, ready) = mpsc::channel(ANSWERS_AHEAD);
    let mut response = Response::new(Body::from_stream(stream::unfold(ready, |mut ready| async {
        let chunk: Option<Bytes> = ready.recv().await;
        chunk.map(|chunk| (Ok::<_, std::convert::Infallible>(chunk), ready))
    })));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    pipeline::mark(headers, &stream.resolved, Duration::ZERO);
    let body = request.into_body();
    tokio::spawn(async move {
        // A client that is gone needs no more.
        let _ = stream.run(body, &answers, place).await;
        drop(permit);
    });
    Ok(response)
}

/// Why a stream ends before its client ends it.
enum End {
    /// The client reads no more.
    Gone,
    /// The service stops; the line of this number is the first that is not answered.
    Stopping(u64),
}

impl Stream {
    fn of(app: &Arc<App>, request: &Request) -> Result<Self, ApiError> {
        let Query(settings) =
            Query::<StreamSettings>::try_from_uri(request.uri()).map_err(|_| {
                let detail = "the query string may hold model, method, measure, oov, truncate and \
                              threshold";
                ApiError::at(Code::InvalidField, "", detail)
            })?;
        let selection = Selection {
            measure: settings.measure,
            oov: settings.oov,
            truncate: settings.truncate,
            ..Selection::named(settings.model.as_ref(), settings.method.as_ref())
        };
        let resolved = selection.resolve(&app.models())?;
        resolved.check_scores()?;
        let threshold = settings.threshold.as_deref().map(Threshold::parse).transpose()?;
        let cutoff = threshold.map(|threshold| threshold.resolve(&resolved)).transpose()?;
        let caller = request.extensions().get::<Caller>();
        let bucket = caller.and_then(|caller| caller.bucket.clone());
        Ok(Self { app: Arc::clone(app), resolved, cutoff, bucket })
    }

    /// Reads, scores and answers until the client ends the stream or goes away, does not get on, or
    /// the service stops.
    async fn run(
        self: Arc<Self>,
        mut body: Body,
        answers: &mpsc::Sender<Bytes>,
        mut place: Place,
    ) -> Result<(), End> {
        let patience = Duration::from_secs(self.app.settings.body_timeout_s);
        let mut lines = Lines::default();
        let (mut until, mut arrived) = (Instant::now() + patience, 0);
        let (line, code, detail) = loop {
            let frame = tokio::select! {
                // First, since a lively client always has more.
                biased;
                () = place.ended() => break stopping(lines.seen() + 1),
                frame = timeout_at(until, body.frame()) => frame,
            };
            match frame {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        arrived += data.len();
                        lines.push(data);
                    }
                }
                Ok(None) => lines.finish(),
                Ok(Some(Err(_))) => {
                    break (lines.seen() + 1, Code::RequestTimeout, "the body broke off");
                }
                Err(_) => {
                    let detail = "neither a line nor 1024 bytes of one arrived in time (setting \
                                  `body_timeout_s`)";
                    break (lines.seen() + 1, Code::RequestTimeout, detail);
                }
            }
            match self.answer_all(&mut lines, answers, &mut place).await {
                Ok(_) if lines.is_finished() => return Ok(()),
                Ok(answered) if answered || arrived >= LEAST_PROGRESS => {
                    (until, arrived) = (Instant::now() + patience, 0);
                }
                Ok(_) => {}
                Err(End::Stopping(line)) => break stopping(line),
                Err(End::Gone) => return Err(End::Gone),
            }
        };
        let mut last = Vec::new();
        let error = ApiError::new(code, detail);
        self.app.metrics.refused(&error);
        fail(&mut last, line, &error);
        self.send(answers, last).await
    }

    /// Answers the lines that are complete; whether there were any.
    async fn answer_all(
        self: &Arc<Self>,
        lines: &mut Lines,
        answers: &mpsc::Sender<Bytes>,
        place: &mut Place,
    ) -> Result<bool, End> {
        let most = self.bucket.as_ref().map_or(CHUNK, |bucket| {
            CHUNK.min(usize::try_from(bucket.per_second().get()).unwrap_or(CHUNK))
        });
        let mut answered = false;
        loop {
            let next = lines.seen() + 1;
            if place.is_ended() {
                return Err(End::Stopping(next));
            }
            let batch = lines.take(most);
            if batch.passed == 0 {
                return Ok(answered);
            }
            if let Some(bucket) = &self.bucket {
                tokio::select! {
                    paid = pay(bucket, batch.passed, answers) => paid?,
                    () = place.ended() => return Err(End::Stopping(next)),
                }
            }
            if batch.lines.is_empty() {
                // Lines of white space cost next to nothing, but there may be no end of them.
                yield_now().await;
                continue;
            }
            answered = true;
            let answer = self.score_on_pool(batch.lines).await;
            self.send(answers, answer).await?;
        }
    }

    /// Hands an answer over, once there is memory for it and the client has read those before it.
    async fn send(&self, answers: &mpsc::Sender<Bytes>, answer: Vec<u8>) -> Result<(), End> {
        let mut answer = answer;
        loop {
            match self.app.unsent.charge(answer) {
                // Nobody reads any more: the rest is not worth scoring.
                Ok(answer) => return answers.send(answer).await.map_err(|_| End::Gone),
                Err(kept) => answer = kept,
            }
            wait_for(MEMORY_RETRY, answers).await?;
        }
    }

    /// Scores a chunk of lines, waiting for room as long as the deadline allows. What a job does not
    /// get done in its time is left to the next, so lines fail only where one alone takes too long.
    async fn score_on_pool(self: &Arc<Self>, chunk: Vec<Line>) -> Vec<u8> {
        let app = &self.app;
        let patience = Duration::from_millis(app.settings.compute_deadline_ms);
        let mut deadline = Instant::now() + patience;
        let chunk = Arc::new(chunk);
        let (mut answers, mut done) = (Vec::new(), 0);
        let refused = loop {
            let refused = match app.admission.admit() {
                Ok(mut permit) => match app.admission.top_up(&mut permit, chunk.len() - done) {
                    Ok(()) => {
                        let (stream, lines) = (Arc::clone(self), Arc::clone(&chunk));
                        let job = move |work: &JobContext| {
                            let scored = stream.score(lines.get(done..).unwrap_or_default(), work);
                            drop(permit);
                            scored
                        };
                        match app.compute.run(deadline.into_std(), &app.metrics, job).await {
                            Some(Ok((answer, lines))) => {
                                answers.extend(answer);
                                done += lines;
                                if done >= chunk.len() {
                                    return answers;
                                }
                                deadline = Instant::now() + patience;
                                continue;
                            }
                            Some(Err(error)) => break error,
                            None => pool::queue_full(),
                        }
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if Instant::now() > deadline {
                break refused;
            }
            sleep(RETRY).await;
        };
        app.metrics.refused(&refused);
        for line in chunk.iter().skip(done) {
            fail(&mut answers, line.number, &refused);
        }
        answers
    }

    /// The answers to the first of the lines, one each, and how many these are: all that are done
    /// when half of the job's time is over.
    fn score(&self, lines: &[Line], work: &JobContext) -> Result<(Vec<u8>, usize), ApiError> {
        work.check()?;
        let parsed: Vec<Result<(Text<'_>, Text<'_>), ApiError>> = lines.iter().map(parse).collect();
        let estimates = parsed.iter().flatten().map(|(a, b)| {
            let multiplications = self.resolved.multiplications(a.as_ref(), b.as_ref());
            estimate(a.as_ref().len() + b.as_ref().len(), multiplications)
        });
        let each = estimates.sum::<u64>() / lines.len().max(1) as u64;
        let per_part = usize::try_from(PART_NANOS / each.max(1)).unwrap_or(usize::MAX).max(1);
        let (mut answer, mut done) = (Vec::with_capacity(lines.len() * 24), 0);
        let mut counts = Counts::default();
        for (lines, parsed) in lines.chunks(per_part).zip(parsed.chunks(per_part)) {
            if done > 0 && work.is_half_over() {
                break;
            }
            counts.add(self.score_part(lines, parsed, work, &mut answer)?);
            done += lines.len();
        }
        self.app.metrics.computed(self.resolved.query.method, counts);
        Ok((answer, done))
    }

    /// Writes the answers to some lines that were parsed, and says what was read for them.
    fn score_part(
        &self,
        lines: &[Line],
        parsed: &[Result<(Text<'_>, Text<'_>), ApiError>],
        work: &JobContext,
        answer: &mut Vec<u8>,
    ) -> Result<Counts, ApiError> {
        let engine = &self.resolved.model.engine;
        let pairs: Vec<(&Text<'_>, &Text<'_>)> =
            parsed.iter().filter_map(|pair| pair.as_ref().ok()).map(|(a, b)| (a, b)).collect();
        let mut counts = Counts::default();
        // Mostly all pairs are sound; one that is not spoils the batch, which is then scored singly.
        let together = engine.similarity(&pairs, &self.resolved.query).ok();
        let mut place = 0;
        for (line, pair) in lines.iter().zip(parsed) {
            let (a, b) = match pair {
                Ok(pair) => pair,
                Err(error) => {
                    fail(answer, line.number, error);
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
                    work.check()?;
                    engine.similarity(&[(a, b)], &self.resolved.query).map(|one| {
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
                    scored.related = self.cutoff.map(|cutoff| cutoff.is_reached_by(scored.score));
                    scored.write(answer);
                }
                Err(error) => fail(answer, line.number, &ApiError::from(error).of_one_pair()),
            }
        }
        counts.add(together.map_or(Counts::default(), |all| all.counts));
        Ok(counts)
    }
}

/// The end of a stream whose server stops before the line of this number.
fn stopping(line: u64) -> (u64, Code, &'static str) {
    let detail = "the server is about to stop; this line and those after it were not answered";
    (line, Code::Draining, detail)
}

/// Waits until the caller's quota has room for so many lines, each of which counts as a request.
async fn pay(bucket: &Bucket, lines: usize, answers: &mpsc::Sender<Bytes>) -> Result<(), End> {
    let lines = u32::try_from(lines).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    while let Err(wait) = bucket.take(lines) {
        wait_for(wait, answers).await?;
    }
    Ok(())
}

/// Waits, unless the client goes away.
async fn wait_for(pause: Duration, answers: &mpsc::Sender<Bytes>) -> Result<(), End> {
    tokio::select! {
        () = answers.closed() => Err(End::Gone),
        () = sleep(pause) => Ok(()),
    }
}
