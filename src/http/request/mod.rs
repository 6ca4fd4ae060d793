//! A request's body: read within its limits, parsed into types that borrow from it, resolved to a
//! model and a method.

pub mod body;
pub(crate) mod fields;
pub mod json;
pub mod query;
pub(crate) mod threshold;
