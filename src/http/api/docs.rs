//! `GET /openapi.json`: the document of this server.

use axum::http::HeaderValue;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use utoipa::openapi::OpenApi;

use crate::http::app::App;
use crate::http::openapi;

/// The document of this server, made from those of its routes.
pub fn answer(app: &App, routes: fn() -> OpenApi) -> Response {
    let models = app.models();
    // Made once for these models: whoever asks for it again and again takes neither time nor memory.
    let json =
        models.document.get_or_init(|| openapi::of_models(routes(), &models).to_string().into());
    let media = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, media)], json.clone()).into_response()
}
