//! Lines answered by jobs on the pool: each answers as many as it can in half its time, so that
//! costly lines take as many jobs as they need.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cognate::engine::Counts;
use tokio::time::{Instant, sleep};

use crate::http::api::pipeline::{DISK_PATIENCE, uncertain};
use crate::http::api::stream::line::{Line, LineId, Lines, fail, id_of};
use crate::http::api::stream::{LineQuestion, Stream};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Result};
use crate::http::observe::hand_over::HandedOver;
use crate::http::observe::streams::{LineRefusals, Outcome, StreamEnd};
use crate::http::work::pool::{GRACE, JobContext};
use crate::http::work::spool::{Full, Stopped};

/// Pause before the next request for units.
const RETRY: Duration = Duration::from_millis(2);
/// Bytes of answers after which a job ends.
pub(super) const ENOUGH: usize = 64 << 10;
/// Bytes to reserve for an answer.
const LINE_BYTES: usize = 24;

#[derive(Default)]
pub(super) struct Part<K> {
    pub(super) answer: Vec<u8>,
    /// Number of lines answered, errors included.
    pub(super) lines: usize,
    /// Number of lines answered without an error.
    pub(super) sound: usize,
    /// Lines among these whose items were refused.
    pub(super) refused: usize,
    /// The codes of all lines that were answered by an error.
    pub(super) refusals: LineRefusals,
    pub(super) counts: Counts,
    pub(super) computed: Duration,
    /// Data of the lines for the end of the answer.
    pub(super) kept: K,
}

impl<K> Part<K> {
    pub(super) fn fail(&mut self, line: u64, id: Option<LineId<'_>>, error: &ApiError) {
        self.refusals.count(error.code, 1);
        fail(&mut self.answer, line, id, error);
    }
}

impl<Q: LineQuestion> Stream<Q> {
    /// Answers the first lines by one job on the pool, waiting for room as long as the deadline
    /// allows. Lines that cannot be answered fail.
    pub(super) async fn answer_on_pool(
        self: &Arc<Self>,
        lines: &Arc<Vec<Line>>,
        first: usize,
    ) -> Part<Q::Kept> {
        let app = &self.app;
        let patience = Duration::from_millis(app.settings.compute_deadline_ms);
        let deadline = Instant::now() + patience;
        let mut end = lines.len();
        // Lines for which room is requested.
        let mut asked = end - first;
        let refused = loop {
            let refused = match app.admission.admit_for(&self.caller.client) {
                Ok(mut permit) => match app.admission.top_up(&mut permit, asked) {
                    Ok(()) => {
                        let turn = match self.question.turn().await {
                            Ok(turn) => turn,
                            Err(error) => break error,
                        };
                        let is_write = turn.is_some();
                        let grace = if is_write { DISK_PATIENCE } else { GRACE };
                        let until = first + asked;
                        let (stream, lines) = (Arc::clone(self), Arc::clone(lines));
                        let is_running = Arc::new(AtomicBool::new(false));
                        let runs = Arc::clone(&is_running);
                        let job = move |work: &JobContext| {
                            runs.store(true, Ordering::Relaxed);
                            let lines = lines.get(first..until).unwrap_or_default();
                            let begun = Instant::now();
                            let mut answered = stream.answer_some(lines, work);
                            if let Ok(part) = &mut answered {
                                part.computed = begun.elapsed();
                            }
                            drop(turn);
                            drop(permit);
                            runs.store(false, Ordering::Relaxed);
                            answered
                        };
                        let deadline = (Instant::now() + patience).into_std();
                        let threads = app.pool(self.question.waits(app));
                        let (client, metrics) = (&self.caller.client, &app.metrics);
                        let run = threads.run_within(client, (deadline, grace), metrics, job);
                        match run.await {
                            Ok(Ok(answered)) => match self.question.wait_durable().await {
                                Ok(()) => return answered,
                                Err(error) => {
                                    end = first + answered.lines;
                                    break error;
                                }
                            },
                            // A job that may still write its lines is not repeated.
                            Ok(Err(error))
                                if error.code == Code::DeadlineExceeded
                                    && is_write
                                    && is_running.load(Ordering::Relaxed) =>
                            {
                                end = until;
                                break uncertain();
                            }
                            // One line took too long: only this line fails.
                            Ok(Err(error)) if error.code == Code::DeadlineExceeded && asked > 1 => {
                                (end, asked) = (first + 1, 1);
                                continue;
                            }
                            Ok(Err(error)) => {
                                end = until;
                                break error;
                            }
                            Err(refused) => refused,
                        }
                    }
                    Err(error) => {
                        // The units of all of them may be more than the client's streams leave.
                        asked = asked.div_ceil(2);
                        error
                    }
                },
                Err(error) => error,
            };
            if let Err(refused) = wait_for_room(deadline, refused).await {
                break refused;
            }
        };
        app.metrics.refused(&refused);
        let mut part = Part { lines: end - first, ..Part::default() };
        for line in lines.get(first..end).unwrap_or_default() {
            part.fail(line.number, id_of(line), &refused);
        }
        part
    }

    /// Computes the remainder after the last line on the pool, waiting for room as long as the
    /// deadline allows.
    pub(super) async fn finish_on_pool(self: &Arc<Self>) -> (Result<()>, Duration) {
        let patience = Duration::from_millis(self.app.settings.compute_deadline_ms);
        let deadline = Instant::now() + patience;
        let finished = loop {
            let refused = match self.try_to_finish(patience).await {
                Ok(finished) => break finished,
                Err(refused) => refused,
            };
            if let Err(refused) = wait_for_room(deadline, refused).await {
                break Err(refused);
            }
        };
        finished.unwrap_or_else(|error| (Err(error), Duration::ZERO))
    }

    /// Computes the remainder after the last line, or returns why there is no room; then nothing
    /// was begun.
    async fn try_to_finish(
        self: &Arc<Self>,
        patience: Duration,
    ) -> Result<Result<(Result<()>, Duration)>> {
        let app = &self.app;
        let permit = app.admission.admit_for(&self.caller.client)?;
        let stream = Arc::clone(self);
        let job = move |work: &JobContext| {
            let begun = Instant::now();
            let finished = stream.question.finish(work);
            drop(permit);
            Ok((finished, begun.elapsed()))
        };
        let deadline = (Instant::now() + patience).into_std();
        app.compute.run(&self.caller.client, deadline, &app.metrics, job).await
    }

    /// The answers to the first lines, at least one.
    fn answer_some(&self, lines: &[Line], work: &JobContext) -> Result<Part<Q::Kept>> {
        work.check()?;
        let question = &self.question;
        let items: Vec<Result<Q::Item<'_>>> =
            lines.iter().map(|line| question.read(line.bytes.as_deref())).collect();
        let sound: Vec<&Q::Item<'_>> = items.iter().flatten().collect();
        let per_part = question.per_part(&sound);
        let answer = Vec::with_capacity(lines.len() * LINE_BYTES);
        let mut part = Part { answer, ..Part::default() };
        for (lines, items) in lines.chunks(per_part).zip(items.chunks(per_part)) {
            if part.lines > 0 && (work.is_half_over() || part.answer.len() >= ENOUGH) {
                break;
            }
            let before = part.answer.len();
            match self.answer_together(lines, items, work, &mut part) {
                // The lines that were answered before the deadline may be written already and are not repeated.
                Err(error)
                    if error.code == Code::DeadlineExceeded
                        && part.lines > 0
                        && part.answer.len() == before =>
                {
                    break;
                }
                answered => answered?,
            }
        }
        Ok(part)
    }

    /// Adds the answers to parsed lines.
    fn answer_together(
        &self,
        lines: &[Line],
        items: &[Result<Q::Item<'_>>],
        work: &JobContext,
        part: &mut Part<Q::Kept>,
    ) -> Result<()> {
        let question = &self.question;
        let sound: Vec<&Q::Item<'_>> = items.iter().flatten().collect();
        // Usually all lines are sound. If one is not, the joint answer fails, and each line is
        // asked alone.
        let together = question.ask(&sound, work).ok();
        if together.is_none() {
            work.check()?;
        }
        let mut place = 0;
        for (line, item) in lines.iter().zip(items) {
            let item = match item {
                Ok(item) => item,
                Err(error) => {
                    part.fail(line.number, id_of(line), error);
                    continue;
                }
            };
            match &together {
                Some(answers) => {
                    question.write(line, item, answers, place, part);
                    part.sound += 1;
                }
                None => {
                    work.check()?;
                    match question.ask(&[item], work) {
                        Ok(answers) => {
                            part.counts.add(Q::counts(&answers));
                            question.write(line, item, &answers, 0, part);
                            part.sound += 1;
                        }
                        Err(error) => {
                            let error = error.renamed(Q::pointer_in_line);
                            part.fail(line.number, Q::id(item), &error);
                        }
                    }
                }
            }
            place += 1;
        }
        part.counts.add(together.as_ref().map_or(Counts::default(), Q::counts));
        part.lines += lines.len();
        Ok(())
    }
}

/// Waits a moment before room is requested again; returns the refusal if the deadline is over.
async fn wait_for_room(deadline: Instant, refused: ApiError) -> Result<()> {
    if Instant::now() > deadline {
        return Err(refused);
    }
    sleep(RETRY).await;
    Ok(())
}

/// Why the server ends a stream.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// The number and the error of the first unanswered line, for the last line; `None` if the
    /// client has gone.
    pub(super) last: Option<(u64, ApiError)>,
}

impl End {
    /// An end that the last line names.
    pub(super) fn told(outcome: Outcome, line: u64, error: ApiError) -> Self {
        Self { outcome, last: Some((line, error)) }
    }

    pub(super) fn gone() -> Self {
        Self { outcome: Outcome::ClientGone, last: None }
    }

    /// The service stops before it answers this line.
    pub(super) fn stopping(line: u64) -> Self {
        let detail = "the server is about to stop; this line and those after it were not answered";
        Self::told(Outcome::Draining, line, ApiError::new(Code::Draining, detail))
    }

    /// The key of the stream was revoked.
    pub(super) fn revoked(line: u64) -> Self {
        let detail = "the key of this stream was revoked or has other rights now; this line and those \
                      after it were not answered";
        Self::told(Outcome::Refused, line, ApiError::new(Code::Unauthorized, detail))
    }

    /// A body that cannot be read further in this line.
    pub(super) fn broken(line: u64, error: ApiError) -> Self {
        Self::told(Outcome::BrokenBody, line, error)
    }

    /// A client that paused in the middle of a line, if one was begun, or for too long between two.
    pub(super) fn slow_sender(line: u64, begun: bool) -> Self {
        let detail = match begun {
            true => {
                "neither the rest of the line nor 1024 bytes of it arrived in time (setting \
                 `body_timeout_s`)"
            }
            false => {
                "no line arrived for as long as a stream may rest (setting `stream_idle_s`); empty \
                 lines keep one open"
            }
        };
        Self::told(Outcome::SlowSender, line, ApiError::new(Code::RequestTimeout, detail))
    }

    /// A client that neither reads nor sends.
    pub(super) fn stuck(line: u64) -> Self {
        let detail = "answers wait to be read, and the client neither reads them nor sends enough to \
                      need the time (setting `write_timeout_s`)";
        Self::told(Outcome::SlowReader, line, ApiError::new(Code::RequestTimeout, detail))
    }

    /// The answer to this line could not be written.
    pub(super) fn unwritten(stopped: Stopped, line: u64) -> Self {
        let full = match stopped {
            Stopped::Gone => return Self::gone(),
            Stopped::Ordered => return Self::stopping(line),
            Stopped::Full(full) => full,
        };
        let limit = match full {
            Full::Each(bytes) => {
                format!(
                    "of this stream at most {bytes} bytes may wait (setting `stream_spool_bytes`)"
                )
            }
            Full::All(bytes) => {
                format!("of all streams at most {bytes} bytes may wait (setting `spool_bytes`)")
            }
            Full::Folder => "the server has no more room for answers that wait (settings \
                             `stream_spool_bytes` and `spool_folder`)"
                .to_owned(),
        };
        let detail =
            format!("the client does not read its answers, and {limit}; read while sending");
        Self::told(Outcome::SpoolFull, line, ApiError::new(Code::ResponseTooLarge, detail))
    }
}

/// The record of a stream, logged when it ends. A stream that is dropped without an outcome has
/// failed.
pub(crate) struct Record {
    app: Arc<App>,
    request: HandedOver,
    pub(crate) end: StreamEnd,
}

impl Record {
    pub(crate) fn new(app: Arc<App>, request: HandedOver) -> Self {
        let end = StreamEnd {
            outcome: Outcome::Failed,
            lines: 0,
            answered: 0,
            items: 0,
            body_bytes: 0,
            answer_bytes: 0,
            computed: Duration::ZERO,
            refusals: LineRefusals::default(),
        };
        Self { app, request, end }
    }

    pub(super) fn note_read(&mut self, lines: &Lines) {
        (self.end.lines, self.end.body_bytes) = (lines.seen(), lines.bytes());
    }

    pub(crate) async fn ended(mut self, outcome: Outcome) {
        self.request.known().await;
        self.end.outcome = outcome;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some((request, status)) = self.request.take() else {
            return self.app.metrics.stream_ended(self.end, None);
        };
        let of = (request.route(), &request.verb, request.began.elapsed());
        self.app.metrics.stream_ended(self.end, Some(of));
        request.end(&self.app.request_log, status, self.end);
    }
}
