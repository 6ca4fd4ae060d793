//! What is learned from texts, by the library and by the built binary.

#[cfg(feature = "train-distill")]
pub mod distill;
#[cfg(feature = "train-ranker")]
mod ranker;
#[cfg(any(feature = "train-distill", feature = "train-ranker"))]
mod trainer;
mod vectors;
mod weights;
