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
//! The rows of words are stored at unit length; a chunk of norms restores their own lengths. Only the
//! fastText rule for unlisted words is supported: other files hash n-grams in their own way, or list
//! them, and only their words are read (see [`FinalfusionReader::left_out`]). Words and rows are streamed
//! side by side; neither is held in memory.

use std::path::Path;

use cognate::model::subword::NGrams;

use super::positioned::{Scan, Source};
use super::{Budget, Info, Mark, Opened, Place, Result, Subword, VectorReader};

pub(crate) const INFO: Info =
    Info { name: "finalfusion", mark: Mark::Bytes(|first, _| first.starts_with(&MAGIC)) };

pub(super) fn open(source: &super::Source) -> Opened {
    Ok(Box::new(FinalfusionReader::open(&source.path, source.budget)?))
}

#[derive(Debug)]
pub struct FinalfusionReader {
    scan: Scan,
    word_bytes: usize,
    vocabulary: Vocabulary,
    matrix: Matrix,
    /// Byte offset of the norms, if there are any.
    norms: Option<u64>,
    next_word: u64,
    next_bucket: u64,
    place: u64,
    bytes: Vec<u8>,
}

impl FinalfusionReader {
    /// Opens a file and checks everything but the numbers in its matrix.
    pub(crate) fn open(path: &Path, budget: Budget) -> Result<Self> {
        Self::over(Source::open(path)?, budget)
    }

    pub fn over(source: Source, budget: Budget) -> Result<Self> {
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

    /// A message about parts of the file that the reader leaves out; normally `None`.
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

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool> {
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

    fn digest(&mut self) -> Result<String> {
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

    /// Rows of n-grams keep their length in the file; norms exist only for words.
    fn next_bucket(&mut self, row: &mut [f32]) -> Result<bool> {
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

const MAGIC: [u8; 4] = *b"FiFu";
const F32: u32 = 10;
const MAX_CHUNKS: u32 = 64;

#[derive(Debug, Clone, Copy)]
struct Vocabulary {
    chunk: u64,
    begin: u64,
    words: u64,
    parts: Parts,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Parts {
    None,
    FastText(NGrams),
    OwnHash(u32),
    Listed,
}

#[derive(Debug, Clone, Copy)]
struct Matrix {
    chunk: u64,
    /// Byte offset of the first row. All rows were checked to lie within the file.
    begin: u64,
    rows: u64,
    dims: usize,
}

#[derive(Debug, Clone, Copy)]
struct Norms {
    chunk: u64,
    begin: u64,
    count: u64,
}

/// The chunks found so far, and those still promised by the header.
#[derive(Default)]
struct Chunks {
    promised: Vec<u32>,
    vocabulary: Option<Vocabulary>,
    matrix: Option<Matrix>,
    norms: Option<Norms>,
}

impl Chunks {
    fn read_header(scan: &mut Scan) -> Result<Self> {
        let magic = scan.array::<4>("the magic bytes")?;
        if magic != MAGIC {
            let problem = format!("expected `FiFu`, found `{}`", magic.escape_ascii());
            return Err(scan.source().malformed(0, problem));
        }
        let version = scan.u32("the version")?;
        if version != 0 {
            let problem = format!("finalfusion version 0 is expected, found {version}");
            return Err(scan.source().unsupported(problem));
        }
        let at = scan.position();
        let chunks = scan.u32("the number of chunks")?;
        if chunks > MAX_CHUNKS {
            let problem = format!("expected at most {MAX_CHUNKS} chunks, found {chunks}");
            return Err(scan.source().malformed(at, problem));
        }
        let mut promised = Vec::new();
        for _ in 0..chunks {
            promised.push(scan.u32("a chunk's identifier")?);
        }
        Ok(Self { promised, ..Self::default() })
    }

    fn read_next(&mut self, scan: &mut Scan, budget: Budget) -> Result<()> {
        let chunk = scan.position();
        let kind = scan.u32("a chunk's identifier")?;
        let length = scan.u64("a chunk's length")?;
        if length > scan.left() {
            let problem = format!(
                "expected a chunk of at most the {} bytes left, found {length}",
                scan.left()
            );
            return Err(scan.source().malformed(chunk, problem));
        }
        let end = scan.position() + length;
        self.promised.retain(|&promised| promised != kind);
        let repeated = match kind {
            1 | 3 | 7 | 8 => {
                let found = read_vocabulary(scan, kind, chunk, end, budget)?;
                self.vocabulary.replace(found).is_some()
            }
            2 => self.matrix.replace(read_matrix(scan, chunk, end, budget)?).is_some(),
            4 => {
                return Err(scan.source().unsupported(
                    "a quantised matrix: reconstruct it first, for example with finalfusion-utils",
                ));
            }
            5 => false,
            6 => self.norms.replace(read_norms(scan, chunk, end)?).is_some(),
            9 => {
                return Err(scan.source().unsupported(
                    "floret vectors list no words; pack the vectors of a word list as text",
                ));
            }
            other => {
                let problem = format!("expected a chunk identifier from 1 to 9, found {other}");
                return Err(scan.source().malformed(chunk, problem));
            }
        };
        if repeated {
            let problem = format!("expected one chunk of its kind, found another of kind {kind}");
            return Err(scan.source().malformed(chunk, problem));
        }
        scan.seek(end);
        Ok(())
    }

    fn complete(self, scan: &Scan) -> Result<(Vocabulary, Matrix, Option<u64>)> {
        let missing =
            |what: &str| scan.source().malformed(scan.position(), format!("found no {what}"));
        // Only this reveals a file cut off between two chunks. Chunks that the header does not list
        // are accepted: some writers omit the norms there.
        if let Some(kind) = self.promised.first() {
            return Err(missing(&format!("chunk of kind {kind}, which the header lists")));
        }
        let vocabulary = self.vocabulary.ok_or_else(|| missing("vocabulary chunk"))?;
        let matrix = self.matrix.ok_or_else(|| missing("matrix chunk"))?;
        let fits = match vocabulary.parts {
            Parts::None => matrix.rows == vocabulary.words,
            Parts::FastText(rule) => {
                vocabulary.words.checked_add(rule.buckets) == Some(matrix.rows)
            }
            Parts::OwnHash(exponent) => {
                let buckets = 1u64.checked_shl(exponent);
                buckets.and_then(|buckets| vocabulary.words.checked_add(buckets))
                    == Some(matrix.rows)
            }
            // Several n-grams may share a row, so only a bound is known.
            Parts::Listed => matrix.rows >= vocabulary.words,
        };
        if !fits {
            let problem = format!(
                "found {} rows, which do not fit the {} words and their n-grams at byte {}",
                matrix.rows, vocabulary.words, vocabulary.chunk
            );
            return Err(scan.source().malformed(matrix.chunk, problem));
        }
        if let Some(norms) = self.norms
            && norms.count != vocabulary.words
        {
            let problem = format!("expected {} norms, found {}", vocabulary.words, norms.count);
            return Err(scan.source().malformed(norms.chunk, problem));
        }
        Ok((vocabulary, matrix, self.norms.map(|norms| norms.begin)))
    }
}

fn read_vocabulary(
    scan: &mut Scan,
    kind: u32,
    chunk: u64,
    end: u64,
    budget: Budget,
) -> Result<Vocabulary> {
    let words = scan.u64("the number of words")?;
    if words > budget.words {
        let problem = format!("{words} words, at most {} are taken", budget.words);
        return Err(scan.source().unsupported(problem));
    }
    if kind == 8 {
        scan.u64("the number of n-grams")?;
    }
    let parts = match kind {
        1 => Parts::None,
        _ => {
            let min = scan.u32("the shortest n-gram")?;
            let max = scan.u32("the longest n-gram")?;
            match kind {
                3 => Parts::OwnHash(scan.u32("the number of buckets")?),
                7 => {
                    let buckets = u64::from(scan.u32("the number of buckets")?);
                    Parts::FastText(NGrams { min, max, buckets })
                }
                _ => Parts::Listed,
            }
        }
    };
    let begin = scan.position();
    let mut word = Vec::new();
    for _ in 0..words {
        let length = scan.u32("a word's length")?;
        scan.counted_word(&mut word, length, budget.word_bytes)?;
    }
    // A list of n-grams may follow in a chunk that lists them, and nothing in others.
    let fits = scan.position() == end || (kind == 8 && scan.position() < end);
    if !fits {
        let problem =
            format!("expected the {words} words to end at byte {end}, found {}", scan.position());
        return Err(scan.source().malformed(chunk, problem));
    }
    Ok(Vocabulary { chunk, begin, words, parts })
}

fn read_matrix(scan: &mut Scan, chunk: u64, end: u64, budget: Budget) -> Result<Matrix> {
    let rows = scan.u64("the number of rows")?;
    let columns = scan.u32("the number of columns")?;
    let dims = columns as usize;
    if dims == 0 || dims > budget.dims {
        let problem = format!("expected 1 to {} columns, found {columns}", budget.dims);
        return Err(scan.source().malformed(chunk, problem));
    }
    let begin = floats_begin(scan)?;
    check_floats(scan, chunk, begin, rows.checked_mul(u64::from(columns)), end)?;
    Ok(Matrix { chunk, begin, rows, dims })
}

fn read_norms(scan: &mut Scan, chunk: u64, end: u64) -> Result<Norms> {
    let count = scan.u64("the number of norms")?;
    let begin = floats_begin(scan)?;
    check_floats(scan, chunk, begin, Some(count), end)?;
    Ok(Norms { chunk, begin, count })
}

/// Reads the number type and returns the offset of the numbers after the padding: at least one byte
/// of it, and four if the position is already divisible by four.
fn floats_begin(scan: &mut Scan) -> Result<u64> {
    let at = scan.position();
    let kind = scan.u32("the type of numbers")?;
    if kind != F32 {
        let problem = format!("expected numbers of type {F32} (f32), found type {kind}");
        return Err(scan.source().malformed(at, problem));
    }
    let position = scan.position();
    Ok(position + 4 - position % 4)
}

fn check_floats(scan: &Scan, chunk: u64, begin: u64, floats: Option<u64>, end: u64) -> Result<()> {
    let found = floats.and_then(|floats| floats.checked_mul(4)?.checked_add(begin));
    if found == Some(end) {
        return Ok(());
    }
    let problem = match found {
        Some(found) => format!("expected the numbers to end at byte {end}, found {found}"),
        None => format!("expected the numbers to end at byte {end}, found a length beyond 64 bits"),
    };
    Err(scan.source().malformed(chunk, problem))
}
