//! The OpenAPI document of the service.

mod document;

pub use document::document;
pub use document::of_models;
