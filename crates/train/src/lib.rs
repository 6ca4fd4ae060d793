//! `cognate train`: learns what methods need from texts: weights, vectors, rankers.
//!
//! Training is reproducible: a seed, the settings and the texts determine every bit of the outcome, with
//! any number of threads and however often the run was killed and resumed (see [`checkpoint`]). How
//! methods score texts with the learned data is not known here.

pub mod checkpoint;
pub mod pairs;
#[cfg(feature = "ranker")]
pub mod ranker;
pub mod run;
pub mod sampling;
pub mod vectors;
pub mod weights;

use std::path::PathBuf;

use cognate::model::ModelError;
use cognate_files::ReadError;

/// What training makes, or why it fails.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{0}")]
    Options(String),
    /// The texts give too few pairs.
    #[error("{0}")]
    TooLittle(String),
    /// The texts are unsuitable or too few to learn from.
    #[error("{file}: {problem}")]
    Data { file: String, problem: String },
    #[error("{path}: {problem}")]
    Checkpoint { path: PathBuf, problem: String },
    #[cfg(feature = "tensors")]
    #[error("tensors: {0}")]
    Tensors(#[from] candle_core::Error),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}
