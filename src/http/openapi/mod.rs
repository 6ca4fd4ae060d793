//! The OpenAPI document of the service.

mod document;
mod operations;
pub mod refusals;

pub use document::document;
pub use document::of_models;
pub use operations::operations;
