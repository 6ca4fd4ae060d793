//! Pieces of words, read beside the words: vectors in any of the formats, each named by a piece.

use std::path::Path;

use cognate::model::format::Limits;
use cognate::model::pieces::MARK;
use cognate::model::pieces::cut::{LONGEST_PIECE_BYTES, PieceLengths};
use cognate::model::vocabulary::VocabularyTables;
use cognate_files::progress::Progress;

use crate::PackError;
use crate::intake::{BadUtf8, FlawedRows, Intake, Policy};
use crate::readers::format;
use crate::readers::format::Source;
use crate::spool::Spool;

pub(crate) struct Pieces {
    pub(crate) strings: VocabularyTables,
    pub(crate) rows: Spool,
    /// The digest of what they were read from.
    pub(crate) digest: String,
}

/// Reads pieces for words of `dims` dimensions. A flawed row is refused: nothing else says that a
/// piece is missing.
pub(crate) fn read(source: &Source, dims: usize, directory: &Path) -> Result<Pieces, PackError> {
    let policy = Policy {
        duplicates: FlawedRows::Refuse,
        non_finite: FlawedRows::Refuse,
        utf8: BadUtf8::Strict,
        lower: false,
        words: Limits::DEFAULT.words,
    };
    let mut reader = format::open(source)?;
    if reader.dims() != dims {
        let problem = format!(
            "--pieces: expected rows of {dims} dimensions, as the words have, got {}",
            reader.dims()
        );
        return Err(PackError::Options(problem));
    }
    let bar = Progress::bytes("pieces");
    let intake = Intake::read(reader.as_mut(), &policy, directory, &bar)?;
    let Intake { words, rows, left_out, .. } = intake;
    if words.is_empty() {
        return Err(PackError::NoRows { path: source.path.clone() });
    }
    if left_out.zero_rows + left_out.empty_words > 0 {
        let problem = format!(
            "--pieces: {}: {} rows are all zeros, {} have no name",
            source.path.display(),
            left_out.zero_rows,
            left_out.empty_words
        );
        return Err(PackError::Options(problem));
    }
    if PieceLengths::of(words.iter(), MARK).is_none() {
        let problem = format!(
            "--pieces: {}: expected pieces of at most {LONGEST_PIECE_BYTES} bytes",
            source.path.display()
        );
        return Err(PackError::Options(problem));
    }
    let strings = VocabularyTables::build(words.iter());
    Ok(Pieces { strings, rows, digest: reader.digest()? })
}
