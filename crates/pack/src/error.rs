//! Why a model file was not packed.

use std::io;
use std::path::{Path, PathBuf};

use cognate::model::ModelError;

use crate::readers::{Place, ReadError};

/// Why nothing was packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A foreign file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{place}: {problem}")]
    Row {
        /// Where the row began.
        place: Place,
        problem: String,
    },
    /// No room for rows on their way.
    #[error("cannot keep rows in {}: {source}", directory.display())]
    Spool {
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table or corpus without a single count.
    #[error("{}: no line holds a word and a count", path.display())]
    NoCounts { path: PathBuf },
    /// Vectors of which every row was left out, or that have none.
    #[error("{}: the input holds no usable row", path.display())]
    NoRows { path: PathBuf },
    /// Options that contradict each other or the input.
    #[error("{0}")]
    Options(String),
    /// The model could not be read or written.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl PackError {
    pub(super) fn spool(directory: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Spool { directory: directory.to_owned(), source }
    }
}
