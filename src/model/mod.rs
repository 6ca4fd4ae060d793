//! The model file.
pub mod subword;
