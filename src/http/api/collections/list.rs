//! `GET /collections`: every collection.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use cognate_collections::Told;

use crate::http::api::collections::answers::{CollectionEntry, CollectionList};
use crate::http::api::collections::{call, refusal};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code};
use crate::http::openapi::refusals::refusals;

refusals!(ListRefusals: &[Code::Forbidden, Code::ResponseTooLarge, Code::DatabaseUnavailable, Code::DeadlineExceeded, Code::Overloaded]);

/// Every collection that the key reaches, by name.
#[utoipa::path(
    get,
    path = "/collections",
    tag = "collections",
    operation_id = "collections",
    responses((status = 200, description = "Every collection", body = CollectionList), ListRefusals),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Response, ApiError> {
    let (app_of, by) = (Arc::clone(&app), caller.clone());
    let all = call::look_up((&app, &caller), move || {
        let (all, now) = (app_of.collections.of(&by)?.all(), cognate_collections::now());
        let told = all.and_then(|all| all.iter().map(|one| one.told(now)).collect());
        told.map_err(|error| refusal::of(&error, ""))
    });
    let all: Vec<Told> = all.await?;
    let collections = all.into_iter().map(CollectionEntry::from).collect();
    call::answer(&app, &caller, 0, &CollectionList { collections })
}
