//! The models being served, and whether there is memory for another.

pub mod memory;
pub mod models;
pub mod reload;

pub use models::LoadedModel;
pub use models::Models;
