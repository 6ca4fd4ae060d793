//! `PUT`, `GET` and `DELETE /collections/{name}`: makes, describes and deletes a collection.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::response::Response;
use cognate_collections::{CollectionError, SettingsChange};
use cognate_files::instant;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::api::collections::answers::CollectionEntry;
use crate::http::api::collections::call;
use crate::http::api::collections::call::{Call, Named};
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::{BODY, COLLECTION, WRITE, refusals};
use crate::http::request::fields::Items;
use crate::http::request::json;
use crate::http::request::json::given;

/// The body of `PUT /collections/{name}`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectionRequest {
    /// Most items: of more the oldest leave. Without one a full collection takes no more.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Items>)]
    max_items: Option<Option<Items>>,
    /// Items whose time is further back than this leave: `30s`, `15m`, `24h`, `7d`, by the collection's
    /// clock, which is behind the server's by the smallest delay of any item.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, pattern = "^[0-9]+[smhd]$")]
    ttl: Option<Option<String>>,
}

impl CollectionRequest {
    fn change(&self, drop: bool) -> Result<SettingsChange> {
        let span = |ttl: &String| {
            instant::lasting_span(ttl).ok_or_else(|| {
                let detail = format!("expected {}", instant::LASTING_SPANS);
                ApiError::at(Code::InvalidField, "/ttl", detail)
            })
        };
        let ttl = self.ttl.as_ref().map(|ttl| ttl.as_ref().map(span).transpose());
        let max_items = self.max_items.map(|most| most.map(|Items(most)| most));
        Ok(SettingsChange { max_items, ttl_ms: ttl.transpose()?, drop })
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SetParameters {
    /// Whether items may be deleted that are beyond the new settings.
    #[serde(default)]
    drop: bool,
}

refusals!(SetRefusals: BODY, &[Code::CollectionFull, Code::WouldDrop], WRITE);

/// Creates a collection, or changes the settings of the existing one.
///
/// What the body does not name stays, so that `{}` changes nothing; `null` takes a bound away. What would
/// delete items is refused and tells how many, unless `drop=true` says that they may go.
///
/// Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    put,
    path = "/collections/{name}",
    tag = "collections",
    operation_id = "set_collection",
    params(
        ("name" = String, Path, description = "At most 64 of a-z, 0-9, `.`, `_` and `-`, the first a letter or digit"),
        SetParameters,
    ),
    request_body = CollectionRequest,
    responses((status = 200, description = "The collection", body = CollectionEntry), SetRefusals),
)]
pub(crate) async fn set(
    mut call: Call,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response> {
    let Path(name) = name.map_err(|_| call::no_collection())?;
    let app = Arc::clone(&call.app);
    app.collections.of(&call.caller)?.check_name(&name)?;
    let SetParameters { drop } = json::read_query(request.uri())?;
    let body = call.json_body(request).await?;
    let change = json::read_object::<CollectionRequest>(&body)?.change(drop)?;
    let (now, asked) = (cognate_collections::now(), name.clone());
    let turn = call.turn(&name).await?;
    let made = call.aside(move |call| {
        let _turn = turn;
        let collections = call.app.collections.of(&call.caller)?;
        collections.check_another(&name)?;
        let (collection, _) = collections.set(&name, change, now).map_err(|error| match error {
            CollectionError::TooManyItems { wanted, limit } => {
                let what = "items (setting `collection_items`)";
                ApiError::beyond(Code::OutOfRange, "/max_items", what, limit, wanted)
            }
            error => error.into(),
        })?;
        call.answer(0, &CollectionEntry::from(collection.told(now)?))
    });
    made.await.inspect_err(|error| app.metrics.write_refused(&asked, error))
}

refusals!(LookRefusals: COLLECTION);

/// Describes a collection: its settings, and how large it is.
///
/// What its items take in memory, and on the disk where they are kept there.
#[utoipa::path(
    get,
    path = "/collections/{name}",
    tag = "collections",
    operation_id = "collection",
    params(("name" = String, Path, description = "The collection")),
    responses((status = 200, description = "The collection", body = CollectionEntry), LookRefusals),
)]
pub(crate) async fn look(Named { call, collection, .. }: Named) -> Result<Response> {
    call.look_up(move |call| {
        call.answer(0, &CollectionEntry::from(collection.told(cognate_collections::now())?))
    })
    .await
}

refusals!(DeleteRefusals: WRITE, COLLECTION);

/// Deletes a collection with its items, and returns what it was.
///
/// Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    delete,
    path = "/collections/{name}",
    tag = "collections",
    operation_id = "delete_collection",
    params(("name" = String, Path, description = "The collection")),
    responses((status = 200, description = "What was deleted", body = CollectionEntry), DeleteRefusals),
)]
pub(crate) async fn delete(Named { call, collection, .. }: Named) -> Result<Response> {
    call.check_writes()?;
    let turn = call.turn(collection.name()).await?;
    call.aside(move |call| {
        let _turn = turn;
        let told = collection.told(cognate_collections::now())?;
        call.app.collections.of(&call.caller)?.delete(collection.name())?;
        call.answer(0, &CollectionEntry::from(told))
    })
    .await
}
