//! The OpenAPI document of the service.

mod document;
mod operations;
pub(crate) mod refusals;

pub use document::document;
pub use document::of_models;
pub(crate) use operations::operations;
