//! `GET /collections`: every collection.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::collection;
use crate::http::api::collections::answers::CollectionList;
use crate::http::api::collections::call;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::openapi::refusals::refusals;

refusals!(ListRefusals: &[Code::ResponseTooLarge, Code::Overloaded]);

/// Every collection, by name.
#[utoipa::path(
    get,
    path = "/collections",
    tag = "collections",
    operation_id = "collections",
    responses((status = 200, description = "Every collection", body = CollectionList), ListRefusals),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let now = collection::now();
    let all = app.collections.all().into_iter().map(|one| one.told(now).into());
    call::answer(&app, 0, &CollectionList { collections: all.collect() })
}
