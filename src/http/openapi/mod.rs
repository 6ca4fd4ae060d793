//! The OpenAPI document of the service.

mod document;
mod examples;
mod operations;
pub(crate) mod refusals;

pub use document::{document, of_server};
pub(crate) use operations::operations;
