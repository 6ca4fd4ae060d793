//! What a collection refuses, as a request is refused.

use std::time::Duration;

use cognate_collections::{
    ChooseError, CollectionError, Filter, FilterProblem, ItemProblem, MatchError,
};

use crate::http::api::plan::SLACK;
use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::work::pool::JobContext;

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

/// The refusal of an item; `of` points to it in the body.
pub(crate) fn of_item(problem: &ItemProblem, of: &str) -> ApiError {
    let code = match (problem.too_long, problem.field) {
        (true, _) => Code::TextTooLong,
        (false, "/text") => Code::EmptyText,
        (false, _) => Code::InvalidField,
    };
    ApiError::at(code, format!("{of}{}", problem.field), problem.to_string())
}

/// The refusal of a filter, which stands at `at`.
pub(crate) fn of_filter(problem: &FilterProblem, at: &str) -> ApiError {
    ApiError::at(Code::InvalidField, format!("{at}{}", problem.pointer), problem.what)
}

/// The refusal of what a collection cannot do, of items that stand under `items`.
pub(super) fn of(error: &CollectionError, items: &str) -> ApiError {
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
        CollectionError::Item { index, problem } => of_item(problem, &format!("{items}/{index}")),
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
        CollectionError::OtherWriter { .. } => {
            let detail = "another server writes to this collection, or did so until some seconds ago, \
                          so nothing was changed; send what is to be written to that server, or \
                          here once it has written nothing for some time";
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
        | CollectionError::Damaged { .. }
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

/// The refusal of a question to `/rank` about what a collection cannot do.
pub(crate) fn of_named(error: &CollectionError) -> ApiError {
    match error {
        CollectionError::Unknown => {
            let detail = "there is no collection of this name; GET /collections lists them";
            ApiError::at(Code::UnknownCollection, "/collection", detail)
        }
        other => of(other, "/collection"),
    }
}

/// The refusal of items that cannot be chosen. Why they are not wanted any more is for the job to say.
pub(crate) fn of_choice(
    error: ChooseError,
    of: impl FnOnce(&CollectionError) -> ApiError,
    work: &JobContext,
) -> ApiError {
    match error {
        ChooseError::Collection(error) => of(&error),
        ChooseError::Query(error) => error.into(),
        ChooseError::Stopped => {
            let stopped = || ApiError::new(Code::DeadlineExceeded, error.to_string());
            work.check().err().unwrap_or_else(stopped)
        }
    }
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

/// The refusal of texts that cannot be matched.
pub(crate) fn of_match(error: MatchError) -> ApiError {
    match error {
        MatchError::Collection(error) => of(&error, "/items"),
        MatchError::Query(error) => error.into(),
    }
}
