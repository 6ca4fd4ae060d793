//! Where answers are computed: small ones on the thread that read the request, large ones on a
//! bounded pool, in parts over its threads when no other job needs them.
//!
//! A job owns all it needs: the permit that admitted it, the model, the body. Between parts of
//! about a millisecond it checks its deadline, and whether the client is still there.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cognate::engine::{Parts, QueryError};
use cognate_collections::Asker;
use rayon::ThreadPool;
use rayon::prelude::*;
use tokio::sync::oneshot;

use crate::http::auth::client::{Client, Resource, share_of};
use crate::http::error::{ApiError, Bottleneck, Code, Result};
use crate::http::observe::metrics::Metrics;

/// Estimated nanoseconds up to which an answer is computed where its request was read. A hand-over
/// wakes a thread whose caches are cold, 30 to 90 µs of processor time, so for less work it does
/// not pay; and the runtime's own threads must not be held much longer. `cargo bench --bench
/// handover` measures it.
pub const INLINE_NANOS: u64 = 300_000;

/// How long the server waits for a job after the job's deadline, which the job checks between parts. The
/// client need not wait longer.
pub(crate) const GRACE: Duration = Duration::from_millis(50);

/// Estimated nanoseconds of one part of a large answer.
const PART_NANOS: u64 = 1_000_000;

/// Number of items in one part of a large answer, if all `items` take about `nanos` nanoseconds; at
/// least one.
pub(crate) fn items_per_part(items: usize, nanos: u64) -> usize {
    let each = (nanos / items.max(1) as u64).max(1);
    usize::try_from(PART_NANOS / each).unwrap_or(usize::MAX).max(1)
}

pub struct JobContext {
    begun: Instant,
    deadline: Instant,
    /// Set when the client is gone; `None` for work on the thread that read the request.
    cancelled: Option<Arc<AtomicBool>>,
    /// Whether parts may go to other threads.
    spread: bool,
}

impl JobContext {
    /// A job on the thread that read its request, begun just now.
    pub fn inline(begun: Instant, deadline: Instant) -> Self {
        Self { begun, deadline, cancelled: None, spread: false }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(ApiError::new(Code::DeadlineExceeded, "the client went away"));
        }
        if Instant::now() > self.deadline {
            return Err(late());
        }
        Ok(())
    }

    /// Whether half of the time between its beginning and its deadline is over.
    pub(crate) fn is_half_over(&self) -> bool {
        let now = Instant::now();
        now.duration_since(self.begun) >= self.deadline.saturating_duration_since(now)
    }

    /// Answers a question of `items` in parts of `per_part` and joins the answers. The answer does
    /// not depend on how the parts are cut or where they are computed; of several errors the first
    /// in the order of the question is returned.
    pub fn in_parts<A: Parts + Default + Send>(
        &self,
        items: usize,
        per_part: usize,
        ask: impl Fn(Range<usize>) -> Result<A, QueryError> + Sync,
    ) -> Result<A> {
        self.in_parts_by(items, per_part, |parts| {
            parts.each(&ask);
            Ok(())
        })
    }

    /// [`JobContext::in_parts`] for a question that each thread prepares once: `work` prepares it
    /// and then answers the parts that the thread takes by [`PartQueue::each`].
    pub(crate) fn in_parts_by<A: Parts + Default + Send>(
        &self,
        items: usize,
        per_part: usize,
        work: impl Fn(&mut PartQueue<'_, A>) -> Result<(), QueryError> + Sync,
    ) -> Result<A> {
        let per_part = per_part.max(1);
        let parts = items.div_ceil(per_part).max(1);
        let next = AtomicUsize::new(0);
        let take_parts = || {
            // Most questions are of one part.
            let answers = Vec::with_capacity(1);
            let mut queue = PartQueue { job: self, next: &next, parts, per_part, items, answers };
            if next.load(Ordering::Relaxed) < parts
                && let Err(error) = work(&mut queue)
            {
                // The whole question failed.
                queue.fail(0, error.into());
            }
            queue.answers
        };
        let mut answers = match self.spread && parts > 1 {
            true => {
                let threads = parts.min(rayon::current_num_threads());
                let taken = (0..threads).into_par_iter().map(|_| take_parts());
                taken.reduce(Vec::new, |mut all, mut taken| {
                    all.append(&mut taken);
                    all
                })
            }
            false => take_parts(),
        };
        answers.sort_unstable_by_key(|(number, _)| *number);
        let mut whole = A::default();
        for (number, answer) in answers {
            whole.append(answer?, number * per_part);
        }
        Ok(whole)
    }
}

/// The parts of a question that no thread has taken yet, and the answers of one thread.
pub(crate) struct PartQueue<'j, A> {
    job: &'j JobContext,
    next: &'j AtomicUsize,
    parts: usize,
    per_part: usize,
    items: usize,
    /// The finished parts' answers, each with its part's number.
    answers: Vec<(usize, Result<A>)>,
}

impl<A> PartQueue<'_, A> {
    /// Answers parts as long as there are any, the job is in time, and no part failed. Parts are
    /// taken in order, so none before the first that failed is left out.
    pub(crate) fn each(&mut self, mut ask: impl FnMut(Range<usize>) -> Result<A, QueryError>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.parts {
                return;
            }
            let first = number * self.per_part;
            let part = first..self.items.min(first + self.per_part);
            // Reading the clock pays only between parts: a job was in time when it began, and one
            // part is short.
            let asked = if number == 0 { Ok(()) } else { self.job.check() };
            match asked.and_then(|()| ask(part).map_err(|error| error.moved(first).into())) {
                Ok(answer) => self.answers.push((number, Ok(answer))),
                Err(error) => return self.fail(number, error),
            }
        }
    }

    /// Records the error of a part; no further part is started.
    fn fail(&mut self, number: usize, error: ApiError) {
        self.next.store(self.parts, Ordering::Relaxed);
        self.answers.push((number, Err(error)));
    }
}

/// The refusal of a job when the queue, or its client's share of it, is full.
fn queue_full(of_share: bool) -> ApiError {
    let detail = match of_share {
        false => {
            "as many large requests wait as this server lets wait (setting `compute_queue`); \
             ask again, or another server"
        }
        true => {
            "as many large requests of this client wait as one may have wait (settings \
             `compute_queue` and `client_share`); ask again once some are answered"
        }
    };
    ApiError::overloaded(Bottleneck::Queue, detail)
}

impl Asker for JobContext {
    fn is_gone(&self) -> bool {
        self.check().is_err()
    }
}

pub(crate) fn late() -> ApiError {
    let detail = "computing the answer took longer than the server allows (setting \
                  `compute_deadline_ms`); ask for less at once, or again";
    ApiError::new(Code::DeadlineExceeded, detail)
}

pub struct Pool {
    pool: ThreadPool,
    counts: Arc<JobCounts>,
    threads: usize,
    queue: usize,
    /// Maximum number of a client's jobs, running and waiting.
    share: usize,
}

#[derive(Default)]
struct JobCounts {
    /// Jobs that wait or run, as one number, so that a job which leaves the queue makes room for no other.
    all: AtomicUsize,
    running: AtomicUsize,
}

impl JobCounts {
    /// Running jobs and waiting jobs, together never more than there are.
    fn counts(&self) -> (usize, usize) {
        let running = self.running.load(Ordering::Acquire);
        (running, self.all.load(Ordering::Acquire).saturating_sub(running))
    }
}

impl Pool {
    /// `threads` threads, and `queue` slots for jobs that wait for one; a client has `percent`
    /// hundredths of both.
    pub fn new(
        threads: usize,
        queue: usize,
        percent: usize,
    ) -> Result<Self, rayon::ThreadPoolBuildError> {
        let share = share_of(threads + queue, percent);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("compute-{number}"))
            .build()?;
        Ok(Self { pool, counts: Arc::default(), threads, queue, share })
    }

    /// A pool of the calling thread alone, which does a job whenever it calls [`rayon::yield_now`].
    /// A thread can have one such pool.
    #[cfg(test)]
    pub(crate) fn of_this_thread(queue: usize, percent: usize) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        let (pool, share) = (pool.build().unwrap(), share_of(queue + 1, percent));
        Self { pool, counts: Arc::default(), threads: 1, queue, share }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub fn counts(&self) -> (usize, usize) {
        self.counts.counts()
    }

    /// Computes on the pool for a client; refuses if there is no slot left to wait. When the caller
    /// stops waiting, the job is cancelled: at once if it has not begun, else after its current
    /// part.
    pub async fn run<T: Send + 'static>(
        &self,
        client: &Client,
        deadline: Instant,
        metrics: &Metrics,
        job: impl FnOnce(&JobContext) -> Result<T> + Send + 'static,
    ) -> Result<Result<T>> {
        self.run_within(client, (deadline, GRACE), metrics, job).await
    }

    /// Does what [`Self::run`] does, with another time to wait for a late job.
    pub(crate) async fn run_within<T: Send + 'static>(
        &self,
        client: &Client,
        (deadline, grace): (Instant, Duration),
        metrics: &Metrics,
        job: impl FnOnce(&JobContext) -> Result<T> + Send + 'static,
    ) -> Result<Result<T>> {
        if !client.take(Resource::Jobs, 1, self.share) {
            return Err(queue_full(true));
        }
        let limit = self.queue + self.threads;
        let enter = |all: usize| (all < limit).then_some(all + 1);
        if self.counts.all.fetch_update(Ordering::AcqRel, Ordering::Relaxed, enter).is_err() {
            client.give_back(Resource::Jobs, 1);
            return Err(queue_full(false));
        }
        let client = client.clone();
        let cancelled = Arc::new(AtomicBool::new(false));
        let (counts, panics) = (Arc::clone(&self.counts), metrics.panics.clone());
        let (answer, answered) = oneshot::channel();
        let cancels = Some(Arc::clone(&cancelled));
        self.pool.spawn(move || {
            let running = Running::begin(&counts);
            // Sharing threads pays only while no other job could have them.
            let spread = counts.counts().1 == 0;
            let work = JobContext { begun: Instant::now(), deadline, cancelled: cancels, spread };
            let done = work.check().and_then(|()| {
                catch_unwind(AssertUnwindSafe(|| job(&work))).unwrap_or_else(|payload| {
                    panics.increment(1);
                    Err(ApiError::panicked(&*payload))
                })
            });
            drop(running);
            client.give_back(Resource::Jobs, 1);
            // The caller may have gone.
            let _ = answer.send(done);
        });
        let _cancel = CancelOnDrop(cancelled);
        let last = tokio::time::Instant::from_std(deadline + grace);
        Ok(match tokio::time::timeout_at(last, answered).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(ApiError::internal("a job ended without an answer")),
            Err(_) => Err(late()),
        })
    }
}

struct Running<'h>(&'h JobCounts);

impl<'h> Running<'h> {
    fn begin(counts: &'h JobCounts) -> Self {
        counts.running.fetch_add(1, Ordering::AcqRel);
        Self(counts)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.all.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(crate) struct CancelOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
