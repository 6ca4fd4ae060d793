//! What requests to collections share: the caller, units, a body that is paid for and read, threads
//! that may wait for a disk, an answer within the memory of unsent answers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, MatchedPath, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use cognate_collections::{
    Applied, Cancellation, ChooseError, Collection, CollectionError, Filter, FilterProblem,
    ItemProblem, ItemSelector, Pending, Write,
};
use cognate_files::instant;
use serde::Serialize;
use tokio::time::timeout;

use crate::http::api::pipeline;
use crate::http::api::pipeline::SLACK;
use crate::http::api::question::Threads;
use crate::http::api::ways::Way;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::middleware::authorize;
use crate::http::request::body;
use crate::http::work::admission::Permit;
use crate::http::work::pool::{JobContext, late};
use crate::http::work::turns::Turn;
use crate::http::work::unsent::Charge;

const BYTES_PER_ITEM: usize = 128;
/// Bytes of memory of an item while its event changes.
const BYTES_PER_MOVE: usize = 256;
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    permit: Option<Permit>,
    way: Way,
}

/// A request about a collection that the caller may use, and about the item or event of its path,
/// if it names one.
pub(crate) struct Named {
    pub(crate) call: Call,
    pub(crate) collection: Arc<dyn Collection>,
    pub(crate) id: Box<str>,
}

impl FromRequestParts<Arc<App>> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self> {
        Ok(Self::new(Arc::clone(app), Caller::from_extensions(&parts.extensions)?))
    }
}

impl FromRequestParts<Arc<App>> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self> {
        let call = Call::from_request_parts(parts, app).await?;
        let route = parts.extensions.get::<MatchedPath>();
        let names_item = route.is_some_and(|route| route.as_str().contains("{id}"));
        // A path that is not UTF-8 names nothing.
        let names = Path::<Vec<String>>::from_request_parts(parts, app).await;
        let Path(names) =
            names.map_err(|_| if names_item { no_item() } else { no_collection() })?;
        let mut names = names.into_iter();
        let collection = app.collections.of(&call.caller)?;
        let collection = collection.get(&names.next().unwrap_or_default());
        let collection = collection.map_err(|error| got(&error))?;
        Ok(Self { call, collection, id: names.next().unwrap_or_default().into() })
    }
}

/// The error of a path whose collection cannot be opened.
fn got(error: &CollectionError) -> ApiError {
    match error {
        CollectionError::NotServed { .. } => of(error, ""),
        _ => no_collection(),
    }
}

/// The items that the parameters of a query string select.
pub(super) fn selector(
    written: Option<String>,
    event: Option<String>,
    age: Option<String>,
) -> Result<ItemSelector<'static>> {
    let (filter, within) = (filter(written.as_deref())?, within(age.as_deref())?);
    let event = event.map(Cow::Owned);
    Ok(ItemSelector { filter, event, within, ..ItemSelector::default() })
}

/// A filter written as JSON in a query string.
pub(crate) fn filter(written: Option<&str>) -> Result<Filter> {
    let Some(written) = written else { return Ok(Filter::default()) };
    Filter::read(written).map_err(|problem| of_filter(&problem, "/filter"))
}

/// The greatest age of items, in milliseconds.
pub(crate) fn within(written: Option<&str>) -> Result<Option<i64>> {
    let Some(written) = written else { return Ok(None) };
    let detail = || format!("expected {}", instant::SPANS);
    let wrong = || ApiError::at(Code::InvalidField, "/within", detail());
    instant::span(written).ok_or_else(wrong).map(Some)
}

pub(super) fn page_length(
    asked: Option<usize>,
    usual: usize,
    most: usize,
    what: &str,
) -> Result<usize> {
    let limit = asked.unwrap_or(usual);
    if limit > most {
        let detail = format!("a page has at most {most} {what}");
        return Err(ApiError::at(Code::OutOfRange, "/limit", detail));
    }
    Ok(limit)
}

impl Call {
    pub(crate) fn new(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller, permit: None, way: Way::Fixed }
    }

    /// Another request of the same caller.
    pub(super) fn again(&self) -> Self {
        Self::new(Arc::clone(&self.app), self.caller.clone())
    }

    /// The units that it holds; at least one.
    async fn permit(&mut self) -> Result<&mut Permit> {
        Ok(match &mut self.permit {
            Some(permit) => permit,
            none => none.insert(self.app.admission.admit_soon(&self.caller.client).await?),
        })
    }

    pub(super) fn check_writes(&self) -> Result<()> {
        authorize::check_writer(&self.caller)
    }

    /// The body of a request that may write, which must be JSON.
    pub(super) async fn json_body(&mut self, request: Request) -> Result<Bytes> {
        body::check_json(request.headers())?;
        self.check_writes()?;
        let app = Arc::clone(&self.app);
        let items_in = |bytes: usize| (bytes / BYTES_PER_ITEM).min(app.settings.max_texts);
        pipeline::read(&app, request, self.permit().await?, items_in).await
    }

    /// Reads items from a body by `read`, which requests their units. A request that waited for
    /// units would hold its body meanwhile, which takes memory that the units do not pay for.
    pub(super) async fn read_items<T: Send + 'static>(
        self,
        read: impl FnOnce(&mut dyn FnMut(usize) -> Result<()>) -> Result<Vec<T>> + Send + 'static,
    ) -> Result<(Self, Vec<T>)> {
        let read = |mut call: Self, _: &JobContext| {
            let Some(permit) = &mut call.permit else {
                return Err(ApiError::internal("a body was read without a unit"));
            };
            let admission = &call.app.admission;
            let items = read(&mut |units| admission.top_up(permit, units))?;
            admission.charge_running(permit, items.len());
            Ok((call, items))
        };
        self.on(Threads::Readers, read).await
    }

    /// Runs long work on a computing thread, or on one that may wait for the database.
    pub(super) async fn compute<T: Send + 'static>(
        mut self,
        work: impl FnOnce(Self, &JobContext) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.permit().await?;
        self.way = Way::Listing;
        let threads = self.threads(Threads::Pool);
        self.on(threads, work).await
    }

    /// Looks something up: in memory, never on a disk and behind no question that is computed; or
    /// in the database of the collections. It takes no unit: it reads one item, or a setting.
    pub(super) async fn look_up<T: Send + 'static>(
        mut self,
        look: impl FnOnce(Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.way = Way::Look;
        let threads = self.threads(Threads::Readers);
        self.on(threads, |call, _| look(call)).await
    }

    /// Runs work that waits for a disk or a database on a thread that may wait.
    pub(super) async fn aside<T: Send + 'static>(
        mut self,
        work: impl FnOnce(Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.way = Way::Write;
        self.on(Threads::Writers, |call, _| work(call)).await
    }

    /// Waits, on a thread that may wait, until an earlier write is durable.
    pub(super) async fn settle(
        self,
        wait: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.on(Threads::Syncers, |_, _| wait()).await
    }

    fn threads(&self, local: Threads) -> Threads {
        if self.app.collections.is_remote() { Threads::Waiting } else { local }
    }

    async fn on<T: Send + 'static>(
        self,
        threads: Threads,
        work: impl FnOnce(Self, &JobContext) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (app, client) = (Arc::clone(&self.app), self.caller.client.clone());
        pipeline::run((&app, &client), threads, move |job| work(self, job)).await
    }

    pub(super) async fn turn(&self, name: &str) -> Result<Turn> {
        let (app, caller) = (&self.app, &self.caller);
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

    /// Writes to a collection in its turn, and waits until that is durable, together with others;
    /// `items` is the position of the items in the body.
    pub(super) async fn write(
        &mut self,
        collection: &Arc<dyn Collection>,
        wanted: Write,
        items: &'static str,
    ) -> Result<Applied> {
        self.way = Way::Write;
        let turn = self.turn(collection.name()).await?;
        let written = Arc::clone(collection);
        let work = move |call: Self, job: &JobContext| {
            let begun = call.begin_write(&*written, wanted, items, Cancellation::when(job));
            drop(turn);
            let (applied, pending) = begun?;
            written.wait_durable(pending).map_err(|error| of(&error, items))?;
            Ok((applied, call.permit))
        };
        // The units are held as long as the work goes on, whoever waits for it.
        let held = Self { permit: self.permit.take(), way: Way::Write, ..self.again() };
        match held.on(Threads::Writers, work).await {
            Ok((applied, permit)) => {
                self.permit = permit;
                Ok(applied)
            }
            Err(error) => {
                self.app.metrics.write_refused(collection.name(), &error);
                Err(error)
            }
        }
    }

    pub(super) async fn remove(
        &mut self,
        collection: &Arc<dyn Collection>,
        which: ItemSelector<'static>,
    ) -> Result<Applied> {
        self.permit().await?;
        self.write(collection, Write::RemoveSelected(which), "").await
    }

    /// Begins a write, if there is room for it; it is durable once the collection reports so. What is cancelled
    /// has written nothing.
    pub(super) fn begin_write(
        &self,
        collection: &dyn Collection,
        mut wanted: Write,
        items: &'static str,
        cancel: Cancellation<'_>,
    ) -> Result<(Applied, Pending)> {
        let now = cognate_collections::now();
        let reachable = self.app.collections.of(&self.caller)?;
        let mut _memory = None;
        match &mut wanted {
            Write::Put(items) => reachable.check_room(collection, items, now)?,
            Write::Patch(patches) => reachable.check_room_to_patch(collection, patches, now)?,
            Write::Move(change, room) => {
                let items = collection.count_of(change, now, cancel)?;
                _memory = Some(self.charge_for_moves(items)?);
                *room = reachable.bytes_left(collection, now)?;
            }
            Write::RemoveSelected(which) => check_filter(&self.app, &which.filter, collection)?,
            Write::Remove(_) | Write::Set(_) => {}
        }
        collection.write(wanted, now).map_err(|error| of(&error, items))
    }

    fn charge_for_moves(&self, items: usize) -> Result<Charge> {
        let unsent = self.app.unsent.of(&self.caller.client);
        let (bytes, most) = (items.saturating_mul(BYTES_PER_MOVE), unsent.most());
        if bytes <= most {
            return unsent.work(bytes);
        }
        let detail = format!(
            "the events have {items} items, whose change takes about {bytes} bytes of memory; the limit is \
             {most} (settings `unsent_bytes` and `client_share`)"
        );
        Err(ApiError::new(Code::TooMuchWork, detail))
    }

    pub(super) fn answer(&self, bytes: usize, answer: &impl Serialize) -> Result<Response> {
        let unsent = self.app.unsent.of(&self.caller.client);
        let mut written = unsent.answer(bytes)?;
        written.write_json(answer)?;
        let mut response = Response::new(Body::from(written.into_bytes()));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        self.way.mark(&mut response);
        Ok(response)
    }
}

/// Nanoseconds for visiting an item, and for one test of a filter.
const NANOS_PER_ITEM: u64 = 40;
const NANOS_PER_QUESTION: u64 = 20;

const NO_COLLECTION: &str = "there is no collection of this name; GET /collections lists them";

pub(crate) fn no_collection() -> ApiError {
    ApiError::new(Code::NotFound, NO_COLLECTION)
}

pub(crate) fn no_item() -> ApiError {
    ApiError::new(Code::NotFound, "the collection has no item of this name")
}

pub(crate) fn of_item(problem: &ItemProblem, of: impl Into<Pointer>) -> ApiError {
    let code = match (problem.too_long, problem.field) {
        (true, _) => Code::TextTooLong,
        (false, "/text") => Code::EmptyText,
        (false, _) => Code::InvalidField,
    };
    ApiError::at(code, Pointer::from(problem.field).within(of), problem.to_string())
}

pub(crate) fn other_text(of: impl Into<Pointer>) -> ApiError {
    let error = CollectionError::OtherText { index: 0 };
    ApiError::at(Code::OtherText, Pointer::from("/text").within(of), error.to_string())
}

pub(crate) fn of_filter(problem: &FilterProblem, at: &'static str) -> ApiError {
    let pointer = Pointer::parse(&problem.pointer).within(at);
    ApiError::at(Code::InvalidField, pointer, problem.what)
}

pub(super) fn of(error: &CollectionError, items: &'static str) -> ApiError {
    use CollectionError as Of;
    let told = |code| ApiError::new(code, error.to_string());
    // The other messages name files or hosts, which are for the log alone.
    let (code, detail) = match error {
        Of::Unknown => return no_collection(),
        Of::NoEvent => return told(Code::NotFound),
        Of::TooMany { .. } | Of::TooManyItems { .. } | Of::NoMemory { .. } => {
            return told(Code::CollectionFull);
        }
        Of::NoRoom { .. } => {
            let detail = format!("{error} to this key (setting `collection_bytes_per_key`)");
            return ApiError::new(Code::CollectionFull, detail);
        }
        Of::HandedOver => return told(Code::Draining),
        Of::ReadOnly => return told(Code::ReadOnly),
        Of::BadName => return ApiError::at(Code::InvalidField, "", error.to_string()),
        Of::TooManyChosen { .. } => {
            return ApiError::at(Code::TooMuchWork, "/collection", error.to_string());
        }
        Of::WouldDrop { .. } => {
            let detail = format!("{error}, so nothing was changed; with `?drop=true` they are");
            return ApiError::new(Code::WouldDrop, detail);
        }
        // Without a list the body is the item.
        Of::Item { problem, .. } if items.is_empty() => return of_item(problem, ""),
        Of::Item { index, problem } => {
            return of_item(problem, Pointer::from(items).index(*index));
        }
        Of::OtherText { index } => return other_text(Pointer::from(items).index(*index)),
        Of::EventChange { field, index, problem } => {
            let list = Pointer::from(*field);
            let at = index.map_or(list.clone(), |index| list.index(index));
            return ApiError::at(Code::InvalidField, at, *problem);
        }
        Of::Write { .. } => (
            Code::NotWritten,
            "the collection's log could not be written, so nothing was changed; the server's log says more \
             under this request id",
        ),
        Of::Unsynced { .. } => (
            Code::NotWritten,
            "the disk failed to keep what was written, so it is taken back, and may be there or not once the \
             server starts again; until then nothing is written. The server's log says more under this \
             request id",
        ),
        Of::Away { .. } => (
            Code::NotWritten,
            "the collection's files were deleted, moved, replaced or cut under the server, so nothing was \
             changed, and nothing is written until it starts again; the server's log says more under this \
             request id",
        ),
        Of::NotServed { .. } => (
            Code::NotReady,
            "the log of this collection cannot be read, so it is not served until it can be: a reload of the \
             server that writes takes it up then, and a replica does so by itself. The server's log says what \
             it needs. All others are served",
        ),
        Of::Unreachable { .. } => (
            Code::DatabaseUnavailable,
            "the database that keeps the collections cannot be reached; ask again",
        ),
        Of::Slow { .. } => (
            Code::DeadlineExceeded,
            "the database that keeps the collections takes longer than the server lets an answer take \
             (setting `compute_deadline_ms`); ask again",
        ),
        Of::Unwritable { .. } => (
            Code::NotWritten,
            "the database that keeps the collections takes nothing, so nothing was changed; the server's log \
             says more under this request id",
        ),
        Of::Uncertain { .. } => (
            Code::NotWritten,
            "the connection to the database was lost while it wrote, so what was to be written may be there \
             or not; write it again",
        ),
        Of::Read { .. }
        | Of::InUse { .. }
        | Of::Alive { .. }
        | Of::NoCollections { .. }
        | Of::Damaged { .. }
        | Of::NewerFormat { .. }
        | Of::NoLog { .. }
        | Of::NotSetUp { .. }
        | Of::Database { .. } => return ApiError::internal(&error.to_string()),
    };
    ApiError { cause: Some(error.to_string().into()), ..ApiError::new(code, detail) }
}

impl From<CollectionError> for ApiError {
    fn from(error: CollectionError) -> Self {
        of(&error, "")
    }
}

impl From<ChooseError> for ApiError {
    fn from(error: ChooseError) -> Self {
        match error {
            ChooseError::Collection(error) => error.into(),
            ChooseError::Query(error) => error.into(),
            ChooseError::Stopped => late(),
        }
    }
}

/// The error of a `/rank` question about a collection.
pub(crate) fn of_named(error: impl Into<ChooseError>) -> ApiError {
    match error.into() {
        ChooseError::Collection(CollectionError::Unknown) => {
            ApiError::at(Code::UnknownCollection, "/collection", NO_COLLECTION)
        }
        ChooseError::Collection(error) => of(&error, "/collection"),
        other => other.into(),
    }
}

/// Refuses a filter that would take longer over a collection's items than the deadline. A database
/// evaluates it itself, and is not asked for the number of items.
pub(crate) fn check_filter(app: &App, filter: &Filter, collection: &dyn Collection) -> Result<()> {
    let questions = filter.questions() as u64;
    if questions == 0 || app.collections.is_remote() {
        return Ok(());
    }
    let items = collection.told(cognate_collections::now())?.items;
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

pub(crate) enum MatchRefusal {
    /// The collection has another text under the name of the text at this index.
    OtherText(usize),
    /// No collection accepts the item at this index.
    Item(usize, ItemProblem),
    Other(ApiError),
}

impl From<ApiError> for MatchRefusal {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl From<ChooseError> for MatchRefusal {
    fn from(error: ChooseError) -> Self {
        match error {
            ChooseError::Collection(CollectionError::OtherText { index }) => Self::OtherText(index),
            ChooseError::Collection(CollectionError::Item { index, problem }) => {
                Self::Item(index, problem)
            }
            ChooseError::Collection(error) => Self::Other(of(&error, "/items")),
            other => Self::Other(other.into()),
        }
    }
}

/// Turns the refusal of a list of texts into an error; `place` returns an item's index in the body.
pub(crate) fn of_match(refusal: MatchRefusal, place: impl Fn(usize) -> usize) -> ApiError {
    let at = |index| Pointer::from("/items").index(place(index));
    match refusal {
        MatchRefusal::OtherText(index) => other_text(at(index)),
        MatchRefusal::Item(index, problem) => of_item(&problem, at(index)),
        MatchRefusal::Other(error) => error,
    }
}
