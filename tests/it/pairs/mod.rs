//! Labelled pairs made from unlabelled text.

pub mod text;
mod tweets;
