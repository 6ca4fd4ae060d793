//! What requests that write to collections have in common: a body that is paid for and read, work that
//! may wait for a disk, an answer within the memory of unsent answers.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request};
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use cognate_collections::{
    Applied, ChooseError, Collection, CollectionError, Filter, FilterProblem, ItemProblem,
    MatchError, Write,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::http::api::pipeline::SLACK;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Pointer};
use crate::http::middleware::authorize;
use crate::http::observe::request_log::Facts;
use crate::http::request::body;
use crate::http::work::admission::Permit;
use crate::http::work::file_threads::Unfinished;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;

/// Bytes of a body that count as an item before the items are counted.
const BYTES_PER_ITEM: usize = 128;
/// How long a write is waited for.
pub(crate) const DISK_PATIENCE: Duration = Duration::from_secs(10);

/// The names in the path of a collection or an item; a path that is not UTF-8 names nothing.
pub(super) type Named<T> = Result<Path<T>, axum::extract::rejection::PathRejection>;

/// The collection of a path, if the caller reaches it.
pub(super) fn collection(
    app: &App,
    caller: &Caller,
    name: Named<String>,
) -> Result<Arc<dyn Collection>, ApiError> {
    let Path(name) = name.map_err(|_| no_collection())?;
    app.collections.of(caller)?.get(&name).map_err(|error| got(&error))
}

/// The collection and the item's name of a path.
pub(super) fn item(
    app: &App,
    caller: &Caller,
    names: Named<(String, String)>,
) -> Result<(Arc<dyn Collection>, String), ApiError> {
    let Path((name, id)) = names.map_err(|_| no_item())?;
    let collection = app.collections.of(caller)?.get(&name);
    Ok((collection.map_err(|error| got(&error))?, id))
}

/// The refusal of a path whose collection cannot be had.
fn got(error: &CollectionError) -> ApiError {
    match error {
        CollectionError::NotServed { .. } => of(error, ""),
        _ => no_collection(),
    }
}

/// The settings of a query string that may hold these names.
pub(super) fn settings<T: DeserializeOwned>(uri: &Uri, names: &str) -> Result<T, ApiError> {
    let Query(settings) = Query::<T>::try_from_uri(uri).map_err(|_| {
        ApiError::at(Code::InvalidField, "", format!("the query string may hold {names}"))
    })?;
    Ok(settings)
}

/// The length of a page that a request asks for.
pub(super) fn page_length(
    asked: Option<usize>,
    usual: usize,
    most: usize,
    what: &str,
) -> Result<usize, ApiError> {
    let limit = asked.unwrap_or(usual);
    if limit > most {
        let detail = format!("a page has at most {most} {what}");
        return Err(ApiError::at(Code::OutOfRange, "/limit", detail));
    }
    Ok(limit)
}

/// The body of a request that may write, and the units that it holds while it is answered.
pub(super) async fn body(app: &App, request: Request) -> Result<(Permit, Bytes), ApiError> {
    authorize::check_writes(&request)?;
    let facts = Facts::of(&request);
    let client = Caller::of(request.extensions())?.client;
    let mut permit = app.admission.admit_soon(&client).await?;
    let items = |bytes: usize| (bytes / BYTES_PER_ITEM).min(app.settings.max_texts);
    let announced = body::announced(request.headers(), &app.settings)?;
    if let Some(bytes) = announced {
        app.admission.top_up_soon(&mut permit, items(bytes)).await?;
    }
    let body = body::read(request, announced, &app.settings, |bytes| {
        app.admission.top_up(&mut permit, items(bytes))
    });
    let body = body.await?;
    facts.brings(body.len());
    Ok((permit, body))
}

/// [`body`] of a request that must be JSON.
pub(super) async fn json_body(app: &App, request: Request) -> Result<(Permit, Bytes), ApiError> {
    body::check_json(request.headers())?;
    body(app, request).await
}

/// Runs long work on a computing thread, or on one that may wait for the database, until its
/// deadline or until the client has gone.
pub(super) async fn compute<T: Send + 'static>(
    (app, caller): (&App, &Caller),
    work: impl FnOnce(&JobContext) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let deadline = Instant::now() + Duration::from_millis(app.settings.compute_deadline_ms);
    let threads = app.pool(app.collections.is_remote());
    threads.run(&caller.client, deadline, &app.metrics, work).await?
}

/// Looks something up: in memory and never on a disk, or in a database where one keeps the
/// collections.
pub(super) async fn look_up<T: Send + 'static>(
    (app, caller): (&App, &Caller),
    look: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if app.collections.is_remote() {
        return compute((app, caller), |_| look()).await;
    }
    read(app, look).await
}

/// Reads what takes longer than the runtime's threads should be held, but waits for no disk and behind
/// no question that is computed.
pub(super) async fn read<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let read = app.readers.run(work).await;
    read.unwrap_or_else(|error| Err(ApiError::internal(&error.to_string())))
}

/// Runs work that waits for a disk or a database on a thread that may wait.
pub(super) async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    on_writers(app, work, || {
        let detail = "others wait for the disk that keeps the collections, so nothing was changed; ask \
                      again";
        ApiError::new(Code::DeadlineExceeded, detail)
    })
    .await
}

/// Waits, on a thread that may wait, until what was written before lasts.
pub(super) async fn settle(
    app: &App,
    wait: impl FnOnce() -> Result<(), ApiError> + Send + 'static,
) -> Result<(), ApiError> {
    on_writers(app, wait, uncertain).await
}

async fn on_writers<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    not_begun: fn() -> ApiError,
) -> Result<T, ApiError> {
    app.writers.run_within(DISK_PATIENCE, work).await.unwrap_or_else(|unfinished| {
        Err(match unfinished {
            Unfinished::NotBegun => not_begun(),
            Unfinished::GoesOn => uncertain(),
            Unfinished::Failed(error) => ApiError::internal(&error.to_string()),
        })
    })
}

/// What was written may last or not.
pub(crate) fn uncertain() -> ApiError {
    let detail = "the disk that keeps the collections has not written in 10 s what it was given, so that \
                  it may be there or not; write it again";
    ApiError::new(Code::NotWritten, detail)
}

/// Waits for a caller's turn to write to a collection of this name, as long as an answer may take.
pub(super) async fn turn(app: &App, caller: &Caller, name: &str) -> Result<Turn, ApiError> {
    let is_counted = app.collections.of(caller)?.are_counted();
    let turn = async {
        let alone = if is_counted { caller.alone().await } else { None };
        app.turns.wait(name, alone).await
    };
    let patience = Duration::from_millis(app.settings.compute_deadline_ms);
    timeout(patience, turn).await.map_err(|_| {
        let detail = "others wrote to the collection for longer than the server lets an answer take \
                      (setting `compute_deadline_ms`), so nothing was changed; ask again";
        ApiError::new(Code::DeadlineExceeded, detail)
    })
}

/// Writes to a collection in its turn, and waits until that lasts, which others do at the same time.
pub(super) async fn write(
    app: &Arc<App>,
    caller: Caller,
    (collection, wanted): (Arc<dyn Collection>, Write),
    refused: fn(&CollectionError) -> ApiError,
) -> Result<Applied, ApiError> {
    let turn = turn(app, &caller, collection.name()).await?;
    let (of_app, asked) = (Arc::clone(app), Arc::clone(&collection));
    let work = move || {
        let now = cognate_collections::now();
        match &wanted {
            Write::Put(items) => {
                of_app.collections.of(&caller)?.check_room(&*collection, items, now)?;
            }
            Write::Patch { id, patch } => {
                let reachable = of_app.collections.of(&caller)?;
                reachable.check_room_to_patch(&*collection, (id, patch), now)?;
            }
            Write::Move(change) => {
                of_app.collections.of(&caller)?.check_room_to_move(&*collection, change, now)?;
            }
            Write::RemoveSelected(which) => {
                let count = || collection.told(now).map_err(|error| refused(&error));
                check_filter(&of_app, &which.filter, || Ok(count()?.items))?;
            }
            Write::Remove(_) | Write::Set(_) => {}
        }
        let written = collection.write(wanted, now);
        drop(turn);
        let (applied, pending) = written.map_err(|error| refused(&error))?;
        collection.wait_durable(pending).map_err(|error| refused(&error))?;
        Ok(applied)
    };
    let written = aside(app, work).await;
    written.inspect_err(|error| app.metrics.write_refused(asked.name(), error))
}

/// An answer to a caller; `bytes` is its estimated length.
pub(super) fn answer(
    app: &App,
    caller: &Caller,
    bytes: usize,
    answer: &impl Serialize,
) -> Result<Response, ApiError> {
    let unsent = app.unsent.of(&caller.client);
    let mut written = unsent.answer(bytes)?;
    written.write_json(answer)?;
    let mut response = Response::new(Body::from(written.into_bytes()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// Nanoseconds that looking at an item takes, and asking it a question of a filter.
const NANOS_PER_ITEM: u64 = 40;
const NANOS_PER_QUESTION: u64 = 20;

/// The refusal of a path whose collection is not there.
pub(crate) fn no_collection() -> ApiError {
    let detail = "there is no collection of this name; GET /collections lists them";
    ApiError::new(Code::NotFound, detail)
}

/// The refusal of a path whose item is not there.
pub(super) fn no_item() -> ApiError {
    ApiError::new(Code::NotFound, "the collection has no item of this name")
}

/// The refusal of an item; `of` is its place in the body.
pub(crate) fn of_item(problem: &ItemProblem, of: impl Into<Pointer>) -> ApiError {
    let code = match (problem.too_long, problem.field) {
        (true, _) => Code::TextTooLong,
        (false, "/text") => Code::EmptyText,
        (false, _) => Code::InvalidField,
    };
    ApiError::at(code, Pointer::from(problem.field).within(of), problem.to_string())
}

/// The refusal of a text that is to be matched; `of` is its place in the body.
pub(crate) fn other_text(of: impl Into<Pointer>) -> ApiError {
    let detail =
        "the collection has another text of this `id`; with `replace` this one takes its place";
    ApiError::at(Code::OtherText, Pointer::from("/text").within(of), detail)
}

/// The refusal of a filter; `at` is its place in the body.
pub(crate) fn of_filter(problem: &FilterProblem, at: &'static str) -> ApiError {
    let pointer = Pointer::parse(&problem.pointer).within(at);
    ApiError::at(Code::InvalidField, pointer, problem.what)
}

/// The refusal of a change; `items` is the place of the items in the body.
pub(super) fn of(error: &CollectionError, items: &'static str) -> ApiError {
    match error {
        CollectionError::Unknown => no_collection(),
        CollectionError::BadName => ApiError::at(Code::InvalidField, "", error.to_string()),
        CollectionError::TooMany { limit } => {
            let detail = format!("there are {limit} collections (setting `max_collections`)");
            ApiError::new(Code::CollectionFull, detail)
        }
        CollectionError::TooManyItems { wanted, limit } => {
            let detail = format!(
                "the collection would have {wanted} items; the limit is {limit} (setting \
                 `collection_items`). With `max_items` the oldest leave"
            );
            ApiError::new(Code::CollectionFull, detail)
        }
        CollectionError::NoMemory { limit } => {
            let detail = format!(
                "collections would take more than {limit} bytes of memory (setting \
                 `collection_bytes`)"
            );
            ApiError::new(Code::CollectionFull, detail)
        }
        CollectionError::Item { index, problem } => {
            of_item(problem, Pointer::from(items).index(*index))
        }
        CollectionError::OtherText { index } => other_text(Pointer::from(items).index(*index)),
        CollectionError::NoEvent => ApiError::new(Code::NotFound, error.to_string()),
        CollectionError::EventChange { field, index, problem } => {
            let list = Pointer::from(*field);
            let at = index.map_or(list.clone(), |index| list.index(index));
            ApiError::at(Code::InvalidField, at, *problem)
        }
        CollectionError::Write { .. } => {
            let detail = "the collection's log could not be written, so nothing was changed; the \
                          server's log says more under this request id";
            with_cause(error, Code::NotWritten, detail)
        }
        CollectionError::Unsynced { .. } => {
            let detail = "the disk failed to keep what was written, so it is taken back, and may be \
                          there or not once the server starts again; until then nothing is written. \
                          The server's log says more under this request id";
            with_cause(error, Code::NotWritten, detail)
        }
        CollectionError::Away { .. } => {
            let detail = "the collection's files were deleted, moved, replaced or cut under the server, so \
                          nothing was changed, and nothing is written until it starts again; the \
                          server's log says more under this request id";
            with_cause(error, Code::NotWritten, detail)
        }
        CollectionError::NotServed { .. } => {
            let detail = "the log of this collection cannot be read, so it is not served until it can be: \
                          a reload of the server that writes takes it up then, and a replica does so by \
                          itself. The server's log says what it needs. All others are served";
            with_cause(error, Code::NotReady, detail)
        }
        CollectionError::HandedOver => {
            let detail = "the server is about to stop and handed its collections over to the one that \
                          follows it; send this to that one";
            ApiError::new(Code::Draining, detail)
        }
        CollectionError::ReadOnly => {
            let detail = "this server is a replica, which takes no changes; send them to the server \
                          that keeps the collections";
            ApiError::new(Code::ReadOnly, detail)
        }
        CollectionError::Unreachable { .. } => {
            let detail = "the database that keeps the collections cannot be reached; ask again";
            with_cause(error, Code::DatabaseUnavailable, detail)
        }
        CollectionError::Slow { .. } => {
            let detail = "the database that keeps the collections takes longer than the server lets \
                          an answer take (setting `compute_deadline_ms`); ask again";
            with_cause(error, Code::DeadlineExceeded, detail)
        }
        CollectionError::Unwritable { .. } => {
            let detail = "the database that keeps the collections takes nothing, so nothing was \
                          changed; the server's log says more under this request id";
            with_cause(error, Code::NotWritten, detail)
        }
        CollectionError::Uncertain { .. } => {
            let detail = "the connection to the database was lost while it wrote, so what was to be \
                          written may be there or not; write it again";
            with_cause(error, Code::NotWritten, detail)
        }
        CollectionError::TooManyChosen { limit } => {
            let detail = format!(
                "more than {limit} items would be sent from the database to be ranked; ask for a \
                 `shortlist`, or filter them"
            );
            ApiError::at(Code::TooMuchWork, "/collection", detail)
        }
        CollectionError::Read { .. }
        | CollectionError::InUse { .. }
        | CollectionError::Alive { .. }
        | CollectionError::NoCollections { .. }
        | CollectionError::Damaged { .. }
        | CollectionError::NewerFormat { .. }
        | CollectionError::NoLog { .. }
        | CollectionError::NotSetUp { .. }
        | CollectionError::Database { .. } => ApiError::internal(&error.to_string()),
    }
}

/// A refusal whose cause, which names files and hosts, is for the log alone.
fn with_cause(error: &CollectionError, code: Code, detail: &'static str) -> ApiError {
    let cause = Some(error.to_string().into());
    ApiError { cause, ..ApiError::new(code, detail) }
}

/// The refusal of a `/rank` question about a collection.
pub(crate) fn of_named(error: &CollectionError) -> ApiError {
    match error {
        CollectionError::Unknown => {
            let detail = "there is no collection of this name; GET /collections lists them";
            ApiError::at(Code::UnknownCollection, "/collection", detail)
        }
        other => of(other, "/collection"),
    }
}

/// The refusal when items cannot be chosen. If the request was cancelled, the job knows why.
pub(crate) fn of_choice(
    error: ChooseError,
    of: impl FnOnce(&CollectionError) -> ApiError,
    work: &JobContext,
) -> ApiError {
    match error {
        ChooseError::Collection(error) => of(&error),
        ChooseError::Query(error) => error.into(),
        ChooseError::Stopped => given_up(&error, work),
    }
}

/// The refusal of what a job gave up, which knows why.
fn given_up(error: &dyn Display, work: &JobContext) -> ApiError {
    let stopped = || ApiError::new(Code::DeadlineExceeded, error.to_string());
    work.check().err().unwrap_or_else(stopped)
}

/// Refuses a filter that would be asked of items for longer than there is time. A database asks it there,
/// and is not asked how many items there are.
pub(crate) fn check_filter(
    app: &App,
    filter: &Filter,
    items: impl FnOnce() -> Result<usize, ApiError>,
) -> Result<(), ApiError> {
    let questions = filter.questions() as u64;
    if questions == 0 || app.collections.is_remote() {
        return Ok(());
    }
    let items = items()?;
    let nanos = (items as u64).saturating_mul(NANOS_PER_ITEM + questions * NANOS_PER_QUESTION);
    let deadline_ms = app.settings.compute_deadline_ms;
    if Duration::from_nanos(nanos / SLACK) <= Duration::from_millis(deadline_ms) {
        return Ok(());
    }
    let detail = format!(
        "{questions} conditions would be asked of {items} items, which takes about {} ms; the limit is \
         {deadline_ms} ms (setting `compute_deadline_ms`)",
        nanos / 1_000_000
    );
    Err(ApiError::at(Code::TooMuchWork, "/filter", detail))
}

/// Why texts were not matched.
pub(crate) enum MatchRefusal {
    /// The collection has another text under the name of the one in this place.
    OtherText(usize),
    Other(ApiError),
}

impl From<ApiError> for MatchRefusal {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl MatchRefusal {
    /// The refusal of texts that a job was to match.
    pub(super) fn of(error: MatchError, work: &JobContext) -> Self {
        match error {
            MatchError::Collection(CollectionError::OtherText { index }) => Self::OtherText(index),
            MatchError::Collection(error) => Self::Other(of(&error, "/items")),
            MatchError::Query(error) => Self::Other(error.into()),
            MatchError::Stopped => Self::Other(given_up(&error, work)),
        }
    }
}

/// The refusal of texts of a list that cannot be matched.
pub(crate) fn of_match(refusal: MatchRefusal) -> ApiError {
    match refusal {
        MatchRefusal::OtherText(index) => other_text(Pointer::from("/items").index(index)),
        MatchRefusal::Other(error) => error,
    }
}
