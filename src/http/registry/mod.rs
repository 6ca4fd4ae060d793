//! The models being served, whether there is memory for another, and the collections.

pub(crate) mod collections;
pub(crate) mod models;

pub use models::Models;
