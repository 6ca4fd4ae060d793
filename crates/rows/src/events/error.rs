//! Why a stream could not be followed.

use std::path::PathBuf;

use cognate::engine::QueryError;
use cognate_files::ReadError;

/// Why a stream could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// A record could not be read, or makes no sense.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A method cannot do what is asked of it.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Options that contradict each other, the records or the state.
    #[error("{0}")]
    Options(String),
    /// Lines could not be written.
    #[error("cannot write: {0}")]
    Output(#[source] std::io::Error),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A state that cannot be gone on from.
    #[error("{}: {problem}", path.display())]
    State {
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}
