//! Collections over HTTP: making and deleting them, writing and reading their items, and matching
//! texts against them. Ranking a collection is a question to `/rank`.

mod alerts;
pub(crate) mod answers;
pub(crate) mod call;
mod events;
mod facets;
mod item;
pub(crate) mod items;
pub(crate) mod match_options;
pub(crate) mod matching;
mod one;
mod refused;

pub(crate) use answers::MatchedEntry;
pub use refused::refusals;
use utoipa_axum::routes;

use crate::http::routes::Routes;

pub(crate) fn collections() -> Routes {
    Routes::default()
        .with(routes!(answers::list))
        .with(routes!(one::look, one::set, one::delete))
        .with(routes!(items::list, items::put, items::patch, items::delete))
        .with(routes!(item::look, item::put, item::patch, item::delete))
        .with(routes!(facets::facets))
        .with(routes!(events::list))
        .with(routes!(events::look, events::delete))
        .with(routes!(alerts::stream))
        .with(routes!(events::similar))
        .with(routes!(events::merge))
        .with(routes!(events::split))
        .with(routes!(matching::matching))
}
