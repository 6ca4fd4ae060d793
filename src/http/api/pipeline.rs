//! The common path of every question that computes: admitted, read, planned, answered here or on a
//! pool.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use cognate::engine::Counts;
use self_cell::self_cell;

pub(crate) use crate::http::api::cost::{
    ANSWER_HEAD, INDEX_BYTES, NUMBER_BYTES, SLACK, check_length,
};
use crate::http::api::question::{
    AnyAsk, AnyPlanned, Ask, BoxFuture, PlanContext, Planned, Threads,
};
use crate::http::api::ways::Way;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::client::Client;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Result};
use crate::http::observe::request_log::Facts;
use crate::http::registry::models::Models;
use crate::http::request::body;
use crate::http::request::query::{NANOS_PER_BYTE, Resolved};
use crate::http::work::admission::Permit;
use crate::http::work::file_threads::Unfinished;
use crate::http::work::pool::{INLINE_NANOS, JobContext};
use crate::http::work::turns::Turn;

const INLINE_BYTES: usize = (INLINE_NANOS / NANOS_PER_BYTE) as usize;

const FINGERPRINT: HeaderName = HeaderName::from_static("x-model-fingerprint");
const TIMING: HeaderName = HeaderName::from_static("server-timing");
/// How long a request waits for a write.
pub(crate) const DISK_PATIENCE: Duration = Duration::from_secs(10);
/// Room for the headers of an answer, those of its frame included, so that they are never
/// reallocated.
const HEADERS: usize = 12;

/// A path for questions: how a question is read from a body.
pub(crate) trait Endpoint {
    /// The variables of the path, such as a model's name.
    type Address: Send + Sync + 'static;

    fn check_head(request: &Request) -> Result<()> {
        body::check_json(request.headers())?;
        body::no_settings(request.uri())
    }

    fn read<'b>(body: &'b [u8], address: &Self::Address) -> Result<AnyAsk<'b>>;
}

enum Stage<'b> {
    Read(AnyAsk<'b>),
    Planned(AnyPlanned<'b>),
    Answered,
}

/// What a question needs to continue.
enum Need {
    Turn(BoxFuture<Result<Turn>>),
    Threads(Threads),
    /// Units for so many items, which are not free now.
    Units(usize),
}

enum Step<Q> {
    Done(Answered),
    Needs(Q, Need),
}

self_cell! {
    /// A question with the body that it borrows from, so that another thread can continue it.
    struct Held {
        owner: Bytes,
        #[covariant]
        dependent: Stage,
    }
}

struct Answered {
    json: Bytes,
    counts: Counts,
    resolved: Resolved,
    dialect: Dialect,
    took: Duration,
}

/// The state of a question across threads: the models of its time, its units, its turn.
struct Carried {
    app: Arc<App>,
    models: Arc<Models>,
    permit: Permit,
    facts: Arc<Facts>,
    turn: Option<Turn>,
    /// The dialect of the body, once it was read.
    dialect: Option<Dialect>,
    /// Time spent on computing, without time spent on waiting.
    took: Duration,
}

impl Carried {
    /// Notes what a parsed body states; returns what it needs to be planned, if anything.
    fn learn(&mut self, ask: &dyn Ask, threads: Threads) -> Option<Need> {
        self.dialect = Some(ask.dialect());
        if let Some(name) = ask.collection() {
            self.facts.note_ranked_collection(name);
        }
        if self.turn.is_none()
            && let Some(turn) = ask.turn()
        {
            return Some(Need::Turn(turn));
        }
        let wanted = ask.threads(&self.app);
        (wanted != threads && wanted != Threads::Here).then_some(Need::Threads(wanted))
    }

    /// Takes the units of a planned question; returns what it needs to be answered, if anything.
    fn admit(&mut self, planned: &dyn Planned, threads: Threads) -> Option<Need> {
        let (resolved, cost) = (planned.resolved(), planned.cost());
        self.facts.asks(&resolved.model.name, resolved.listed_method(), Some(cost.items));
        let admission = &self.app.admission;
        if threads != Threads::Here {
            admission.charge_running(&mut self.permit, cost.items);
            return None;
        }
        match admission.top_up(&mut self.permit, cost.items) {
            Err(_) => Some(Need::Units(cost.items)),
            Ok(()) if cost.nanos > INLINE_NANOS => Some(Need::Threads(Threads::Pool)),
            Ok(()) => None,
        }
    }

    /// Takes the memory of the answer and writes it.
    fn answer(
        &self,
        planned: AnyPlanned<'_>,
        job: &JobContext,
    ) -> Result<(Bytes, Resolved, Counts)> {
        let cost = planned.cost();
        let unsent = self.app.unsent.of(self.permit.client());
        unsent.check(cost.answer_bytes, cost.items, "")?;
        let mut answer = unsent.answer(cost.answer_bytes)?;
        let resolved = planned.resolved().clone();
        let counts = planned.answer(&self.app, job, &mut answer)?;
        Ok((answer.into_bytes(), resolved, counts))
    }
}

impl Stage<'_> {
    /// Continues as far as these threads may.
    fn go_on(
        &mut self,
        carried: &mut Carried,
        threads: Threads,
        job: &JobContext,
    ) -> Result<Step<()>> {
        let begun = Instant::now();
        if let Self::Read(ask) = self
            && let Some(need) = carried.learn(ask.as_ref(), threads)
        {
            return Ok(Step::Needs((), need));
        }
        let planned = match mem::replace(self, Self::Answered) {
            Self::Read(ask) => {
                let context = PlanContext { app: &carried.app, models: &carried.models, job };
                let planned = ask.plan(&context)?;
                if let Some(need) = carried.admit(planned.as_ref(), threads) {
                    *self = Self::Planned(planned);
                    carried.took += begun.elapsed();
                    return Ok(Step::Needs((), need));
                }
                planned
            }
            Self::Planned(planned) => planned,
            Self::Answered => return Err(ApiError::internal("a question was answered twice")),
        };
        let (json, resolved, counts) = carried.answer(planned, job)?;
        let (dialect, took) =
            (carried.dialect.unwrap_or(Dialect::Native), carried.took + begun.elapsed());
        Ok(Step::Done(Answered { json, counts, resolved, dialect, took }))
    }
}

type CheckHead = fn(&Request) -> Result<()>;

/// Reads a question from a body, for the path that it was sent to.
type Reader = Box<dyn for<'b> FnOnce(&'b [u8]) -> Result<AnyAsk<'b>> + Send>;

struct Underway {
    carried: Carried,
    body: Result<Held, (Bytes, Reader)>,
}

impl Underway {
    /// Continues on one of these threads; errors are in the body's dialect. An answered question
    /// returns all of its units here: units that wait for the task to go on would pile up.
    fn advance(mut self, threads: Threads, job: &JobContext) -> Result<Step<Self>> {
        let begun = Instant::now();
        let mut held = match self.body {
            Ok(held) => held,
            Err((body, reader)) => {
                let read = Held::try_new(body, |body| reader(body).map(Stage::Read));
                self.carried.took += begun.elapsed();
                read?
            }
        };
        let carried = &mut self.carried;
        let step = held.with_dependent_mut(|_, stage| stage.go_on(carried, threads, job));
        match (step, self.carried.dialect) {
            (Ok(Step::Done(answered)), _) => Ok(Step::Done(answered)),
            (Ok(Step::Needs((), need)), _) => {
                Ok(Step::Needs(Self { body: Ok(held), ..self }, need))
            }
            (Err(error), Some(dialect)) => Err(error.in_dialect(dialect)),
            (Err(error), None) => Err(error),
        }
    }
}

/// The common path of a question, generic only where it must be: [`answered`] is compiled once.
pub(crate) async fn answer<E: Endpoint + 'static>(
    app: Arc<App>,
    address: E::Address,
    request: Request,
) -> Result<Response> {
    let reader: Reader = Box::new(move |body| E::read(body, &address));
    let mut dialect = None;
    match answered(&app, request, (E::check_head, reader), &mut dialect).await {
        Ok(answered) => Ok(respond(&app, answered)),
        Err(error) => Err(ApiError { dialect: error.dialect.or(dialect), ..error }),
    }
}

async fn answered(
    app: &Arc<App>,
    request: Request,
    (check_head, reader): (CheckHead, Reader),
    dialect: &mut Option<Dialect>,
) -> Result<Answered> {
    let facts = Facts::from_request(&request);
    let client = Caller::from_extensions(request.extensions())?.client;
    let mut permit = app.admission.admit_soon(&client).await?;
    check_head(&request)?;
    let body = read(app, request, &mut permit, |bytes| app.settings.items_in(bytes)).await?;
    let mut threads = if body.len() > INLINE_BYTES { Threads::Pool } else { Threads::Here };
    let (app, models, took) = (Arc::clone(app), app.models(), Duration::ZERO);
    let of_job = Arc::clone(&app);
    let carried = Carried { app: of_job, models, permit, facts, turn: None, dialect: None, took };
    let mut question = Underway { carried, body: Err((body, reader)) };
    loop {
        let went = run((&app, &client), threads, move |job| question.advance(threads, job)).await;
        let need;
        (question, need) = match went? {
            Step::Done(answered) => return Ok(answered),
            Step::Needs(question, need) => (question, need),
        };
        *dialect = question.carried.dialect;
        match need {
            Need::Turn(turn) => question.carried.turn = Some(turn.await?),
            Need::Threads(wanted) => threads = wanted,
            Need::Units(items) => {
                app.admission.wait_and_top_up(&mut question.carried.permit, items).await?;
                threads = Threads::Pool;
            }
        }
    }
}

/// Reads a body, which counts as `items` items until its items are counted. A long body is paid for
/// before it is read: parsing it would already be the work that an overloaded server must not take
/// on, and while it waits the client has it.
pub(crate) async fn read(
    app: &App,
    request: Request,
    permit: &mut Permit,
    items_in: impl Fn(usize) -> usize,
) -> Result<Bytes> {
    let facts = Facts::from_request(&request);
    let announced = body::announced(request.headers(), &app.settings)?;
    if let Some(bytes) = announced {
        app.admission.wait_and_top_up(permit, items_in(bytes)).await?;
    }
    let body = body::read(request, announced, &app.settings, |bytes| {
        // A body of unknown length is complete by now, so it is charged without waiting.
        app.admission.top_up(permit, items_in(bytes))
    });
    let body = body.await?;
    facts.brings(body.len());
    Ok(body)
}

/// Runs a step of a request on one of these threads: on a pool until its deadline or until its
/// client has gone. Writers are waited for [`DISK_PATIENCE`], the others to their end.
pub(crate) async fn run<T: Send + 'static>(
    (app, client): (&App, &Client),
    threads: Threads,
    step: impl FnOnce(&JobContext) -> Result<T> + Send + 'static,
) -> Result<T> {
    let begun = Instant::now();
    let deadline = begun + Duration::from_millis(app.settings.compute_deadline_ms);
    let here = JobContext::inline(begun, deadline);
    let unfinished = match threads {
        Threads::Here => return step(&here),
        Threads::Pool | Threads::Waiting => {
            let pool = app.pool(threads == Threads::Waiting);
            return pool.run(client, deadline, &app.metrics, step).await.unwrap_or_else(Err);
        }
        Threads::Readers => app.readers.run(move || step(&here)).await,
        Threads::Writers | Threads::Syncers => {
            app.writers.run_within(DISK_PATIENCE, move || step(&here)).await
        }
    };
    unfinished.unwrap_or_else(|unfinished| {
        Err(match unfinished {
            Unfinished::NotBegun if threads == Threads::Writers => {
                let detail = "others wait for the disk that keeps the collections, so nothing was \
                              changed; ask again";
                ApiError::new(Code::DeadlineExceeded, detail)
            }
            Unfinished::NotBegun | Unfinished::GoesOn => uncertain(),
            Unfinished::Failed(error) => ApiError::internal(&error.to_string()),
        })
    })
}

/// The error of a write that may be durable or not.
pub(crate) fn uncertain() -> ApiError {
    let detail = "the disk that keeps the collections has not written in 10 s what it was given, so that \
                  it may be there or not; write it again";
    ApiError::new(Code::NotWritten, detail)
}

fn respond(app: &App, answered: Answered) -> Response {
    let Answered { json, counts, resolved, dialect, took } = answered;
    resolved.methods().for_each(|method| app.metrics.computed(method));
    app.metrics.spoke(dialect);
    app.metrics.read(counts);
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    *headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    mark(headers, &resolved, took);
    Way::Question.mark(&mut response);
    response
}

pub(crate) fn mark(headers: &mut HeaderMap, resolved: &Resolved, took: Duration) {
    headers.insert(FINGERPRINT, resolved.model.fingerprint.clone());
    if let Some(value) = timing(took) {
        headers.insert(TIMING, value);
    }
}

/// The time of computing as a header: in milliseconds, to the microsecond. Written by hand:
/// `format!` takes longer than all other work on headers.
pub(super) fn timing(took: Duration) -> Option<HeaderValue> {
    const NAME: &[u8] = b"compute;dur=";
    let mut left = took.saturating_add(Duration::from_nanos(500)).as_micros();
    let mut text = [0; 64];
    let mut at = text.len();
    // Three digits after the point, and at least one before it.
    for place in 0.. {
        if place == 3 {
            at -= 1;
            *text.get_mut(at)? = b'.';
        }
        if place > 3 && left == 0 {
            break;
        }
        at -= 1;
        *text.get_mut(at)? = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let from = at.checked_sub(NAME.len())?;
    text.get_mut(from..at)?.copy_from_slice(NAME);
    // Digits are valid in a header.
    HeaderValue::from_bytes(text.get(from..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_the_microsecond() {
        let cases = [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (42_000, "0.042"),
            (999_500, "1.000"),
            (1_234_567, "1.235"),
            (60_000_000_000, "60000.000"),
            (u64::MAX, "18446744073709.552"),
        ];
        for (nanos, expected) in cases {
            let value = timing(Duration::from_nanos(nanos)).unwrap();
            assert_eq!(value.to_str().unwrap(), format!("compute;dur={expected}"));
        }
    }
}
