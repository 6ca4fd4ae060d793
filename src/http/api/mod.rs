//! The endpoints, one file each, and the pipeline that those which compute share.
//!
//! Verb, path, bodies and errors of an endpoint are declared at its handler, in `#[utoipa::path]`;
//! here endpoints are grouped by what they require of a caller. Those of other dialects are in
//! `compatible`, and the `router` puts all of them together.

mod backup;
pub(crate) mod catalogue;
pub mod collections;
pub mod cost;
pub mod embed;
pub(crate) mod envelope;
pub(crate) mod explain;
mod guides;
pub(crate) mod operations;
pub(crate) mod pages;
pub mod pipeline;
pub(crate) mod question;
pub mod rank;
pub mod similarity;
pub(crate) mod stream;
pub mod ways;

use axum::routing::get;
use tower_http::compression::CompressionLayer;
use utoipa_axum::router::UtoipaMethodRouterExt;
use utoipa_axum::routes;

use crate::http::routes::Routes;

pub(crate) fn questions() -> Routes {
    Routes::default()
        .with(routes!(rank::rank))
        .with(routes!(rank::similar::similar))
        .with(routes!(explain::explain))
        .with(routes!(catalogue::methods))
        .with(routes!(catalogue::models))
}

/// Questions whose paths belong to another dialect as well; the body decides.
pub(crate) fn shared() -> Routes {
    Routes::default().with(routes!(similarity::similarity)).with(routes!(embed::embed))
}

pub(crate) fn life() -> Routes {
    Routes::default()
        .with(routes!(operations::health))
        .undocumented("/livez", get(operations::health))
        .undocumented("/healthz", get(operations::health))
}

pub(crate) fn state() -> Routes {
    Routes::default()
        .with(routes!(operations::ready))
        .undocumented("/readyz", get(operations::ready))
        // Prometheus asks for gzip, and the page is asked for every few seconds.
        .with(routes!(operations::metrics).layer(CompressionLayer::new()))
}

pub(crate) fn orders() -> Routes {
    Routes::default().with(routes!(operations::reload)).with(routes!(backup::backup)).behind_keys()
}

pub(crate) fn people() -> Routes {
    Routes::default()
        .with(routes!(pages::playground))
        .undocumented("/assets/{file}", get(pages::asset))
        .undocumented("/docs", get(pages::docs))
        .undocumented("/docs/", get(pages::docs))
        .undocumented("/docs/{file}", get(pages::docs_file))
        .undocumented("/guides", get(guides::list))
        .undocumented("/guides/{name}", get(guides::guide))
}

pub(crate) fn problems() -> Routes {
    Routes::default().undocumented("/problems/{code}", get(guides::problem))
}
