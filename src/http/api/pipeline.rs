//! The way of every question that computes: admitted, read, parsed, weighed, answered here or on
//! the pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use cognate::engine::Counts;
use self_cell::self_cell;

pub use crate::http::api::plan::Plan;
use crate::http::api::timing::timing;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::client::Client;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code};
use crate::http::observe::request_log::Facts;
use crate::http::registry::models::Models;
use crate::http::request::body;
use crate::http::request::query::{NANOS_PER_BYTE, Resolved};
use crate::http::work::admission::Permit;
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
/// Bytes of a score or another number of an answer, with its comma: what most take at most.
pub(crate) const NUMBER_BYTES: usize = 13;

/// A question that is parsed from a body, weighed and answered.
pub(crate) trait Question {
    /// The question as it borrows from a body.
    type In<'b>: Question<Address = Self::Address> + Send + 'b;
    /// What its path says of it.
    type Address: Send + Sync + 'static;

    /// Refuses a request by its head.
    fn check_head(request: &Request) -> Result<(), ApiError> {
        body::check_json(request.headers())?;
        body::no_settings(request.uri())
    }

    /// Waits, without a thread and once the body is there, for the turn to compute what is computed one
    /// at a time.
    fn turn(
        _: &Self::Address,
        _: &App,
    ) -> impl Future<Output = Result<Option<Turn>, ApiError>> + Send {
        async { Ok(None) }
    }

    /// Whether such a question may wait for another machine.
    fn may_wait(_: &App) -> bool {
        false
    }

    /// Whether this one does.
    fn waits(&self, _: &App) -> bool {
        false
    }

    fn read<'b>(body: &'b [u8], address: &Self::Address) -> Result<Self::In<'b>, ApiError>;

    /// Whose form a refusal is written in, now that the body is known.
    fn dialect(&self) -> Dialect {
        Dialect::Native
    }

    /// Whether even weighing it takes longer than the runtime's threads should be held.
    fn is_long(&self) -> bool {
        false
    }

    /// Finds what a [long](Self::is_long) question is about, before it is weighed.
    fn look_up(&self, _: &App, _: &Models, _: &JobContext) -> Result<(), ApiError> {
        Ok(())
    }

    /// Checks lengths, finds the model and the method, and weighs the work.
    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError>;

    /// Writes the answer as JSON, and says what was read for it.
    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError>;
}

/// A [`Question`] that was read, whatever its type.
trait Read: Send {
    fn dialect(&self) -> Dialect;
    fn waits(&self, app: &App) -> bool;
    fn is_long(&self) -> bool;
    fn look_up(&self, app: &App, models: &Models, work: &JobContext) -> Result<(), ApiError>;
    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError>;
    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError>;
}

impl<Q: Question + Send> Read for Q {
    fn dialect(&self) -> Dialect {
        Question::dialect(self)
    }

    fn waits(&self, app: &App) -> bool {
        Question::waits(self, app)
    }

    fn is_long(&self) -> bool {
        Question::is_long(self)
    }

    fn look_up(&self, app: &App, models: &Models, work: &JobContext) -> Result<(), ApiError> {
        Question::look_up(self, app, models, work)
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        Question::plan(self, app, models)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        Question::answer(self, plan, app, work, answer)
    }
}

type Borrowing<'b> = Box<dyn Read + 'b>;

self_cell! {
    /// A question with the body that it borrows from, so that another thread can go on with it.
    struct Parsed {
        owner: Bytes,
        #[covariant]
        dependent: Borrowing,
    }
}

impl Parsed {
    fn of<Q: Question + 'static>(body: Bytes, address: &Q::Address) -> Result<Self, ApiError> {
        Self::try_new(body, |body| Ok(Box::new(Q::read(body, address)?) as Borrowing<'_>))
    }

    fn question(&self) -> &dyn Read {
        self.borrow_dependent().as_ref()
    }
}

/// An answer on its way out.
struct Answered {
    json: Bytes,
    counts: Counts,
    plan: Plan,
    dialect: Dialect,
    took: Duration,
}

pub(crate) async fn answer<Q: Question + 'static>(
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
    if let Some(bytes) = body::announced(request.headers(), &app.settings)? {
        app.admission.top_up_soon(&mut permit, items_in(bytes)).await?;
    }
    let body = body::read(request, &app.settings, |bytes| {
        // One that does not say how long it is has its bytes here already, so it does not wait.
        app.admission.top_up(&mut permit, items_in(bytes))
    })
    .await?;
    facts.brings(body.len());
    let turn = Q::turn(&address, &app).await?;
    let models = app.models();
    let deadline = || Instant::now() + Duration::from_millis(app.settings.compute_deadline_ms);
    // A long body is parsed on the pool: that takes longer than the runtime's threads should be held.
    let is_long = body.len() > INLINE_BYTES;
    if is_long && !Q::may_wait(&app) {
        let job = {
            let app = Arc::clone(&app);
            move |work: &JobContext| {
                let _turn = turn;
                let started = Instant::now();
                let question = Q::read(&body, &address)?;
                weigh_and_write(&question, &app, &models, (&mut permit, &facts), (work, started))
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
    if is_long || parsed.question().is_long() {
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
    let plan = parsed.question().plan(&app, &models).map_err(|error| error.spoken(dialect))?;
    plan.note(&facts);
    let admitted = app.admission.top_up(&mut permit, plan.items).is_ok();
    if admitted && plan.nanos <= INLINE_NANOS {
        let work = JobContext::inline(deadline());
        let answered = write(parsed.question(), plan, &app, &client, (&work, started));
        return Ok(respond(&app, answered.map_err(|error| error.spoken(dialect))?));
    }
    if !admitted {
        let admitted = app.admission.top_up_soon(&mut permit, plan.items).await;
        admitted.map_err(|error| error.spoken(dialect))?;
    }
    let job = {
        let app = Arc::clone(&app);
        move |work: &JobContext| {
            let now = Instant::now();
            let answered = write(parsed.question(), plan, &app, permit.client(), (work, now));
            answered.map_err(|error| error.spoken(dialect))
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
    question: &dyn Read,
    app: &App,
    models: &Models,
    (permit, facts): (&mut Permit, &Facts),
    (work, started): (&JobContext, Instant),
) -> Result<Answered, ApiError> {
    let looked_up = question.look_up(app, models, work);
    let answered = looked_up.and_then(|()| question.plan(app, models)).and_then(|plan| {
        plan.note(facts);
        app.admission.settle(permit, plan.items);
        write(question, plan, app, permit.client(), (work, started))
    });
    answered.map_err(|error| error.spoken(question.dialect()))
}

/// Computes an answer and writes it.
fn write(
    question: &dyn Read,
    plan: Plan,
    app: &App,
    client: &Client,
    (work, started): (&JobContext, Instant),
) -> Result<Answered, ApiError> {
    let unsent = app.unsent.of(client);
    unsent.check(plan.answer_bytes, plan.items, "")?;
    let mut answer = unsent.answer(plan.answer_bytes)?;
    let counts = question.answer(&plan, app, work, &mut answer)?;
    let (json, dialect) = (answer.into_bytes(), question.dialect());
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
    pointer: &str,
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

/// The headers that every computed answer has.
pub(crate) fn mark(headers: &mut HeaderMap, resolved: &Resolved, took: Duration) {
    headers.insert(FINGERPRINT, resolved.model.fingerprint.clone());
    if let Some(value) = timing(took) {
        headers.insert(TIMING, value);
    }
}
