//! Why nothing could be measured.

use std::path::PathBuf;

use cognate::engine::QueryError;
use cognate::model::ModelError;
use cognate_files::ReadError;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A file could not be read, or a row of it makes no sense.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A folder could not be listed.
    #[error("{}: {source}", path.display())]
    Folder {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Options that contradict each other, the model or the data.
    #[error("{0}")]
    Options(String),
    /// The model could not be read or written.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine refused a text that was read.
    #[error("{file}: {source}")]
    Query {
        /// The file the text stands in.
        file: String,
        /// What the engine said.
        source: QueryError,
    },
    /// A report could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Data that a measure has no value for.
    #[error("{file}: {problem}")]
    Data { file: String, problem: String },
}
