//! `cognate train`: what methods learn from texts.
//!
//! Training is reproducible: a seed, the settings and the texts fix every bit of what comes out,
//! whatever the number of threads and however often the run was killed and begun again on the way
//! (see [`checkpoint`]). How texts are scored with what was learned is the methods' part.

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

/// Why nothing was trained.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A file of texts could not be read, or a line of it makes no sense.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Options that contradict each other, the model or the texts.
    #[error("{0}")]
    Options(String),
    /// Texts that nothing can be learned from.
    #[error("{file}: {problem}")]
    Data { file: String, problem: String },
    /// A checkpoint that cannot be gone on from.
    #[error("{path}: {problem}")]
    Checkpoint {
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A computation with tensors failed.
    #[cfg(feature = "tensors")]
    #[error("tensors: {0}")]
    Tensors(#[from] candle_core::Error),
    /// The model could not be read or written.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A file beside the model could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}
