//! The whole surface: which routes there are, with those of other dialects, and the document of
//! them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa::openapi::OpenApi;

use crate::http::app::App;
use crate::http::dialect::Dialect;
use crate::http::routes::Routes;
use crate::http::{api, compatible, openapi};

/// Whether the process lives, in our own words and in these dialects.
pub(crate) fn life(dialects: &[Dialect]) -> Routes {
    compatible::life(api::life(), dialects)
}

/// What clients ask, in our own words and in these dialects.
pub(crate) fn questions(dialects: &[Dialect]) -> Vec<Routes> {
    let mut groups = vec![api::questions(), api::collections::collections()];
    match dialects.contains(&Dialect::Tei) {
        true => groups.push(compatible::shared()),
        false => groups.push(api::shared()),
    }
    groups.extend(compatible::routes(dialects));
    groups.into_iter().map(Routes::behind_keys).collect()
}

pub(crate) fn people() -> Routes {
    api::people().undocumented("/openapi.json", get(openapi))
}

pub(crate) fn all(dialects: &[Dialect]) -> Vec<Routes> {
    let mut groups = questions(dialects);
    groups.extend([life(dialects), api::state(), api::orders(), people()]);
    groups
}

/// What the document says of every route.
pub(crate) fn documented(dialects: &[Dialect]) -> impl Iterator<Item = OpenApi> {
    all(dialects).into_iter().map(Routes::into_document)
}

/// Where the document states a limit, and what it is under the settings in force.
fn limits(app: &App) -> [(&'static str, usize); 10] {
    let settings = &app.settings;
    [
        ("NonEmptyText/maxLength", settings.text_chars),
        ("PairsRequest/properties/pairs/maxItems", settings.max_pairs),
        ("Texts/oneOf/1/maxItems", settings.max_texts),
        ("ItemsRequest/properties/items/maxItems", settings.max_texts),
        ("MatchRequest/properties/items/maxItems", settings.max_texts),
        ("RankRequest/properties/candidates/maxItems", settings.max_candidates),
        ("RankRequest/properties/exclude/maxItems", settings.max_candidates),
        ("RankRequest/properties/queries/maxItems", settings.max_queries),
        ("RankRequest/properties/like/maxItems", settings.max_queries),
        ("RankRequest/properties/unlike/maxItems", settings.max_queries),
    ]
}

async fn openapi(State(app): State<Arc<App>>) -> Response {
    let models = app.models();
    // Made once for these models: whoever asks for it again and again takes neither time nor memory.
    let made = || {
        let documented = documented(&app.settings.dialects);
        openapi::of_server(documented, &models, &limits(&app)).to_string().into()
    };
    let json = models.document.get_or_init(made);
    let media = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, media)], json.clone()).into_response()
}
