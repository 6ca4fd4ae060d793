//! Whether the server lives, whether it is ready, what it counted, and the order to load its
//! models again. None of these waits behind requests that compute.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::middleware::authorize;
use crate::http::openapi::refusals::refusals;
use crate::http::registry::models::Reloaded;

/// A short word on the server's state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Status {
    /// `ok` or `ready`.
    status: &'static str,
    /// Collections that are not served because their logs cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged_collections: Option<usize>,
}

/// Whether the process lives. Also under `/livez` and `/healthz`.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operate",
    responses((status = 200, description = "The process lives", body = Status)),
)]
pub(crate) async fn health() -> Json<Status> {
    Json(Status { status: "ok", damaged_collections: None })
}

refusals!(ReadyRefusals: &[Code::NotReady, Code::Draining]);

/// Whether requests are welcome. Also under `/readyz`.
#[utoipa::path(
    get,
    path = "/ready",
    tag = "operate",
    responses((status = 200, description = "The models are loaded", body = Status), ReadyRefusals),
)]
pub async fn ready(State(app): State<Arc<App>>) -> Result<Json<Status>, ApiError> {
    app.check_ready()?;
    let damaged = app.collections.damaged();
    Ok(Json(Status {
        status: "ready",
        damaged_collections: Some(damaged).filter(|count| *count > 0),
    }))
}

/// Counters, gauges and histograms, as Prometheus reads them.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operate",
    responses((status = 200, description = "Metrics in the Prometheus text format", body = String, content_type = "text/plain")),
)]
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let page = app.metrics.render(&app.snapshot());
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, media)], page).into_response()
}

refusals!(
    ReloadRefusals: &[Code::Forbidden, Code::BadKeys, Code::BadModel, Code::ModelTooLarge]
);

/// Opens the key file and the model files again, checks them, and takes them into use.
///
/// Keys and models do not wait for each other: a bad model file leaves the models as they are and
/// the new keys in force, and the other way round; the refusal says which were taken over. Collections
/// that were put into the folder of the server since its start, or mended there, are opened some seconds
/// later, of which its log tells. Needs a key of the scope `admin`; where no keys are set, it must come
/// from a program of this machine.
#[utoipa::path(
    post,
    path = "/-/reload",
    tag = "operate",
    responses(
        (status = 200, description = "The keys and models now in use", body = Reloaded),
        ReloadRefusals,
    ),
)]
pub(crate) async fn reload(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Reloaded>, ApiError> {
    authorize::check_admin(&request)?;
    app.collections.take_up_soon();
    Ok(Json(app.reload().await?))
}
