//! The OpenAPI document of the service.

mod document;
pub mod schema;

pub use document::document;
pub use document::of_models;
