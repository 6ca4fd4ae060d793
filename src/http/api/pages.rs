//! Pages for people: a playground and the API document. All files are in the binary, and none names
//! another host.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};

use crate::http::app::App;
use crate::http::error::{ApiError, Code, Result};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Files that our pages need: name, media type, contents.
const ASSETS: [(&str, &str, &str); 31] = [
    ("playground.css", CSS, include_str!("pages/playground.css")),
    ("answers.css", CSS, include_str!("pages/answers.css")),
    ("playground.js", SCRIPT, include_str!("pages/playground.js")),
    ("asking.js", SCRIPT, include_str!("pages/asking.js")),
    ("beside.js", SCRIPT, include_str!("pages/beside.js")),
    ("catalogue.js", SCRIPT, include_str!("pages/catalogue.js")),
    ("collections.js", SCRIPT, include_str!("pages/collections.js")),
    ("elements.js", SCRIPT, include_str!("pages/elements.js")),
    ("eventlist.js", SCRIPT, include_str!("pages/eventlist.js")),
    ("events.js", SCRIPT, include_str!("pages/events.js")),
    ("everymethod.js", SCRIPT, include_str!("pages/everymethod.js")),
    ("explanation.js", SCRIPT, include_str!("pages/explanation.js")),
    ("groups.js", SCRIPT, include_str!("pages/groups.js")),
    ("link.js", SCRIPT, include_str!("pages/link.js")),
    ("live.js", SCRIPT, include_str!("pages/live.js")),
    ("matrix.js", SCRIPT, include_str!("pages/matrix.js")),
    ("names.js", SCRIPT, include_str!("pages/names.js")),
    ("offline.js", SCRIPT, include_str!("pages/offline.js")),
    ("pairs.js", SCRIPT, include_str!("pages/pairs.js")),
    ("programs.js", SCRIPT, include_str!("pages/programs.js")),
    ("ranking.js", SCRIPT, include_str!("pages/ranking.js")),
    ("recommending.js", SCRIPT, include_str!("pages/recommending.js")),
    ("scoring.js", SCRIPT, include_str!("pages/scoring.js")),
    ("settings.js", SCRIPT, include_str!("pages/settings.js")),
    ("stream.js", SCRIPT, include_str!("pages/stream.js")),
    ("table.js", SCRIPT, include_str!("pages/table.js")),
    ("docs.css", CSS, include_str!("pages/docs.css")),
    ("docs.js", SCRIPT, include_str!("pages/docs.js")),
    ("guide.css", CSS, include_str!("pages/guide.css")),
    ("guide.js", SCRIPT, include_str!("pages/guide.js")),
    ("icon.svg", "image/svg+xml", include_str!("pages/icon.svg")),
];

/// A file of Swagger UI that the documentation page needs. Swagger UI's own page would configure
/// itself by a script that contacts other hosts, and is not served.
#[cfg(feature = "swagger")]
fn swagger(name: &str) -> Option<Cow<'static, [u8]>> {
    let is_needed = ["swagger-ui.css", "swagger-ui-bundle.js"].contains(&name);
    utoipa_swagger_ui::serve(name, Arc::default())
        .ok()?
        .filter(|_| is_needed)
        .map(|found| found.bytes)
}

#[cfg(not(feature = "swagger"))]
fn swagger(_name: &str) -> Option<Cow<'static, [u8]>> {
    None
}

/// Shows a page to try out texts on.
///
/// It calls the routes of this document from the browser, and shows each question as curl, Python and
/// JavaScript.
#[utoipa::path(
    get,
    path = "/",
    tag = "describe",
    responses((status = 200, description = "The page", body = String, content_type = "text/html")),
)]
pub(crate) async fn playground() -> Response {
    file(HTML, include_str!("pages/playground.html").as_bytes().into())
}

pub(crate) async fn asset(name: Result<Path<String>, PathRejection>) -> Result<Response> {
    let Path(name) = name.map_err(|_| missing())?;
    let found = ASSETS.iter().find(|(known, _, _)| *known == name);
    let (_, media, contents) = found.ok_or_else(missing)?;
    Ok(file(media, contents.as_bytes().into()))
}

pub(crate) async fn docs() -> Response {
    Redirect::permanent("/docs/index.html").into_response()
}

pub(crate) async fn docs_file(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response> {
    // A name that is not UTF-8 is none of these files.
    let Path(name) = name.map_err(|_| missing())?;
    if name == "index.html" && cfg!(feature = "swagger") {
        return Ok(file(HTML, docs_page(app.access().is_some()).into_bytes().into()));
    }
    let found = swagger(&name).ok_or_else(missing)?;
    Ok(file(if name.ends_with(".css") { CSS } else { SCRIPT }, found))
}

/// The page that shows the document. It shows locks if keys are required.
fn docs_page(keys: bool) -> String {
    let page = include_str!("pages/docs.html");
    if keys { page.to_owned() } else { page.replace("data-keys=\"true\"", "data-keys=\"false\"") }
}

fn file(media: &'static str, contents: Cow<'static, [u8]>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(media))], contents).into_response()
}

pub(crate) fn html(page: String) -> Response {
    file(HTML, page.into_bytes().into())
}

pub(crate) fn missing() -> ApiError {
    ApiError::new(Code::NotFound, "there is no such file")
}
