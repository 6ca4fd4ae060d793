//! Files of others, read once from front to back: opened, unpacked, counted, with a bar on a
//! terminal.
//!
//! What the bytes mean is known where they are asked for: vectors and counts in `pack`, gold scores
//! in `eval`. Labelled pairs, queries with their candidates, records with named fields and points in
//! time are read here, because several modules ask for them.

mod compression;
pub mod input;
pub mod instant;
pub mod progress;
pub mod records;
pub mod rows;
pub mod topics;

use std::path::PathBuf;

/// Where in the input something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    Byte(u64),
    /// A row of a matrix, counted from 0.
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

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{path}: {source}")]
    Io {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are not what the format demands.
    #[error("{path}, {place}: {problem}")]
    Malformed {
        path: PathBuf,
        /// Where the problem stands.
        place: Place,
        /// What is wrong, with what was expected and what was found.
        problem: String,
    },
    /// A well-formed file of a kind that is not read.
    #[error("{path}: {problem}")]
    Unsupported {
        path: PathBuf,
        /// What it is and what to do instead.
        problem: String,
    },
}

#[cfg(test)]
mod tests;
