//! Whether the server lives, whether it is ready, what it counted, and the order to load its
//! models again. None of these waits behind requests that compute.

use std::sync::Arc;

use axum::Json;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::guard;

/// A short word on the server's state.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// `ok` or `ready`.
    status: &'static str,
}

/// The models after a reload.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reloaded {
    /// Name and fingerprint of each model.
    models: Vec<LoadedModel>,
}

/// A model that was loaded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LoadedModel {
    /// Its name.
    pub name: String,
    /// Sixteen hexadecimal digits that change with the model.
    pub fingerprint: String,
}

/// Whether the process lives. Also under `/livez` and `/healthz`.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operate",
    responses((status = 200, description = "The process lives", body = Status)),
)]
pub async fn health() -> Json<Status> {
    Json(Status { status: "ok" })
}

/// Whether requests are welcome. Also under `/readyz`.
#[utoipa::path(
    get,
    path = "/ready",
    tag = "operate",
    responses((status = 200, description = "The models are loaded", body = Status)),
)]
pub async fn ready(State(app): State<Arc<App>>) -> Result<Json<Status>, ApiError> {
    app.check_ready()?;
    Ok(Json(Status { status: "ready" }))
}

/// Counters, gauges and histograms, as Prometheus reads them.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operate",
    responses((status = 200, description = "The page", body = String, content_type = "text/plain")),
)]
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let page = app.metrics.render(&app.moment());
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, media)], page).into_response()
}

/// Opens the model files and the key file again, checks them, and takes them into use.
///
/// Needs a key of the scope `admin`; where no keys are set, it must come from this machine.
#[utoipa::path(
    post,
    path = "/-/reload",
    tag = "operate",
    responses((status = 200, description = "The models now in use", body = Reloaded)),
)]
pub async fn reload(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Reloaded>, ApiError> {
    guard::check_admin(&request)?;
    let task = tokio::task::spawn_blocking(move || app.reload());
    let models = task.await.map_err(|error| ApiError::internal(&error.to_string()))??;
    Ok(Json(Reloaded { models }))
}
