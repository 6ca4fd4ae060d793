//! `POST /similarity` as lines: pairs in, scores out, while the pairs are still being sent.
//!
//! Memory is bounded by one chunk of lines and two chunks of answers: while the client does not
//! read, nothing more is computed, and while nothing is computed, nothing more is read.

mod line;
mod lines;
mod score;

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

use crate::engine::Measure;
use crate::http::api::pipeline;
use crate::http::api::similarity_stream::line::fail;
use crate::http::api::similarity_stream::lines::Line;
use crate::http::api::similarity_stream::lines::Lines;
use crate::http::api::similarity_stream::score::Scores;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::quota::Bucket;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::observe::facts::Facts;
use crate::http::request::body;
use crate::http::request::query::OovPolicy;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
use crate::http::request::threshold::Cutoff;
use crate::http::request::threshold::Threshold;
use crate::http::work::pool;
use crate::http::work::pool::JobContext;
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
pub(crate) fn is_lines(headers: &HeaderMap) -> bool {
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
    let (model, method) = (&stream.resolved.model.name, stream.resolved.query.method.name());
    Facts::of(&request).asks(model, method, None);
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
        let cutoff =
            threshold.map(|threshold| threshold.resolve(&resolved, "/threshold")).transpose()?;
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
            let lines = Arc::new(batch.lines);
            let (mut done, mut is_counted) = (0, false);
            while let Some(line) = lines.get(done) {
                if place.is_ended() {
                    return Err(End::Stopping(line.number));
                }
                let scores = self.score_on_pool(&lines, done).await;
                done += scores.lines;
                // Before the answer is sent, which the client may not stay for. However many jobs a
                // chunk takes, it is one answer.
                if scores.scored > 0 && !is_counted {
                    is_counted = true;
                    self.app.metrics.computed(self.resolved.query.method);
                }
                self.app.metrics.read(scores.counts);
                self.send(answers, scores.answer).await?;
            }
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

    /// Answers the first of the lines by one job on the pool, waiting for room as long as the deadline
    /// allows. What cannot be scored is answered by why.
    async fn score_on_pool(self: &Arc<Self>, lines: &Arc<Vec<Line>>, first: usize) -> Scores {
        let app = &self.app;
        let patience = Duration::from_millis(app.settings.compute_deadline_ms);
        let deadline = Instant::now() + patience;
        let mut end = lines.len();
        let refused = loop {
            let refused = match app.admission.admit() {
                Ok(mut permit) => match app.admission.top_up(&mut permit, end - first) {
                    Ok(()) => {
                        let (stream, lines) = (Arc::clone(self), Arc::clone(lines));
                        let job = move |work: &JobContext| {
                            let lines = lines.get(first..end).unwrap_or_default();
                            let scored = stream.score(lines, work);
                            drop(permit);
                            scored
                        };
                        let deadline = Instant::now() + patience;
                        match app.compute.run(deadline.into_std(), &app.metrics, job).await {
                            Some(Ok(scores)) => return scores,
                            // One line among them took too long: it alone must fail.
                            Some(Err(error))
                                if error.code == Code::DeadlineExceeded && end - first > 1 =>
                            {
                                end = first + 1;
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
        let mut answer = Vec::new();
        for line in lines.get(first..end).unwrap_or_default() {
            fail(&mut answer, line.number, &refused);
        }
        Scores { answer, lines: end - first, ..Scores::default() }
    }
}

/// The end of a stream whose server stops before the line of this number.
fn stopping(line: u64) -> (u64, Code, &'static str) {
    let detail = "the server is about to stop; this line and those after it were not answered";
    (line, Code::Draining, detail)
}

/// Waits until the caller's quota has room for `lines` lines, each of which counts as a request.
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
