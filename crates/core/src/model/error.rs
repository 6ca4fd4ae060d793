//! What can go wrong with a model file: which file, what was expected, what was found, what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::options::LONGEST;

/// Opening, checking or writing a model file failed.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The operating system refused.
    #[error("{}: cannot {action}: {}", path.display(), IoCause(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted operation.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A directory, pipe, device or socket stands where a file must be.
    #[error("{}: expected a regular file, got a {found}", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What the path leads to instead of a file.
        found: &'static str,
    },
    /// The file is too small to be a model, or larger than the limit.
    #[error("{}: expected a model of {least} to {most} bytes, got {got} bytes (raise the limit `model_bytes` if this is meant)", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Smallest size.
        least: u64,
        /// Largest size.
        most: u64,
        /// The file's size.
        got: u64,
    },
    /// The file changed while it was being opened.
    #[error("{}: the file changed while it was being opened; write models to a new name and rename them into place", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file that was to get more became another model meanwhile.
    #[error("{}: another process put other vectors or counts there meanwhile, which nothing was made for; nothing was written, run the command again", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are not a sound model.
    #[error("{}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: FormatError,
    },
    /// A section cannot be written or read as asked.
    #[error("{}: section `{section}`: {problem}", path.display())]
    Section {
        /// The file.
        path: PathBuf,
        /// The section's name.
        section: String,
        /// The problem.
        problem: String,
    },
}

impl ModelError {
    #[cfg(unix)]
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }

    pub(crate) fn format(path: &Path) -> impl FnOnce(FormatError) -> Self {
        move |source| Self::Format { path: path.to_owned(), source }
    }
}

/// What the system said of a file. Where it refused permission, the user that it refused is named: in a
/// container that is seldom whoever reads the message.
#[derive(Debug, Clone, Copy)]
pub struct IoCause<'e>(pub &'e io::Error);

impl fmt::Display for IoCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        #[cfg(unix)]
        if self.0.kind() == io::ErrorKind::PermissionDenied {
            write!(f, ", as user {}", rustix::process::geteuid().as_raw())?;
        }
        Ok(())
    }
}

/// A problem with the bytes of a model file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The header's length cannot be right.
    #[error(
        "header length: expected at most {most} bytes and a multiple of 64 with its prefix, got {got}; this is not a cognate model (`cognate pack` makes one from word vectors), or it was cut short"
    )]
    HeaderLength {
        /// The largest length this file could have.
        most: u64,
        /// The length in the file.
        got: u64,
    },
    /// The header is not the JSON it must be.
    #[error("header: {problem}")]
    HeaderJson {
        /// The parser's message.
        problem: String,
    },
    /// A name occurs twice.
    #[error("header: `{name}` stands twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Another format, or a newer version of ours.
    #[error(
        "format: expected `{expected}`, got `{got}`; a newer version of cognate may read it, or pack the vectors again"
    )]
    Version {
        /// The version that this program writes and reads.
        expected: &'static str,
        /// The version in the file.
        got: String,
    },
    /// A metadata entry is missing or unusable.
    #[error("metadata `{key}`: expected {expected}, got {got}")]
    Metadata {
        /// The key.
        key: String,
        /// The expected value.
        expected: String,
        /// The value in the file.
        got: String,
    },
    /// A tensor that must be there is not.
    #[error("tensor `{name}` is missing")]
    MissingTensor {
        /// The tensor's name.
        name: String,
    },
    /// A tensor that this format does not know, or in a place where it may not stand.
    #[error("tensor `{name}` is not expected here: {problem}")]
    UnexpectedTensor {
        /// The tensor's name.
        name: String,
        /// Why.
        problem: &'static str,
    },
    /// A tensor's type or shape is wrong.
    #[error("tensor `{name}`: expected {expected}, got {got}")]
    Shape {
        /// The tensor's name.
        name: String,
        /// Type and shape it should have.
        expected: String,
        /// Type and shape it has.
        got: String,
    },
    /// A tensor's bytes do not lie at the right place.
    #[error("tensor `{name}`: expected bytes {expected}, got {got}")]
    Extent {
        /// The tensor's name.
        name: String,
        /// The expected place or form of the bytes.
        expected: String,
        /// The value in the header or the file.
        got: String,
    },
    /// A digest does not match: bytes were damaged or changed.
    #[error(
        "`{name}` is damaged: expected digest {expected}, got {got}; fetch or pack the file again"
    )]
    Digest {
        /// The tensor, or `header`.
        name: String,
        /// Digest in the header.
        expected: String,
        /// Digest of the bytes.
        got: String,
    },
    /// The tables of the vocabulary, or of the pieces, contradict each other.
    #[error("{table}, word {word}: {problem}")]
    Vocabulary {
        /// `vocabulary` or `pieces`.
        table: &'static str,
        /// Position of the word.
        word: u64,
        /// The problem.
        problem: &'static str,
    },
    /// A vector is longer than can be calculated with.
    #[error(
        "tensor `{name}`: the vector of row {row} is longer than {LONGEST:e}, so that its products \
         overflow; scale the vectors down and pack them again"
    )]
    Length {
        /// The tensor.
        name: String,
        /// The index of the row.
        row: u64,
    },
    /// A number that must be finite (or positive) is not.
    #[error("tensor `{name}`: expected {expected} at position {position}")]
    Number {
        /// The tensor.
        name: String,
        /// The condition that every number must meet.
        expected: &'static str,
        /// The index of the element.
        position: u64,
    },
}

/// A text from the file, short enough for an error message.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
