//! What a collection refuses, as a request is refused.

use crate::collection::CollectionError;
use crate::collection::FilterProblem;
use crate::collection::ItemProblem;
use crate::collection::MatchError;
use crate::http::error::ApiError;
use crate::http::error::Code;

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
            not_written(error, detail)
        }
        CollectionError::Unsynced { .. } => {
            let detail = "the disk failed to keep what was written, so it is taken back, and may be \
                          there or not once the server starts again; until then nothing is written. \
                          The server's log says more under this request id";
            not_written(error, detail)
        }
        CollectionError::Read { .. }
        | CollectionError::InUse { .. }
        | CollectionError::Damaged { .. } => ApiError::internal(&error.to_string()),
    }
}

/// The refusal of what a disk does not take. Files are named in the log alone.
fn not_written(error: &CollectionError, detail: &'static str) -> ApiError {
    let cause = Some(error.to_string().into());
    ApiError { cause, ..ApiError::new(Code::NotWritten, detail) }
}

/// The refusal of texts that cannot be matched.
pub(crate) fn of_match(error: MatchError) -> ApiError {
    match error {
        MatchError::Collection(error) => of(&error, "/items"),
        MatchError::Query(error) => error.into(),
    }
}
