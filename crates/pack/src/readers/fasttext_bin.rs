//! Binary models of fastText, versions 11 and 12, unsupervised and supervised: whole (`.bin`), and
//! quantised and pruned (`.ftz`).
//!
//! ```text
//! i32 magic 793712314, i32 version
//! i32 dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate; f64 t
//! i32 entries, words, labels; i64 tokens, n-grams kept (-1: the model is not pruned)
//! entries times: bytes of the word, 0; i64 count; i8 kind (0 word, 1 label)
//! n-grams kept times: i32 bucket, row
//! u8 input is quantised; i64 rows, columns; f32 rows x columns: the words, then the n-grams
//! u8 output is quantised; i64 rows, columns; f32 rows x columns
//! ```
//!
//! The vector of a word is not stored: it is the mean of the word's own row and those of its
//! n-grams, of those that were kept if the model is pruned. The dictionary streams past while rows are
//! fetched by position, so neither is held; only which n-grams were kept is, eight bytes each.
//! Knows nothing of how n-grams are hashed (`model::subword` does) and leaves the output matrix
//! alone: it serves training and classification only.

mod dictionary;
mod matrix;

use std::path::Path;

use cognate::model::subword::NGrams;

use super::positioned::{Scan, Source};
use super::{Budget, Info, Mark, Opened, Place, ReadError, Subword, VectorReader, format};
use crate::readers::fasttext_bin::dictionary::Arguments;
use crate::readers::fasttext_bin::matrix::Matrix;

const MAGIC: i32 = 793_712_314;

/// How it is called and recognised.
pub(crate) const INFO: Info = Info {
    name: "fasttext",
    mark: Mark::Bytes(|first, _| first.starts_with(&MAGIC.to_le_bytes())),
};

pub(super) fn open(source: &format::Source) -> Opened {
    Ok(Box::new(FastTextReader::open(&source.path, source.budget)?))
}

/// A stream over the words of a binary fastText model.
#[derive(Debug)]
pub struct FastTextReader {
    scan: Scan,
    word_bytes: usize,
    dims: usize,
    words: u64,
    ngram_rows: u64,
    ngrams: Option<NGrams>,
    /// Which n-grams have rows, and which, in a pruned model.
    kept: Option<Kept>,
    /// It was checked to end within the file.
    matrix: Matrix,
    next_word: u64,
    next_bucket: u64,
    place: u64,
    count: Option<u64>,
    bytes: Vec<u8>,
    part: Vec<f32>,
}

impl FastTextReader {
    /// Opens a model and checks all of it but the numbers in its matrices.
    pub fn open(path: &Path, budget: Budget) -> Result<Self, ReadError> {
        Self::over(Source::open(path)?, budget)
    }

    /// As [`open`](Self::open), for bytes from anywhere.
    pub fn over(source: Source, budget: Budget) -> Result<Self, ReadError> {
        let mut scan = Scan::new(source);
        let arguments = Arguments::read(&mut scan, budget)?;
        let entries = dictionary::read_head(&mut scan, budget)?;
        let begin = scan.position();
        dictionary::check_entries(&mut scan, entries, budget)?;
        let mut kept = None;
        let mut ngram_rows = arguments.buckets;
        if let Some(count) = entries.kept {
            kept = Some(Kept::of(&dictionary::read_kept(&mut scan, count, arguments.buckets)?));
            ngram_rows = count;
        }
        let matrix = Matrix::input(&mut scan, entries.words + ngram_rows, arguments.dims)?;
        matrix::check_output(&mut scan)?;
        scan.seek(begin);
        Ok(Self {
            scan,
            word_bytes: budget.word_bytes,
            dims: arguments.dims,
            words: entries.words,
            ngram_rows,
            // Where every n-gram was pruned, words have their own rows alone.
            ngrams: arguments.ngrams().filter(|_| ngram_rows > 0),
            kept,
            matrix,
            next_word: 0,
            next_bucket: 0,
            place: begin,
            count: None,
            bytes: Vec::new(),
            part: vec![0.0; arguments.dims],
        })
    }

    /// The row of a bucket behind those of the words; nothing where it was pruned.
    fn ngram_row(&self, bucket: u64) -> Option<u64> {
        match &self.kept {
            None => Some(bucket),
            Some(kept) => kept.row(bucket),
        }
    }
}

/// n-grams that were kept, in the order of their buckets.
#[derive(Debug)]
struct Kept {
    buckets: Vec<u32>,
    rows: Vec<u32>,
}

impl Kept {
    fn of(pairs: &[(u32, u32)]) -> Self {
        let (buckets, rows) = pairs.iter().copied().unzip();
        Self { buckets, rows }
    }

    fn row(&self, bucket: u64) -> Option<u64> {
        let place = self.buckets.binary_search(&u32::try_from(bucket).ok()?).ok()?;
        self.rows.get(place).copied().map(u64::from)
    }
}

impl VectorReader for FastTextReader {
    fn dims(&self) -> usize {
        self.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.words)
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        if self.next_word == self.words {
            return Ok(false);
        }
        self.place = self.scan.position();
        self.scan.terminated_word(word, self.word_bytes)?;
        self.count = u64::try_from(self.scan.i64("a word's count")?).ok();
        self.scan.array::<1>("a word's kind")?;

        let source = self.scan.source();
        self.matrix.row(source, self.next_word, &mut self.bytes, row)?;
        let mut rows = 1u32;
        for bucket in self.ngrams.iter().flat_map(|rule| rule.ids_of_listed(word)) {
            let Some(ngram) = self.ngram_row(bucket) else { continue };
            self.matrix.row(source, self.words + ngram, &mut self.bytes, &mut self.part)?;
            for (sum, value) in row.iter_mut().zip(&self.part) {
                *sum += value;
            }
            rows += 1;
        }
        // fastText divides in double precision and multiplies in single: the same bits come out.
        let share = (1.0 / f64::from(rows)) as f32;
        for value in row.iter_mut() {
            *value *= share;
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
        let ngrams = self.ngrams.map_or(0, |_| self.ngram_rows);
        let row = self.dims as u64 * 4;
        ((self.next_word + self.next_bucket) * row, (self.words + ngrams) * row)
    }

    fn count(&self) -> Option<u64> {
        self.count
    }

    fn subword(&self) -> Option<Subword> {
        self.ngrams.map(|NGrams { min, max, buckets }| Subword::NGrams { min, max, buckets })
    }

    fn kept_buckets(&self) -> Option<&[u32]> {
        let kept = self.kept.as_ref().filter(|_| self.ngrams.is_some());
        kept.map(|kept| kept.buckets.as_slice())
    }

    fn next_bucket(&mut self, row: &mut [f32]) -> Result<bool, ReadError> {
        if self.ngrams.is_none() || self.next_bucket == self.ngram_rows {
            return Ok(false);
        }
        let ngram = match &self.kept {
            None => self.next_bucket,
            // There are as many as rows.
            Some(kept) => kept.rows.get(self.next_bucket as usize).map_or(0, |&row| row.into()),
        };
        self.place = self.matrix.row_at(self.words + ngram);
        self.matrix.row(self.scan.source(), self.words + ngram, &mut self.bytes, row)?;
        self.next_bucket += 1;
        Ok(true)
    }
}
