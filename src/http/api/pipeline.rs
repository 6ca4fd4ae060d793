//! The way of every question that computes: admitted, read, parsed, weighed, answered here or on
//! the pool.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use cognate::engine::Counts;
use self_cell::self_cell;

use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::client::Client;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Pointer};
use crate::http::observe::request_log::Facts;
use crate::http::registry::models::Models;
use crate::http::request::body;
use crate::http::request::query::{MULTIPLICATIONS_PER_NANO, NANOS_PER_BYTE, Resolved, estimate};
use crate::http::work::admission::Permit;
use crate::http::work::pool;
use crate::http::work::pool::{INLINE_NANOS, JobContext, Pool};
use crate::http::work::turns::Turn;
use crate::http::work::unsent::Answer;

/// Bytes of a body up to which it is parsed where it was read. To read the texts of a longer one
/// takes too long there.
const INLINE_BYTES: usize = (INLINE_NANOS / NANOS_PER_BYTE) as usize;

const FINGERPRINT: HeaderName = HeaderName::from_static("x-model-fingerprint");
const TIMING: HeaderName = HeaderName::from_static("server-timing");
/// Room for the headers of an answer, those of its frame included, so that they never move.
const HEADERS: usize = 12;
/// Bytes of an answer beside its lists.
pub(crate) const ANSWER_HEAD: usize = 256;
/// Bytes of an index in an answer, with its comma.
pub(crate) const INDEX_BYTES: usize = 6;
/// Most bytes of a score or another number in an answer, with its comma.
pub(crate) const NUMBER_BYTES: usize = 13;

/// A path at which questions are asked: how a question is read from a body.
pub(crate) trait Endpoint {
    /// What the path says, such as a model's name.
    type Address: Send + Sync + 'static;

    fn check_head(request: &Request) -> Result<(), ApiError> {
        body::check_json(request.headers())?;
        body::no_settings(request.uri())
    }

    /// Whether questions may wait for a turn or for another machine.
    fn may_wait(_: &App) -> bool {
        false
    }

    fn read<'b>(body: &'b [u8], address: &Self::Address) -> Result<AnyQuestion<'b>, ApiError>;
}

/// What a question waits for; it owns all that it needs.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A question that borrows from its body.
pub(crate) type AnyQuestion<'b> = Box<dyn Question + Send + 'b>;

/// A question that was read, to be weighed and answered.
pub(crate) trait Question {
    /// Whether answering waits for another machine.
    fn waits(&self, _: &App) -> bool {
        false
    }

    /// Waits for the turn to be answered, if questions like this are answered one at a time; holds no thread.
    fn turn(&self, _: &Arc<App>) -> Option<BoxFuture<Result<Turn, ApiError>>> {
        None
    }

    /// The dialect of refusals, now that the body is known.
    fn dialect(&self) -> Dialect {
        Dialect::Native
    }

    /// Whether even estimating the work takes longer than a thread of the runtime should be held.
    fn is_long(&self) -> bool {
        false
    }

    /// The collection that is ranked, if one is.
    fn collection(&self) -> Option<&str> {
        None
    }

    /// Looks up the data of a [long](Self::is_long) question before its work is estimated.
    fn look_up(&self, _: &App, _: &Models, _: &JobContext) -> Result<(), ApiError> {
        Ok(())
    }

    /// The place in this body of a fault that a native question has at `pointer`.
    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        pointer
    }

    /// Checks lengths, finds the model and the method, and weighs the work.
    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError>;

    /// Writes the answer as JSON, and returns what was read for it.
    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError>;
}

self_cell! {
    /// A question with the body that it borrows from, so that another thread can go on with it.
    struct Parsed {
        owner: Bytes,
        #[covariant]
        dependent: AnyQuestion,
    }
}

impl Parsed {
    fn of<Q: Endpoint>(body: Bytes, address: &Q::Address) -> Result<Self, ApiError> {
        Self::try_new(body, |body| Q::read(body, address))
    }

    fn question(&self) -> &(dyn Question + Send) {
        self.borrow_dependent().as_ref()
    }
}

struct Answered {
    json: Bytes,
    counts: Counts,
    plan: Plan,
    dialect: Dialect,
    took: Duration,
}

pub(crate) async fn answer<Q: Endpoint + 'static>(
    app: Arc<App>,
    address: Q::Address,
    request: Request,
) -> Result<Response, ApiError> {
    let facts = Facts::of(&request);
    let client = Caller::of(request.extensions())?.client;
    let mut permit = app.admission.admit_soon(&client).await?;
    Q::check_head(&request)?;
    // A long body is paid for before it is read: parsing it to count its items would already be the
    // work that an overloaded server must not take on, and while it waits the client has it.
    let items_in = |bytes: usize| app.settings.items_in(bytes);
    let announced = body::announced(request.headers(), &app.settings)?;
    if let Some(bytes) = announced {
        app.admission.top_up_soon(&mut permit, items_in(bytes)).await?;
    }
    let body = body::read(request, announced, &app.settings, |bytes| {
        // A body of unknown length is complete by now, so it is charged without waiting.
        app.admission.top_up(&mut permit, items_in(bytes))
    })
    .await?;
    facts.brings(body.len());
    let models = app.models();
    let limit = Duration::from_millis(app.settings.compute_deadline_ms);
    let deadline = || Instant::now() + limit;
    // A long body is parsed on the pool, since parsing would hold a thread of the runtime too long.
    let is_long = body.len() > INLINE_BYTES;
    if is_long && !Q::may_wait(&app) {
        let job = {
            let app = Arc::clone(&app);
            move |work: &JobContext| {
                let started = Instant::now();
                let question = Q::read(&body, &address)?;
                weigh_and_write(&*question, &app, &models, (&mut permit, &facts), (work, started))
            }
        };
        return on_pool(&app, (&app.compute, &client), (deadline(), None), job).await;
    }
    let started = Instant::now();
    let parsed = match is_long {
        false => Parsed::of::<Q>(body, &address)?,
        true => {
            let parse = move |_: &JobContext| Parsed::of::<Q>(body, &address);
            let parsed = app.compute.run(&client, deadline(), &app.metrics, parse).await;
            parsed.unwrap_or_else(Err)?
        }
    };
    let dialect = parsed.question().dialect();
    if let Some(name) = parsed.question().collection() {
        facts.ranks_collection(name);
    }
    if is_long || parsed.question().is_long() {
        let turn = match parsed.question().turn(&app) {
            Some(turn) => Some(turn.await.map_err(|error| error.in_dialect(dialect))?),
            None => None,
        };
        let threads = app.pool(parsed.question().waits(&app));
        let job = {
            let app = Arc::clone(&app);
            move |work: &JobContext| {
                let _turn = turn;
                let question = parsed.question();
                weigh_and_write(question, &app, &models, (&mut permit, &facts), (work, started))
            }
        };
        return on_pool(&app, (threads, &client), (deadline(), Some(dialect)), job).await;
    }
    let plan = parsed.question().plan(&app, &models);
    let plan = plan.map_err(|error| refused(parsed.question(), error))?;
    plan.note(&facts);
    let admitted = app.admission.top_up(&mut permit, plan.items).is_ok();
    if admitted && plan.nanos <= INLINE_NANOS {
        let work = JobContext::inline(started, started + limit);
        let answered = write(parsed.question(), plan, &app, &client, (&work, started))?;
        return Ok(respond(&app, answered));
    }
    if !admitted {
        let admitted = app.admission.top_up_soon(&mut permit, plan.items).await;
        admitted.map_err(|error| error.in_dialect(dialect))?;
    }
    let job = {
        let app = Arc::clone(&app);
        move |work: &JobContext| {
            write(parsed.question(), plan, &app, permit.client(), (work, Instant::now()))
        }
    };
    on_pool(&app, (&app.compute, &client), (deadline(), Some(dialect)), job).await
}

/// Has a question answered on a pool, whose refusals are in this dialect, if it is known.
async fn on_pool(
    app: &App,
    (threads, client): (&Pool, &Client),
    (deadline, dialect): (Instant, Option<Dialect>),
    job: impl FnOnce(&JobContext) -> Result<Answered, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let answered = threads.run(client, deadline, &app.metrics, job).await;
    match answered.unwrap_or_else(Err) {
        Ok(answered) => Ok(respond(app, answered)),
        Err(error) => Err(ApiError { dialect: error.dialect.or(dialect), ..error }),
    }
}

/// Weighs a question that has a thread already, and answers it.
fn weigh_and_write(
    question: &dyn Question,
    app: &App,
    models: &Models,
    (permit, facts): (&mut Permit, &Facts),
    (work, started): (&JobContext, Instant),
) -> Result<Answered, ApiError> {
    if let Some(name) = question.collection() {
        facts.ranks_collection(name);
    }
    let looked_up = question.look_up(app, models, work);
    let plan = looked_up.and_then(|()| question.plan(app, models));
    let plan = plan.map_err(|error| refused(question, error))?;
    plan.note(facts);
    app.admission.charge_running(permit, plan.items);
    write(question, plan, app, permit.client(), (work, started))
}

/// A refusal in the words of the question's body and dialect.
fn refused(question: &dyn Question, error: ApiError) -> ApiError {
    error.renamed(|pointer| question.pointer_in_body(pointer)).in_dialect(question.dialect())
}

fn write(
    question: &dyn Question,
    plan: Plan,
    app: &App,
    client: &Client,
    (work, started): (&JobContext, Instant),
) -> Result<Answered, ApiError> {
    let answered = || {
        let unsent = app.unsent.of(client);
        unsent.check(plan.answer_bytes, plan.items, "")?;
        let mut answer = unsent.answer(plan.answer_bytes)?;
        let counts = question.answer(&plan, app, work, &mut answer)?;
        Ok((answer.into_bytes(), counts))
    };
    let (json, counts) = answered().map_err(|error| refused(question, error))?;
    let dialect = question.dialect();
    Ok(Answered { json, counts, plan, dialect, took: started.elapsed() })
}

fn respond(app: &App, answered: Answered) -> Response {
    let Answered { json, counts, plan, dialect, took } = answered;
    plan.resolved.methods().for_each(|method| app.metrics.computed(method));
    app.metrics.spoke(dialect);
    app.metrics.read(counts);
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    *headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    mark(headers, &plan.resolved, took);
    response
}

/// Refuses a list that is empty, or longer than a setting allows.
pub(crate) fn check_length(
    pointer: &'static str,
    what: &str,
    length: usize,
    (setting, limit): (&str, usize),
) -> Result<(), ApiError> {
    match length {
        0 => Err(ApiError::at(Code::EmptyList, pointer, format!("there are no {what}"))),
        _ if length > limit => {
            let error = ApiError::beyond(Code::TooManyItems, pointer, what, limit, length);
            let detail = format!("{} (setting `{setting}`)", error.detail);
            Err(ApiError { detail: detail.into(), ..error })
        }
        _ => Ok(()),
    }
}

pub(crate) fn mark(headers: &mut HeaderMap, resolved: &Resolved, took: Duration) {
    headers.insert(FINGERPRINT, resolved.model.fingerprint.clone());
    if let Some(value) = timing(took) {
        headers.insert(TIMING, value);
    }
}

/// How long computing took, as the header has it: in milliseconds, to the microsecond. Written by
/// hand: the machinery of formats takes longer than all else that is done for headers.
pub(super) fn timing(took: Duration) -> Option<HeaderValue> {
    const NAME: &[u8] = b"compute;dur=";
    let mut left = took.saturating_add(Duration::from_nanos(500)).as_micros();
    let mut text = [0; 64];
    let mut at = text.len();
    // Three digits behind the point, and one before it at least.
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
    // Digits are fit for a header.
    HeaderValue::from_bytes(text.get(from..)?).ok()
}

/// How many times the time that all threads have until the deadline a question may be estimated to
/// take. Estimates are made for a common core and hold within a factor of 2 either way for words as
/// they are written; so what is estimated at less may be in time on a fast core with nothing else to
/// do, and what is estimated at more would be late the next time as well, and is refused.
pub(crate) const SLACK: u64 = 2;

/// A question that can be answered, and how much work that is.
pub struct Plan {
    pub resolved: Resolved,
    /// Items of the list that makes it long.
    pub items: usize,
    /// Estimated nanoseconds.
    pub(super) nanos: u64,
    pub(super) answer_bytes: usize,
}

impl Plan {
    /// Weighs a question of `items` items with texts of `bytes` bytes in all, or refuses one that
    /// would certainly be late.
    pub fn new(
        resolved: Resolved,
        items: usize,
        bytes: usize,
        multiplications: u64,
        app: &App,
    ) -> Result<Self, ApiError> {
        Self::at_least(resolved, items, bytes, [multiplications; 2], app)
    }

    /// Weighs a question that may turn out to be less work: the first number of multiplications is
    /// certain, the second the most.
    pub fn at_least(
        resolved: Resolved,
        items: usize,
        bytes: usize,
        [least, most]: [u64; 2],
        app: &App,
    ) -> Result<Self, ApiError> {
        let deadline_ms = app.settings.compute_deadline_ms;
        let deadline = Duration::from_millis(deadline_ms).as_nanos() as u64;
        let threads = app.compute.threads().min(items).max(1) as u64;
        let time = deadline.saturating_mul(threads);
        let certain = estimate(bytes, least);
        if certain / SLACK > time {
            let each = (certain / items.max(1) as u64).max(1);
            // Items are computed by one thread each.
            let batch = match time / each {
                largest if each <= deadline => {
                    format!("the largest batch that could is about {largest}")
                }
                _ => "not even one could".to_owned(),
            };
            let method = resolved.method_name();
            let detail = format!(
                "{method} over {items} items of this length cannot be done in {deadline_ms} ms \
                 (setting `compute_deadline_ms`); {batch}"
            );
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { resolved, items, nanos: estimate(bytes, most), answer_bytes: 0 })
    }

    /// Notes the estimated bytes of the answer, or refuses a question with a larger answer than any
    /// may have; `pointer` names the list that makes it long.
    pub fn answering(
        self,
        bytes: usize,
        pointer: &'static str,
        app: &App,
    ) -> Result<Self, ApiError> {
        app.unsent.check(bytes, self.items, pointer)?;
        Ok(Self { answer_bytes: bytes, ..self })
    }

    /// Adds multiplications on one thread, or refuses a question that would certainly be late by
    /// them.
    pub(crate) fn heavier(self, multiplications: u64, app: &App) -> Result<Self, ApiError> {
        let more = multiplications / MULTIPLICATIONS_PER_NANO;
        let deadline_ms = app.settings.compute_deadline_ms;
        if u128::from(more / SLACK) > Duration::from_millis(deadline_ms).as_nanos() {
            let detail = format!("texts of this length cannot be explained in {deadline_ms} ms");
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { nanos: self.nanos.saturating_add(more), ..self })
    }

    /// Adds bytes to the answer; see [`Plan::answering`].
    pub(crate) fn longer(
        self,
        bytes: usize,
        pointer: &'static str,
        app: &App,
    ) -> Result<Self, ApiError> {
        let bytes = self.answer_bytes.saturating_add(bytes);
        self.answering(bytes, pointer, app)
    }

    pub(super) fn note(&self, facts: &Facts) {
        let resolved = &self.resolved;
        facts.asks(&resolved.model.name, resolved.listed_method(), Some(self.items));
    }

    /// Number of items in one part of the answer.
    pub(crate) fn per_part(&self) -> usize {
        pool::items_per_part(self.items, self.nanos)
    }
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
