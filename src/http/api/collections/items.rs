//! `POST`, `GET` and `DELETE /collections/{name}/items`: items written, listed and deleted.

use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;
use cognate_collections::{Cancellation, Incoming, Item, Page, UnknownNames, Write};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::http::api::collections::answers::{Against, Changed, ItemEntry, ItemList};
use crate::http::api::collections::call::Named;
use crate::http::api::collections::{call, item};
use crate::http::api::{pipeline, stream};
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::openapi::refusals::{BODY, COLLECTION, WRITE, refusals};
use crate::http::request::fields::{CandidateId, List, described};
use crate::http::request::{body, json};

pub(super) const MAX_LISTED: usize = 1000;
pub(super) const LISTED: usize = 100;

/// An item as a request writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct ItemRequest(pub(crate) Incoming);

/// An item.
#[derive(Deserialize, ToSchema)]
#[allow(dead_code)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
struct ItemFields<'b> {
    /// The item's id, at most 256 bytes; a whole number stands for its digits.
    id: CandidateId<'b>,
    /// The text.
    #[schema(min_length = 1)]
    text: String,
    /// The time when the text was written: RFC 3339, `YYYY-MM-DD HH:MM:SS` or a day alone, seconds or
    /// milliseconds since 1970. Without it the moment in which it is added.
    time: Option<String>,
    /// Attributes for filters, at most 32: strings, numbers, booleans.
    #[schema(value_type = Option<Object>)]
    attributes: Option<()>,
    /// An object of the caller's own, at most 4096 bytes as written, that comes back as it was written.
    #[schema(value_type = Option<Object>)]
    data: Option<()>,
    /// The item's event, if the item was matched in another collection: the event's name, or what
    /// `cognate collection export` wrote. Texts to be matched must not have it.
    event: Option<item::EventField>,
}

described!(ItemRequest as ItemFields<'_>);

/// The body of `POST /collections/{name}/items`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct ItemsRequest<'b> {
    /// The items; each replaces the item with the same `id`.
    #[schema(value_type = Vec<ItemRequest>, min_items = 1, max_items = 10000)]
    items: List<&'b RawValue>,
}

pub(super) fn item_at((at, written): (usize, &&RawValue)) -> Result<Incoming> {
    let read = json::read_part(written).map(|ItemRequest(item)| item);
    read.map_err(|error| error.renamed(|pointer| pointer.within(Pointer::from("/items").index(at))))
}

/// Parses the items of a body, after counting them; those without a time get the current time.
pub(super) fn parse(
    body: &[u8],
    (text_bytes, max_texts): (usize, usize),
    pay: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<Item>> {
    let ItemsRequest { items } = json::read_object(body)?;
    pipeline::check_length("/items", "items", items.length, ("max_texts", max_texts))?;
    let each = items.items.iter().enumerate().map(item_at);
    item::parse(
        each,
        (items.length, text_bytes),
        cognate_collections::now(),
        pay,
        |at, _, problem| Err(call::of_item(problem, Pointer::from("/items").index(at))),
    )
}

refusals!(
    PutRefusals: BODY,
    &[Code::EmptyText, Code::TextTooLong, Code::EmptyList, Code::TooManyItems, Code::CollectionFull],
    WRITE, COLLECTION
);

/// Adds items to a collection.
///
/// An item replaces the item with the same `id`. When this is answered they outlive a crash, if the
/// collection is durable. Items of a JSON body are added all or none. A body of `application/x-ndjson`
/// is a stream of any length, an item a line, that is added as it comes: a line that is no item is
/// answered by a line with its `error`, and the others are added; the last line tells the counts of
/// all. Where a last line is an `error` the stream ended there: what stands before that line was added.
/// Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    post,
    path = "/collections/{name}/items",
    tag = "collections",
    operation_id = "put_items",
    params(("name" = String, Path, description = "The collection")),
    request_body(content(
        (ItemsRequest<'_> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "What came of it", content(
            (Changed = "application/json"),
            (String = "application/x-ndjson"),
        )),
        PutRefusals,
    ),
)]
pub(crate) async fn put(
    Named { mut call, collection, .. }: Named,
    request: Request,
) -> Result<Response> {
    if body::is_lines(request.headers()) {
        call.check_writes()?;
        // If the collection accepts no writes, the error comes before a line is read.
        call.write(&collection, Write::Put(Vec::new()), "/items").await?;
        let against = Against::new(call, collection);
        return stream::items::answer(stream::items::Change::Put, against, request);
    }
    let body = call.json_body(request).await?;
    let limits = (collection.limits().text_bytes, call.app.settings.max_texts);
    let (mut call, items) = call.read_items(move |pay| parse(&body, limits, pay)).await?;
    let applied = call.write(&collection, Write::Put(items), "/items").await?;
    call.answer(0, &Changed::from(applied))
}

refusals!(
    PatchRefusals:
    &[Code::InvalidField, Code::UnsupportedMediaType, Code::UnsupportedEncoding], WRITE, COLLECTION
);

/// Changes attributes, data or time of items.
///
/// The body is a stream of any length, a line an item: its `id`, and what `PATCH` of the one item takes. A line
/// whose item is not there, or that cannot be applied, is answered by a line with its `error`, and the others
/// are applied; the last line tells the counts of all. Needs a key of the scope `collection`, where keys are
/// set.
#[utoipa::path(
    patch,
    path = "/collections/{name}/items",
    tag = "collections",
    operation_id = "patch_items",
    params(("name" = String, Path, description = "The collection")),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "What came of it", body = String, content_type = "application/x-ndjson"),
        PatchRefusals,
    ),
)]
pub(crate) async fn patch(
    Named { mut call, collection, .. }: Named,
    request: Request,
) -> Result<Response> {
    if !body::is_lines(request.headers()) {
        return Err(body::unsupported("application/x-ndjson"));
    }
    call.check_writes()?;
    // If the collection accepts no writes, the error comes before a line is read.
    call.write(&collection, Write::Patch(Vec::new()), "").await?;
    let against = Against::new(call, collection);
    stream::items::answer(stream::items::Change::Patch, against, request)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ItemsParameters {
    /// A filter as `/rank` has it, as JSON: `{"lang": "en"}`.
    filter: Option<String>,
    /// Only items of the event of this name.
    event: Option<String>,
    /// Only items whose time is no further back than this, as `24h`, by the collection's clock.
    within: Option<String>,
    /// Most items, at most 1000; default: 100.
    #[param(maximum = 1000)]
    limit: Option<usize>,
    /// How many of the first are skipped.
    #[param(maximum = 18446744073709551615_u64)]
    offset: Option<usize>,
}

refusals!(
    ListRefusals:
    &[Code::InvalidField, Code::OutOfRange, Code::ResponseTooLarge, Code::TooMuchWork], COLLECTION
);

/// Lists the items of a collection, in the order in which they were added.
///
/// A page of those that a filter, an event or a span of time selects; all of them without one.
#[utoipa::path(
    get,
    path = "/collections/{name}/items",
    tag = "collections",
    operation_id = "items",
    params(("name" = String, Path, description = "The collection"), ItemsParameters),
    responses((status = 200, description = "The items", body = ItemList<'_>), ListRefusals),
)]
pub(crate) async fn list(Named { call, collection, .. }: Named, uri: Uri) -> Result<Response> {
    let asked: ItemsParameters = json::read_query(&uri)?;
    let limit = call::page_length(asked.limit, LISTED, MAX_LISTED, "items")?;
    let which = call::selector(asked.filter, asked.event, asked.within)?;
    let (now, offset) = (cognate_collections::now(), asked.offset.unwrap_or(0));
    call.compute(move |call, work| {
        call::check_filter(&call.app, &which.filter, &*collection)?;
        let (page, cancel) = (Page { offset, limit }, Cancellation::when(work));
        let (items, total) = collection.page(&which, page, now, cancel)?;
        let unknown = UnknownNames::find(&*collection, &which.filter, (None, None), now, cancel)?;
        let (filter_unknown, filter_mistyped) = (unknown.filter, unknown.mistyped);
        let bytes = items.iter().map(|item| item.bytes()).sum();
        let items = items.iter().map(|item| ItemEntry::from(item.as_ref())).collect();
        call.answer(bytes, &ItemList { items, total, filter_unknown, filter_mistyped })
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteParameters {
    /// A filter as `/rank` has it, as JSON: `{"lang": "en"}`.
    filter: Option<String>,
    /// Only items of the event of this name.
    event: Option<String>,
    /// Only items whose time is no further back than this, as `24h`, by the collection's clock.
    within: Option<String>,
    /// Whether all items may be meant, as they are where nothing else is said.
    #[serde(default)]
    all: bool,
}

refusals!(DeleteRefusals: &[Code::InvalidField, Code::TooMuchWork], WRITE, COLLECTION);

/// Removes from a collection all items that `GET` with the same parameters lists, or none.
///
/// Without a filter, an event or `within` it needs `all=true`. Needs a key of the scope `collection`,
/// where keys are set.
#[utoipa::path(
    delete,
    path = "/collections/{name}/items",
    tag = "collections",
    operation_id = "delete_items",
    params(("name" = String, Path, description = "The collection"), DeleteParameters),
    responses((status = 200, description = "What came of it", body = Changed), DeleteRefusals),
)]
pub(crate) async fn delete(
    Named { mut call, collection, .. }: Named,
    uri: Uri,
) -> Result<Response> {
    call.check_writes()?;
    let asked: DeleteParameters = json::read_query(&uri)?;
    let which = call::selector(asked.filter, asked.event, asked.within)?;
    let is_everything = which.filter.is_empty() && which.event.is_none() && which.within.is_none();
    if is_everything && !asked.all {
        let detail = "this would take out every item; say which by `filter`, `event` or `within`, or \
                      `all=true`";
        return Err(ApiError::at(Code::InvalidField, "/filter", detail));
    }
    let applied = call.remove(&collection, which).await?;
    call.answer(0, &Changed::from(applied))
}
