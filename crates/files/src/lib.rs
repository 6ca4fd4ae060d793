//! Reads foreign files from front to back, with decompression, counters and progress bars.
//!
//! What the contents mean is known to the callers: vectors and counts to `pack`, gold scores to
//! `eval`. Formats that several crates read are defined here: labelled pairs, queries with their
//! candidates, records with named fields, and points in time.

mod compression;
pub mod input;
pub mod instant;
pub mod progress;
pub mod records;
pub mod rows;
pub mod topics;
pub mod written;

use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Line(u64),
    Byte(u64),
    Row(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// What is read, or why it cannot be.
pub type Result<T, E = ReadError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}, {place}: {problem}")]
    Malformed {
        path: PathBuf,
        place: Place,
        /// What is wrong, with what was expected and what was found.
        problem: String,
    },
    #[error("{path}: {problem}")]
    Unsupported {
        path: PathBuf,
        /// What kind of file it is and what to do instead.
        problem: String,
    },
}
