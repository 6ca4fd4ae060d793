//! Questions as lines: items in, answers out, while the items are still being sent.
//!
//! Memory is bounded by one chunk of lines and a spool's buffer: answers that the client does not
//! read yet go into the spool's files. Once these are full too, nothing more is computed until the
//! client reads, and while nothing is computed, nothing more is read.

pub(crate) mod embed;
pub(crate) mod items;
mod job;
mod line;
pub(crate) mod matching;
pub(crate) mod rank;
pub(crate) mod similarity;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use cognate::engine::Counts;
use http_body_util::BodyExt;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::http::api::pipeline;
pub(crate) use crate::http::api::stream::job::Record;
use crate::http::api::stream::job::{End, Part};
pub(crate) use crate::http::api::stream::line::Failure;
use crate::http::api::stream::line::{Line, LineId, Lines, fail};
use crate::http::api::ways::Way;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::quota::Bucket;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::observe::hand_over::HandOver;
use crate::http::observe::request_log::Facts;
use crate::http::observe::streams::Outcome;
use crate::http::request::body;
use crate::http::request::query::{Delivery, Resolved};
use crate::http::work::admission::Permit;
use crate::http::work::pool::JobContext;
use crate::http::work::spool::Writer;
use crate::http::work::streams::Place;
use crate::http::work::turns::Turn;

/// Lines that are answered together.
const CHUNK: usize = 256;
/// Bytes that a client must send within the body's timeout if it completes no line that it began.
const MIN_PROGRESS: usize = 1 << 10;

/// A question asked line by line: how a line is read, answered and written.
trait LineQuestion: Send + Sync + 'static {
    type Item<'b>;
    type Answers;
    /// Data of lines for the end of the answer.
    type Kept: Default + Send + 'static;

    /// The model and method; `None` if lines need none.
    fn resolved(&self) -> Option<&Resolved>;

    /// Parses a line; a line that is too long has no bytes.
    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<Self::Item<'b>>;

    fn id<'i>(item: &'i Self::Item<'_>) -> Option<LineId<'i>>;

    /// Whether answering waits for another machine.
    fn waits(&self, _: &App) -> bool {
        false
    }

    /// Waits for the turn to compute, if questions of this kind are computed one at a time; holds
    /// no thread.
    fn turn(&self) -> impl Future<Output = Result<Option<Turn>>> + Send {
        async { Ok(None) }
    }

    /// Waits until writes are durable, before answers are sent; holds no thread of the pool.
    fn wait_durable(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Returns how many of these items are computed together.
    fn per_part(&self, items: &[&Self::Item<'_>]) -> usize;

    /// Computes items together. An error of one item fails all.
    fn ask(&self, items: &[&Self::Item<'_>], work: &JobContext) -> Result<Self::Answers>;

    fn counts(answers: &Self::Answers) -> Counts;

    /// Writes the answer to an item, by its index among those computed together.
    fn write(
        &self,
        line: &Line,
        item: &Self::Item<'_>,
        answers: &Self::Answers,
        place: usize,
        part: &mut Part<Self::Kept>,
    );

    /// The position in a line of an error that a native question reports at `pointer`.
    fn pointer_in_line(pointer: Pointer) -> Pointer {
        pointer
    }

    /// Takes the data of lines, in the order of the lines.
    fn keep(&self, _: &mut Part<Self::Kept>) -> Result<()> {
        Ok(())
    }

    /// Whether work remains after the last line.
    fn is_unfinished(&self) -> bool {
        false
    }

    /// Does the work that remains after the last line.
    fn finish(&self, _: &JobContext) -> Result<()> {
        Ok(())
    }

    /// The end of the answer in pieces; `None` after the last.
    fn conclude(&self) -> Option<Vec<u8>> {
        None
    }
}

struct Opening {
    app: Arc<App>,
    permit: Permit,
    caller: Caller,
    delivery: Arc<Delivery>,
    facts: Arc<Facts>,
}

impl Opening {
    fn new(app: Arc<App>, request: &Request) -> Result<Self> {
        let caller = Caller::from_extensions(request.extensions())?;
        let permit = app.admission.admit_for(&caller.client)?;
        body::check_encoding(request.headers())?;
        let delivery = request.extensions().get::<Arc<Delivery>>().cloned().unwrap_or_default();
        Ok(Self { app, permit, caller, delivery, facts: Facts::from_request(request) })
    }

    /// A slot for streams, if one is free.
    fn place(&self) -> Result<Place> {
        self.app.streams.take(&self.caller.client)
    }

    /// Answers a question whose lines are those that arrived and those of the body.
    fn answer<Q: LineQuestion>(
        self,
        question: Q,
        place: Place,
        body: Body,
        lines: Lines,
    ) -> Response {
        let Self { app, permit, caller, delivery, facts } = self;
        let resolved = question.resolved();
        if let Some(resolved) = resolved {
            facts.asks(&resolved.model.name, resolved.listed_method(), None);
        }
        let patience = Duration::from_secs(app.settings.write_timeout_s);
        let (writer, reader) = app.spools.open(&app.unsent.of(&caller.client), patience);
        let (hand_over, handed_over) = HandOver::new();
        let mut response = Response::new(Body::from_stream(reader.into_stream()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        if let Some(resolved) = resolved {
            pipeline::mark(headers, resolved, Duration::ZERO);
        }
        response.extensions_mut().insert(hand_over);
        Way::Stream.mark(&mut response);
        let mut record = Record::new(Arc::clone(&app), handed_over);
        record.note_read(&lines);
        let stream = Arc::new(Stream { app, question, caller });
        let mut talk = Talk { stream, writer, place, record };
        let mut body = body;
        tokio::spawn(async move {
            let ended = talk.read_all(&mut body, lines).await;
            // From here on nothing is computed.
            drop(permit);
            talk.end(ended, body, &delivery).await;
        });
        response
    }
}

struct Stream<Q> {
    app: Arc<App>,
    question: Q,
    caller: Caller,
}

impl<Q> Stream<Q> {
    /// Whether its key is still valid after a reload.
    fn is_admitted(&self) -> bool {
        let access = self.app.access();
        (**access).as_ref().is_none_or(|access| access.still_admits(&self.caller))
    }
}

struct Talk<Q> {
    stream: Arc<Stream<Q>>,
    writer: Writer,
    place: Place,
    record: Record,
}

impl<Q: LineQuestion> Talk<Q> {
    /// Reads, computes and answers until the client ends the stream, goes away or stalls, or the
    /// service stops. A client may pause between lines, but not within a line.
    async fn read_all(&mut self, body: &mut Body, mut lines: Lines) -> Result<(), End> {
        let settings = &self.stream.app.settings;
        let [idle, patience, look] =
            [settings.stream_idle_s, settings.body_timeout_s, settings.write_timeout_s]
                .map(Duration::from_secs);
        let (mut until, mut begun, mut arrived) = (Instant::now() + idle, false, 0);
        loop {
            let passed = self.answer_all(&mut lines).await?;
            if lines.is_finished() {
                return self.conclude().await;
            }
            if passed {
                (until, begun) = (Instant::now() + idle, false);
            }
            if lines.is_partial() && (!begun || arrived >= MIN_PROGRESS) {
                (until, begun, arrived) = (Instant::now() + patience, true, 0);
            }
            let next = lines.seen() + 1;
            if self.writer.is_stuck() {
                return Err(End::stuck(next));
            }
            if !self.stream.is_admitted() {
                return Err(End::revoked(next));
            }
            // A pausing client must still read.
            let looked = until.min(Instant::now() + look);
            let frame = tokio::select! {
                // First, since a busy client always has more.
                biased;
                () = self.place.ended() => return Err(End::stopping(next)),
                frame = timeout_at(looked, body.frame()) => frame,
            };
            match frame {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        arrived += data.len();
                        lines.push(data);
                        self.record.note_read(&lines);
                    }
                }
                Ok(None) => lines.finish(),
                Ok(Some(Err(error))) => {
                    let broken = || ApiError::new(Code::RequestTimeout, "the body broke off");
                    return Err(End::broken(next, body::refused_or(error, broken)));
                }
                Err(_) if looked < until => {}
                Err(_) => return Err(End::slow_sender(next, begun)),
            }
        }
    }

    /// Answers the complete lines; returns whether there were any, blank or not.
    async fn answer_all(&mut self, lines: &mut Lines) -> Result<bool, End> {
        let bucket = self.stream.caller.bucket.clone();
        let most = bucket.as_ref().map_or(CHUNK, |bucket| {
            CHUNK.min(usize::try_from(bucket.per_second().get()).unwrap_or(CHUNK))
        });
        let mut passed = false;
        loop {
            let next = lines.seen() + 1;
            if self.place.is_ended() {
                return Err(End::stopping(next));
            }
            let batch = lines.take(most);
            self.record.note_read(lines);
            if batch.passed == 0 {
                return Ok(passed);
            }
            passed = true;
            if let Some(bucket) = &bucket {
                tokio::select! {
                    paid = pay(bucket, batch.passed, &self.writer) => paid?,
                    () = self.place.ended() => return Err(End::stopping(next)),
                }
            }
            if batch.lines.is_empty() {
                // Lines of white space cost next to nothing, but they may be endless.
                yield_now().await;
                continue;
            }
            self.answer_chunk(batch.lines).await?;
        }
    }

    async fn answer_chunk(&mut self, lines: Vec<Line>) -> Result<(), End> {
        let lines = Arc::new(lines);
        let (mut done, mut is_counted) = (0, false);
        while let Some(line) = lines.get(done) {
            if self.place.is_ended() {
                return Err(End::stopping(line.number));
            }
            if !self.stream.is_admitted() {
                return Err(End::revoked(line.number));
            }
            let stream = &self.stream;
            let mut part = stream.answer_on_pool(&lines, done).await;
            done += part.lines;
            self.record.end.computed += part.computed;
            // Before the answer is sent, which the client may not wait for. A chunk is one answer,
            // however many jobs it takes.
            if part.sound > 0 && !is_counted {
                is_counted = true;
                if let Some(resolved) = stream.question.resolved() {
                    stream.app.metrics.computed(resolved.query.method);
                }
            }
            stream.app.metrics.read(part.counts);
            self.record.end.refusals.add(part.refusals);
            let kept = stream.question.keep(&mut part);
            kept.map_err(|error| End::told(Outcome::Refused, line.number, error))?;
            if !part.answer.is_empty() {
                let pushed = self.writer.push(part.answer, &mut self.place).await;
                pushed.map_err(|stopped| End::unwritten(stopped, line.number))?;
            }
            self.record.end.answered += part.lines as u64;
            self.record.end.items += (part.sound - part.refused) as u64;
        }
        Ok(())
    }

    async fn conclude(&mut self) -> Result<(), End> {
        let last = self.record.end.lines + 1;
        if self.stream.question.is_unfinished() {
            let (finished, computed) = self.stream.finish_on_pool().await;
            self.record.end.computed += computed;
            finished.map_err(|error| End::told(Outcome::Refused, last, error))?;
        }
        if !self.stream.is_admitted() {
            return Err(End::revoked(last));
        }
        while let Some(answer) = self.stream.question.conclude() {
            let pushed = self.writer.push(answer, &mut self.place).await;
            pushed.map_err(|stopped| End::unwritten(stopped, last))?;
        }
        Ok(())
    }

    /// Writes the last line, waits until the client has read everything, and records the outcome.
    async fn end(self, ended: Result<(), End>, body: Body, delivery: &Delivery) {
        let Self { stream, mut writer, place, mut record } = self;
        let (mut outcome, mut last) = (Outcome::Complete, Vec::new());
        let settings = &stream.app.settings;
        let (patience_s, grace_s) = (settings.write_timeout_s, settings.shutdown_grace_s);
        if let Err(end) = ended {
            outcome = end.outcome;
            if let Some((line, error)) = end.last {
                stream.app.metrics.refused(&error);
                record.end.refusals.count(error.code, 1);
                fail(&mut last, line, None, &error);
            }
        }
        // A client that reads slowly must not hold the model.
        drop(stream);
        // From here on the client must read at the pace required for an answer of this length.
        delivery.set_answer_bytes(writer.waiting());
        writer.finish(last);
        // A client that sends everything before it reads finds the last line only after sending the
        // rest.
        let unread = match outcome {
            Outcome::SpoolFull | Outcome::Refused => Duration::from_secs(patience_s),
            Outcome::Draining => Duration::from_secs(grace_s) / 4,
            _ => Duration::ZERO,
        };
        tokio::join!(throw_away(body, unread), writer.closed());
        // A client that breaks off its body may still read; mostly it has gone.
        let by_client = matches!(outcome, Outcome::Complete | Outcome::BrokenBody);
        if writer.has_failed() {
            outcome = Outcome::Failed;
        } else if by_client && !writer.was_read() {
            outcome = match (delivery.was_given_up(), place.is_ended()) {
                (true, _) => Outcome::SlowReader,
                (false, true) => Outcome::Draining,
                (false, false) => Outcome::ClientGone,
            };
        }
        record.end.answer_bytes = writer.taken();
        record.ended(outcome).await;
    }
}

/// Reads and drops the rest of a body; stops after the time `most`.
async fn throw_away(mut body: Body, most: Duration) {
    if most.is_zero() {
        return;
    }
    let rest = async {
        while let Some(Ok(_)) = body.frame().await {
            // The body may be endless.
            yield_now().await;
        }
    };
    // A client that still sends then has its connection closed.
    let _ = timeout(most, rest).await;
}

/// Waits until the caller's quota has room for `lines` lines, each of which counts as a request.
async fn pay(bucket: &Bucket, lines: usize, writer: &Writer) -> Result<(), End> {
    let lines = u32::try_from(lines).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    while let Err(wait) = bucket.take(lines) {
        tokio::select! {
            () = writer.closed() => return Err(End::gone()),
            () = sleep(wait) => {}
        }
    }
    Ok(())
}
