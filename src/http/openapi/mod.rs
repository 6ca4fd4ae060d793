//! The OpenAPI document of the service.

mod document;
mod examples;
pub(crate) mod refusals;
use axum::http::Method as Verb;
pub use document::{document, of_server};
use utoipa::openapi::PathItem;
use utoipa::openapi::path::Operation;

/// The operations of a path. HEAD, OPTIONS and TRACE are never declared: the router answers them.
pub(crate) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Verb, &mut Operation)> {
    let PathItem { get, post, put, delete, patch, .. } = item;
    let operations = [
        (Verb::GET, get),
        (Verb::POST, post),
        (Verb::PUT, put),
        (Verb::DELETE, delete),
        (Verb::PATCH, patch),
    ];
    operations.into_iter().filter_map(|(verb, operation)| Some((verb, operation.as_mut()?)))
}
