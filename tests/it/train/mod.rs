//! What is learned from texts, by the library and by the built binary.

#[cfg(feature = "train-ranker")]
mod ranker;
#[cfg(feature = "train-ranker")]
mod trainer;
mod vectors;
mod weights;
