//! Pages for people: a playground and the document, made readable. All files are in the binary.

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Redirect;
use axum::response::Response;

use crate::http::error::ApiError;
use crate::http::error::Code;

/// Files of the playground: name, media type, contents.
const ASSETS: [(&str, &str, &str); 4] = [
    ("playground.css", "text/css", include_str!("pages/playground.css")),
    ("playground.js", "text/javascript", include_str!("pages/playground.js")),
    ("docs.css", "text/css", include_str!("pages/docs.css")),
    ("docs.js", "text/javascript", include_str!("pages/docs.js")),
];

/// A page on which texts can be tried out.
pub async fn playground() -> Response {
    page("text/html; charset=utf-8", include_str!("pages/playground.html").as_bytes())
}

/// A file that a page needs.
pub async fn asset(Path(file): Path<String>) -> Result<Response, ApiError> {
    let found = ASSETS.iter().find(|(name, _, _)| *name == file);
    let (_, media, contents) = found.ok_or_else(missing)?;
    Ok(page(media, contents.as_bytes()))
}

/// The way to the document.
pub async fn docs() -> Response {
    Redirect::permanent("/docs/index.html").into_response()
}

/// The document, by Swagger UI.
pub async fn docs_file(Path(file): Path<String>) -> Result<Response, ApiError> {
    if file == "index.html" {
        return Ok(page("text/html; charset=utf-8", include_str!("pages/docs.html").as_bytes()));
    }
    let config = std::sync::Arc::new(utoipa_swagger_ui::Config::from("/openapi.json"));
    match utoipa_swagger_ui::serve(&file, config) {
        Ok(Some(found)) => Ok(page(&found.content_type, &found.bytes)),
        Ok(None) | Err(_) => Err(missing()),
    }
}

fn page(media: &str, contents: &[u8]) -> Response {
    let mut response = contents.to_vec().into_response();
    if let Ok(media) = HeaderValue::from_str(media) {
        response.headers_mut().insert(header::CONTENT_TYPE, media);
    }
    response
}

fn missing() -> ApiError {
    ApiError::new(Code::NotFound, "there is no such file")
}
