//! The models being served, and whether there is memory for another.

pub(crate) mod collections;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod reload;

pub use models::Models;
