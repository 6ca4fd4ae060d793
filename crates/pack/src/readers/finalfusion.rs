//! Embeddings of the finalfusion project (`.fifu`), version 0.
//!
//! ```text
//! "FiFu", u32 version, u32 n, n x u32: identifiers of the chunks
//! chunks: u32 identifier, u64 bytes that follow, then
//!   1 words:                u64 n, n words
//!   3 words, buckets:       u64 n, u32 shortest, longest n-gram, buckets as a power of 2, n words
//!   7 words, as fastText:   u64 n, u32 shortest, longest n-gram, number of buckets, n words
//!   8 words, n-grams:       u64 n, u64 g, u32 shortest, longest n-gram, n words, g (n-gram, u64)
//!   2 matrix:               u64 rows, u32 columns, u32 type 10 (f32), padding, rows x columns
//!   6 norms:                u64 n, u32 type 10 (f32), padding, n
//!   5 metadata:             TOML
//! a word: u32 bytes, then those; padding: 1 to 4 bytes up to a position divisible by 4
//! ```
//!
//! The rows of words are stored at unit length; with a chunk of norms they get their own length
//! back. Only the fastText rule for words that are not listed is handed on: the others hash
//! n-grams in their own way, or list them, and of those files just the words are read (see
//! [`FinalfusionReader::left_out`]). Words and rows stream side by side; neither is held.

mod chunks;

use std::path::Path;

use chunks::{Chunks, MAGIC, Matrix, Parts, Vocabulary};
use cognate::model::subword::NGrams;

use super::positioned::{Scan, Source};
use super::{Budget, Info, Mark, Opened, Place, ReadError, Subword, VectorReader, source};

/// How it is called and recognised.
pub(crate) const INFO: Info =
    Info { name: "finalfusion", mark: Mark::Bytes(|first, _| first.starts_with(&MAGIC)) };

pub(super) fn open(source: &source::Source) -> Opened {
    Ok(Box::new(FinalfusionReader::open(&source.path, source.budget)?))
}

/// A stream over the words of a finalfusion file.
#[derive(Debug)]
pub struct FinalfusionReader {
    scan: Scan,
    word_bytes: usize,
    vocabulary: Vocabulary,
    matrix: Matrix,
    /// Where the norms begin, if there are any.
    norms: Option<u64>,
    next_word: u64,
    next_bucket: u64,
    place: u64,
    bytes: Vec<u8>,
}

impl FinalfusionReader {
    /// Opens a file and checks all of it but the numbers in its matrix.
    pub(crate) fn open(path: &Path, budget: Budget) -> Result<Self, ReadError> {
        Self::over(Source::open(path)?, budget)
    }

    /// As `open`, for bytes from anywhere.
    pub fn over(source: Source, budget: Budget) -> Result<Self, ReadError> {
        let mut scan = Scan::new(source);
        let mut chunks = Chunks::read_header(&mut scan)?;
        while scan.left() > 0 {
            chunks.read_next(&mut scan, budget)?;
        }
        let (vocabulary, matrix, norms) = chunks.complete(&scan)?;
        scan.seek(vocabulary.begin);
        Ok(Self {
            scan,
            word_bytes: budget.word_bytes,
            vocabulary,
            matrix,
            norms,
            next_word: 0,
            next_bucket: 0,
            place: vocabulary.begin,
            bytes: Vec::new(),
        })
    }

    /// What of the file the stream leaves out, in words for the user; nothing as a rule.
    pub fn left_out(&self) -> Option<&'static str> {
        match self.vocabulary.parts {
            Parts::None | Parts::FastText(_) => None,
            Parts::OwnHash(_) => Some("n-gram rows under finalfusion's own hash"),
            Parts::Listed => Some("rows of explicitly listed n-grams"),
        }
    }

    fn buckets(&self) -> u64 {
        match self.vocabulary.parts {
            Parts::FastText(rule) => rule.buckets,
            _ => 0,
        }
    }

    fn row_bytes(&self) -> u64 {
        self.matrix.dims as u64 * 4
    }
}

impl VectorReader for FinalfusionReader {
    fn dims(&self) -> usize {
        self.matrix.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.vocabulary.words)
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        if self.next_word == self.vocabulary.words {
            return Ok(false);
        }
        self.place = self.scan.position();
        let length = self.scan.u32("a word's length")?;
        self.scan.counted_word(word, length, self.word_bytes)?;
        let at = self.matrix.begin + self.next_word * self.row_bytes();
        self.scan.source().floats_at(at, &mut self.bytes, row)?;
        if let Some(norms) = self.norms {
            let mut norm = [0.0];
            self.scan.source().floats_at(norms + self.next_word * 4, &mut self.bytes, &mut norm)?;
            for value in row.iter_mut() {
                *value *= norm[0];
            }
        }
        self.next_word += 1;
        Ok(true)
    }

    fn place(&self) -> Place {
        Place::Byte(self.place)
    }

    fn digest(&mut self) -> Result<String, ReadError> {
        self.scan.source().digest()
    }

    fn progress(&self) -> (u64, u64) {
        let row = self.row_bytes();
        let all = self.vocabulary.words + self.buckets();
        ((self.next_word + self.next_bucket) * row, all * row)
    }

    fn subword(&self) -> Option<Subword> {
        match self.vocabulary.parts {
            Parts::FastText(NGrams { min, max, buckets }) if buckets > 0 => {
                Some(Subword::NGrams { min, max, buckets })
            }
            _ => None,
        }
    }

    /// The rows of n-grams have their own length in the file: norms are those of words.
    fn next_bucket(&mut self, row: &mut [f32]) -> Result<bool, ReadError> {
        if self.next_bucket == self.buckets() {
            return Ok(false);
        }
        let index = self.vocabulary.words + self.next_bucket;
        self.place = self.matrix.begin + index * self.row_bytes();
        self.scan.source().floats_at(self.place, &mut self.bytes, row)?;
        self.next_bucket += 1;
        Ok(true)
    }
}
