//! The chunks of a finalfusion file: which there are, where their words and numbers begin, and
//! whether lengths, shapes and counts agree with one another and with the size of the file.
//!
//! Reads no vectors: what it found is what `FinalfusionReader` relies on.

use cognate::model::subword::NGrams;

use crate::readers::positioned::Scan;
use crate::readers::{Budget, ReadError};

pub(super) const MAGIC: [u8; 4] = *b"FiFu";
const F32: u32 = 10;
/// There are nine kinds of chunk, and files have three or four.
const MOST_CHUNKS: u32 = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Vocabulary {
    chunk: u64,
    /// Where the first word stands.
    pub(super) begin: u64,
    pub(super) words: u64,
    pub(super) parts: Parts,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Parts {
    None,
    FastText(NGrams),
    /// Rows for n-grams that are hashed by finalfusion's own rule, by exponent.
    OwnHash(u32),
    Listed,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    chunk: u64,
    /// Where the first row stands. All rows were checked to lie within the file.
    pub(super) begin: u64,
    pub(super) rows: u64,
    pub(super) dims: usize,
}

#[derive(Debug, Clone, Copy)]
struct Norms {
    chunk: u64,
    begin: u64,
    count: u64,
}

/// The chunks found so far, and those that the header promises.
#[derive(Default)]
pub(super) struct Chunks {
    promised: Vec<u32>,
    vocabulary: Option<Vocabulary>,
    matrix: Option<Matrix>,
    norms: Option<Norms>,
}

impl Chunks {
    /// Checks the header and leaves the scan at the first chunk.
    pub(super) fn read_header(scan: &mut Scan) -> Result<Self, ReadError> {
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
        if chunks > MOST_CHUNKS {
            let problem = format!("expected at most {MOST_CHUNKS} chunks, found {chunks}");
            return Err(scan.source().malformed(at, problem));
        }
        let mut promised = Vec::new();
        for _ in 0..chunks {
            promised.push(scan.u32("a chunk's identifier")?);
        }
        Ok(Self { promised, ..Self::default() })
    }

    /// Reads one chunk and leaves the scan behind it.
    pub(super) fn read_next(&mut self, scan: &mut Scan, budget: Budget) -> Result<(), ReadError> {
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

    /// Checks that what must be there is, and that the parts fit one another.
    pub(super) fn complete(
        self,
        scan: &Scan,
    ) -> Result<(Vocabulary, Matrix, Option<u64>), ReadError> {
        let missing =
            |what: &str| scan.source().malformed(scan.position(), format!("found no {what}"));
        // A file cut between two chunks shows by this alone. Chunks that the header does not list
        // are taken all the same: some writers leave the norms out there.
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
) -> Result<Vocabulary, ReadError> {
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
    // A list of n-grams may follow where n-grams are listed, and nothing elsewhere.
    let fits = scan.position() == end || (kind == 8 && scan.position() < end);
    if !fits {
        let problem =
            format!("expected the {words} words to end at byte {end}, found {}", scan.position());
        return Err(scan.source().malformed(chunk, problem));
    }
    Ok(Vocabulary { chunk, begin, words, parts })
}

fn read_matrix(scan: &mut Scan, chunk: u64, end: u64, budget: Budget) -> Result<Matrix, ReadError> {
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

fn read_norms(scan: &mut Scan, chunk: u64, end: u64) -> Result<Norms, ReadError> {
    let count = scan.u64("the number of norms")?;
    let begin = floats_begin(scan)?;
    check_floats(scan, chunk, begin, Some(count), end)?;
    Ok(Norms { chunk, begin, count })
}

/// Reads the type of numbers and says where they begin, behind the padding: at least one byte of
/// it, and four where the position is divisible by four already.
fn floats_begin(scan: &mut Scan) -> Result<u64, ReadError> {
    let at = scan.position();
    let kind = scan.u32("the type of numbers")?;
    if kind != F32 {
        let problem = format!("expected numbers of type {F32} (f32), found type {kind}");
        return Err(scan.source().malformed(at, problem));
    }
    let position = scan.position();
    Ok(position + 4 - position % 4)
}

fn check_floats(
    scan: &Scan,
    chunk: u64,
    begin: u64,
    floats: Option<u64>,
    end: u64,
) -> Result<(), ReadError> {
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
