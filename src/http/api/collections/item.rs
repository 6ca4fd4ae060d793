//! `GET`, `PUT`, `PATCH` and `DELETE /collections/{name}/items/{id}`: one item.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;
use cognate_collections::{
    Attributes, Cancellation, Collection, Id, Incoming, IncomingEvent, Item, ItemPatch,
    ItemProblem, Matched, SharedEngine, Time, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::http::api::collections::answers::{Changed, ItemEntry, MatchedEntry};
use crate::http::api::collections::call;
use crate::http::api::collections::call::{Call, MatchRefusal, Named};
use crate::http::api::collections::match_options::{MatchParameters, Matching, REASON_BYTES};
use crate::http::app::App;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::{BODY, COLLECTION, WRITE, refusals};
use crate::http::request::fields::described;
use crate::http::request::json;
use crate::http::work::admission::Permit;

/// The path of an item.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
struct ItemPath {
    /// The collection
    name: String,
    /// The item
    id: String,
}

/// An item, and the answer that a match would give.
#[derive(Debug, Serialize, ToSchema)]
struct ItemLook<'i> {
    #[serde(flatten)]
    item: ItemEntry<'i>,
    /// With `explain`, the answer of a match by the items before it that are still there. `event` of the item
    /// is the event of its own match, or the event it was moved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<MatchedEntry<'i>>,
}

refusals!(
    LookRefusals: COLLECTION,
    &[Code::InvalidField, Code::OutOfRange, Code::UnknownModel, Code::UnknownMethod, Code::MethodOnlyRanks],
    &[Code::MethodUnavailable, Code::MethodCannotEmbed, Code::NotCalibrated, Code::CollectionFull],
    &[Code::ResponseTooLarge, Code::TooMuchWork]
);

/// Returns an item of a collection.
///
/// With `explain=true` and the settings of a match the answer says why the item has its event: the nearest
/// items before it, their events, and the words that it shares. `add` and `replace` have no effect.
#[utoipa::path(
    get,
    path = "/collections/{name}/items/{id}",
    tag = "collections",
    operation_id = "item",
    params(ItemPath, MatchParameters),
    responses((status = 200, description = "The item", body = ItemLook<'_>), LookRefusals),
)]
pub(crate) async fn look(Named { call, collection, id }: Named, uri: Uri) -> Result<Response> {
    let asked: MatchParameters = json::read_query(&uri)?;
    // Options out of range are refused although nothing is explained.
    let matching = uri.query().map(|_| asked.matching(&call.app.models())).transpose()?;
    let Some(Matching { resolved, how }) = matching.filter(|matching| matching.how.explain) else {
        return call.look_up(move |call| look_at(&call, &*collection, &id, None)).await;
    };
    call.compute(move |call, work| {
        call::check_filter(&call.app, &how.filter, &*collection)?;
        let (cancel, now) = (Cancellation::when(work), cognate_collections::now());
        let engine = SharedEngine::share(Arc::clone(&resolved.model));
        let matched = collection.explain(engine, &how, &id, now, cancel);
        let refused = |error| call::of_match(MatchRefusal::from(error), |index| index);
        let matched = matched.map_err(refused)?.ok_or_else(call::no_item)?;
        look_at(&call, &*collection, &id, Some(&matched))
    })
    .await
}

fn look_at(
    call: &Call,
    collection: &dyn Collection,
    id: &str,
    matched: Option<&Matched>,
) -> Result<Response> {
    let found = collection.find(&[id], cognate_collections::now())?;
    let item = found.into_iter().next().flatten().ok_or_else(call::no_item)?;
    let near = matched.and_then(|matched| matched.reasons.as_ref());
    let bytes = item.bytes() + near.map_or(0, |near| near.nearest.len() * REASON_BYTES);
    let matched = matched.map(|matched| MatchedEntry::new(id, matched));
    call.answer(bytes, &ItemLook { item: item.as_ref().into(), matched })
}

/// An event: its name, or all that is stored of it.
#[derive(Deserialize, ToSchema)]
#[allow(dead_code)]
#[serde(untagged)]
pub(super) enum EventField {
    Name(String),
    Whole(#[schema(inline)] WholeEvent),
}

/// What is stored of an event with an item.
#[derive(Deserialize, ToSchema)]
#[allow(dead_code)]
#[serde(deny_unknown_fields)]
pub(super) struct WholeEvent {
    /// The item that it began with.
    id: String,
    /// The number of items when this item joined, with this item.
    #[schema(minimum = 1)]
    size: u64,
    /// The event's score for this item.
    score: Option<f32>,
    /// The item that says the same.
    duplicate_of: Option<String>,
    /// The event that this item was moved out of.
    moved_from: Option<String>,
    /// The time of the merge that moved the item; only beside `moved_from`.
    moved_at: Option<i64>,
    /// Whether the event began to burst with this item.
    #[serde(default)]
    bursts: bool,
}

/// The body of `PUT /collections/{name}/items/{id}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneItemRequest {
    /// The text.
    #[schema(value_type = String, min_length = 1)]
    text: Box<str>,
    /// The time when the text was written, in any form that `POST …/items` reads.
    #[schema(value_type = Option<String>)]
    time: Option<Time>,
    /// Attributes for filters.
    #[schema(value_type = Option<Object>)]
    attributes: Option<Attributes>,
    /// An object of the caller's own.
    #[schema(value_type = Option<Object>)]
    data: Option<Box<RawValue>>,
    /// The event that it belongs to, where it was matched in another collection.
    #[schema(value_type = Option<EventField>)]
    event: Option<IncomingEvent>,
}

refusals!(
    PutRefusals: BODY, &[Code::EmptyText, Code::TextTooLong, Code::CollectionFull], WRITE, COLLECTION
);

/// Adds an item, or replaces the item with the same `id`.
///
/// Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    put,
    path = "/collections/{name}/items/{id}",
    tag = "collections",
    operation_id = "put_item",
    params(ItemPath),
    request_body = OneItemRequest,
    responses((status = 200, description = "What came of it", body = Changed), PutRefusals),
)]
pub(crate) async fn put(
    Named { mut call, collection, id }: Named,
    request: Request,
) -> Result<Response> {
    let body = call.json_body(request).await?;
    let OneItemRequest { text, time, attributes, data, event } = json::read_object(&body)?;
    let now = cognate_collections::now();
    let item = Incoming { id: Id(id), text, time, attributes, data, event }.into_item(now);
    let applied = call.write(&collection, Write::Put(vec![item]), "").await?;
    call.answer(0, &Changed::from(applied))
}

/// What changes of an item, as a JSON merge patch (RFC 7396): `null` removes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ItemPatchRequest(ItemPatch);

/// The body of `PATCH /collections/{name}/items/{id}`.
#[derive(Deserialize, ToSchema)]
#[allow(dead_code)]
#[serde(deny_unknown_fields)]
struct ItemPatchFields {
    /// The time when the text was written, in any form that `POST …/items` reads.
    #[schema(nullable = false)]
    time: Option<String>,
    /// Attributes that are set, or taken out where they are `null`; others stay. `null` takes out all.
    #[schema(value_type = Option<Object>)]
    attributes: Option<()>,
    /// What changes of the object of the caller's own, at any depth; `null` removes it.
    #[schema(value_type = Option<Object>)]
    data: Option<()>,
}

described!(ItemPatchRequest as ItemPatchFields);

refusals!(PatchRefusals: BODY, &[Code::TextTooLong, Code::CollectionFull], WRITE, COLLECTION);

/// Changes attributes, data or time of an item; text, event and position stay.
///
/// The body is a JSON merge patch, and is taken as `application/json` and as
/// `application/merge-patch+json`. Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    patch,
    path = "/collections/{name}/items/{id}",
    tag = "collections",
    operation_id = "patch_item",
    params(ItemPath),
    request_body = ItemPatchRequest,
    responses((status = 200, description = "What came of it", body = Changed), PatchRefusals),
)]
pub(crate) async fn patch(
    Named { mut call, collection, id }: Named,
    request: Request,
) -> Result<Response> {
    let body = call.json_body(request).await?;
    let ItemPatchRequest(patch) = json::read_object(&body)?;
    let applied = call.write(&collection, Write::Patch(vec![(id, patch)]), "").await?;
    if applied.patched == 0 {
        return Err(call::no_item());
    }
    call.answer(0, &Changed::from(applied))
}

refusals!(DeleteRefusals: WRITE, COLLECTION);

/// Removes an item from a collection.
///
/// Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    delete,
    path = "/collections/{name}/items/{id}",
    tag = "collections",
    operation_id = "delete_item",
    params(ItemPath),
    responses((status = 200, description = "What came of it", body = Changed), DeleteRefusals),
)]
pub(crate) async fn delete(Named { mut call, collection, id }: Named) -> Result<Response> {
    call.check_writes()?;
    let applied = call.write(&collection, Write::Remove(vec![id]), "").await?;
    if applied.removed == 0 {
        return Err(call::no_item());
    }
    call.answer(0, &Changed::from(applied))
}

/// Bytes of memory of items that a unit pays for. Items with many attributes take ten times as much
/// memory as they have bytes.
const BYTES_PER_UNIT: usize = 1024;

/// Parses `count` items with texts of at most `text_bytes` bytes. Items without a time get `now`;
/// items that no collection accepts are left out if `refuse` returns no error. As soon as the items
/// have taken more than one unit each, `pay` is called for the units that all of them will take at
/// that rate.
pub(super) fn parse(
    each: impl Iterator<Item = Result<Incoming>>,
    (count, text_bytes): (usize, usize),
    now: i64,
    mut pay: impl FnMut(usize) -> Result<()>,
    mut refuse: impl FnMut(usize, Box<str>, &ItemProblem) -> Result<()>,
) -> Result<Vec<Item>> {
    let (mut items, mut bytes, mut paid) = (Vec::with_capacity(count), 0_usize, count);
    for (at, incoming) in each.enumerate() {
        let item = incoming?.into_item(now);
        if let Err(problem) = item.check(text_bytes) {
            refuse(at, item.id, &problem)?;
            continue;
        }
        bytes += item.bytes();
        if bytes / BYTES_PER_UNIT > paid {
            paid = bytes.saturating_mul(count) / (at + 1) / BYTES_PER_UNIT + 1;
            pay(paid)?;
        }
        items.push(item);
    }
    Ok(items)
}

/// Pays for `units` units, less one unit per item, which is paid for already.
pub(super) fn pay_beside(
    app: &App,
    more: &mut Option<Permit>,
    units: usize,
    items: usize,
) -> Result<()> {
    let permit = match more {
        Some(permit) => permit,
        none => none.insert(app.admission.admit()?),
    };
    app.admission.top_up(permit, units.saturating_sub(items))
}
