//! Why no folder was written.

use std::io;
use std::path::{Path, PathBuf};

use cognate::model::ModelError;

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The model could not be read.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Options that cannot be carried out.
    #[error("{0}")]
    Options(String),
    /// A file or folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ExportError {
    /// An error of the system at a path.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
