//! What requests that write to collections have in common: a body that is paid for and read, work that
//! may wait for a disk, an answer within the memory of unsent answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request};
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use cognate_collections::{Applied, Collection, CollectionError, Write};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::http::api::collections::refusal;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code};
use crate::http::middleware::authorize;
use crate::http::observe::facts::Facts;
use crate::http::request::body;
use crate::http::work::admission::Permit;
use crate::http::work::file_threads::Unfinished;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;

/// Bytes of a body that count as an item before the items are counted.
const BYTES_PER_ITEM: usize = 128;
/// How long a disk is waited for.
const DISK_PATIENCE: Duration = Duration::from_secs(10);

/// What the path of a collection or an item says; a path that is not UTF-8 names nothing.
pub(super) type Named<T> = Result<Path<T>, axum::extract::rejection::PathRejection>;

/// The collection of a path, if the caller reaches it.
pub(super) fn collection(
    app: &App,
    caller: &Caller,
    name: Named<String>,
) -> Result<Arc<dyn Collection>, ApiError> {
    let Path(name) = name.map_err(|_| refusal::no_collection())?;
    app.collections.of(caller)?.get(&name).map_err(|_| refusal::no_collection())
}

/// The collection and the item's name of a path.
pub(super) fn item(
    app: &App,
    caller: &Caller,
    names: Named<(String, String)>,
) -> Result<(Arc<dyn Collection>, String), ApiError> {
    let Path((name, id)) = names.map_err(|_| refusal::no_item())?;
    let collection = app.collections.of(caller)?.get(&name);
    Ok((collection.map_err(|_| refusal::no_collection())?, id))
}

/// The settings of a query string that may hold these names.
pub(super) fn settings<T: DeserializeOwned>(uri: &Uri, names: &str) -> Result<T, ApiError> {
    let Query(settings) = Query::<T>::try_from_uri(uri).map_err(|_| {
        ApiError::at(Code::InvalidField, "", format!("the query string may hold {names}"))
    })?;
    Ok(settings)
}

/// The body of a request that may write, and the units that it holds while it is answered.
pub(super) async fn body(app: &App, request: Request) -> Result<(Permit, Bytes), ApiError> {
    authorize::check_writes(&request)?;
    let facts = Facts::of(&request);
    let client = Caller::of(request.extensions())?.client;
    let mut permit = app.admission.admit_soon(&client).await?;
    let items = |bytes: usize| (bytes / BYTES_PER_ITEM).min(app.settings.max_texts);
    if let Some(bytes) = body::announced(request.headers(), &app.settings)? {
        app.admission.top_up_soon(&mut permit, items(bytes)).await?;
    }
    let body =
        body::read(request, &app.settings, |bytes| app.admission.top_up(&mut permit, items(bytes)));
    let body = body.await?;
    facts.brings(body.len());
    Ok((permit, body))
}

/// Does what takes long on a thread that computes, or that may wait for the database: until its
/// deadline, or until nobody waits for the answer.
pub(super) async fn compute<T: Send + 'static>(
    (app, caller): (&App, &Caller),
    work: impl FnOnce(&JobContext) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let deadline = Instant::now() + Duration::from_millis(app.settings.compute_deadline_ms);
    let threads = app.pool(app.collections.is_remote());
    threads.run(&caller.client, deadline, &app.metrics, work).await?
}

/// Looks something up: in memory, behind those who change it, and never on a disk; or where a database
/// may be waited for.
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

/// Does what waits for a disk or a database that is written to.
pub(super) async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    app.writers.run_within(DISK_PATIENCE, work).await.unwrap_or_else(|unfinished| {
        Err(match unfinished {
            Unfinished::NotBegun => {
                let detail = "others wait for the disk that keeps the collections, so nothing was \
                              changed; ask again";
                ApiError::new(Code::DeadlineExceeded, detail)
            }
            Unfinished::GoesOn => {
                let detail = "the disk that keeps the collections has not written in 10 s what it was \
                              given, so that it may be there or not; write it again";
                ApiError::new(Code::NotWritten, detail)
            }
            Unfinished::Failed(error) => ApiError::internal(&error.to_string()),
        })
    })
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
    let of_app = Arc::clone(app);
    let work = move || {
        let now = cognate_collections::now();
        if let Write::Put(items) = &wanted {
            of_app.collections.of(&caller)?.check_room(&*collection, items, now)?;
        }
        let written = collection.write(wanted, now);
        drop(turn);
        let (applied, pending) = written.map_err(|error| refused(&error))?;
        collection.settle(pending).map_err(|error| refused(&error))?;
        Ok(applied)
    };
    aside(app, work).await
}

/// An answer to a caller, of about so many bytes.
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
