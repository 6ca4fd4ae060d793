//! What is learned from texts, by the library and by the built binary.

#[cfg(feature = "train-distill")]
pub mod distill;
#[cfg(feature = "train-ranker")]
mod ranker;
mod vectors;
mod weights;
