//! `GET /openapi.json`: the document of this server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use utoipa::openapi::OpenApi;

use crate::http::api;
use crate::http::app::App;
use crate::http::openapi;
use crate::http::routes::Routes;

/// What the document says of every route.
pub(crate) fn documented() -> impl Iterator<Item = OpenApi> {
    api::all().into_iter().map(Routes::into_document)
}

/// Where the document states a limit, and what it is under the settings in force.
fn limits(app: &App) -> [(&'static str, usize); 4] {
    let settings = &app.settings;
    [
        ("Text/maxLength", settings.text_chars),
        ("PairsRequest/properties/pairs/maxItems", settings.max_pairs),
        ("Texts/oneOf/1/maxItems", settings.max_texts),
        ("RankRequest/properties/candidates/maxItems", settings.max_candidates),
    ]
}

/// The document of this server.
pub async fn openapi(State(app): State<Arc<App>>) -> Response {
    let models = app.models();
    // Made once for these models: whoever asks for it again and again takes neither time nor memory.
    let made = || openapi::of_server(documented(), &models, &limits(&app)).to_string().into();
    let json = models.document.get_or_init(made);
    let media = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, media)], json.clone()).into_response()
}
