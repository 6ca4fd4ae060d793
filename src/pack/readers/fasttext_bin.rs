//! Binary models of fastText (`.bin`), versions 11 and 12, unsupervised and supervised.
//!
//! ```text
//! i32 magic 793712314, i32 version
//! i32 dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate; f64 t
//! i32 entries, words, labels; i64 tokens, pruned n-grams (-1: the model is not pruned)
//! entries times: bytes of the word, 0; i64 count; i8 kind (0 word, 1 label)
//! u8 input is quantised; i64 rows, columns; f32 rows x columns: the words, then the buckets
//! u8 output is quantised; i64 rows, columns; f32 rows x columns
//! ```
//!
//! The vector of a word is not stored: it is the mean of the word's own row and those of its
//! n-grams. The dictionary streams past while rows are fetched by position, so neither is held.
//! Knows nothing of how n-grams are hashed (`model::subword` does) and leaves the output matrix
//! alone: it serves training and classification only.

use std::path::Path;

use super::Budget;
use super::Info;
use super::Mark;
use super::Opened;
use super::Place;
use super::ReadError;
use super::Subword;
use super::VectorReader;
use super::positioned::Scan;
use super::positioned::Source;
use super::source;
use crate::model::subword::NGrams;

const MAGIC: i32 = 793_712_314;
/// Models 1 to 3 are cbow, skip-gram and supervised.
const SUPERVISED: i32 = 3;
/// Losses 1 to 4 are hierarchical softmax, negative sampling, softmax and one against all.
const LAST_LOSS: i32 = 4;
/// An entry of the dictionary is at least its zero byte, its count and its kind.
const SMALLEST_ENTRY: u64 = 10;
/// fastText's default is 6; beyond this the n-grams of one word would take forever to sum up.
const LONGEST_NGRAM: u32 = 64;

/// How it is called and recognised.
pub(crate) const INFO: Info = Info {
    name: "fasttext",
    mark: Mark::Bytes(|first, _| first.starts_with(&MAGIC.to_le_bytes())),
};

/// Opens a model.
pub(super) fn open(source: &source::Source) -> Opened {
    Ok(Box::new(FastTextReader::open(&source.path, source.budget)?))
}

/// A stream over the words of a binary fastText model.
#[derive(Debug)]
pub struct FastTextReader {
    scan: Scan,
    word_bytes: usize,
    dims: usize,
    words: u64,
    buckets: u64,
    ngrams: Option<NGrams>,
    /// Where the input matrix begins; it was checked to end within the file.
    matrix: u64,
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
        let words = skip_dictionary_head(&mut scan, budget)?;
        let dictionary = scan.position();
        check_dictionary(&mut scan, words, budget)?;
        let rows = words.words + arguments.buckets;
        let matrix = input_matrix(&mut scan, rows, arguments.dims)?;
        check_output_matrix(&mut scan)?;
        scan.seek(dictionary);
        Ok(Self {
            scan,
            word_bytes: budget.word_bytes,
            dims: arguments.dims,
            words: words.words,
            buckets: arguments.buckets,
            ngrams: arguments.ngrams(),
            matrix,
            next_word: 0,
            next_bucket: 0,
            place: dictionary,
            count: None,
            bytes: Vec::new(),
            part: vec![0.0; arguments.dims],
        })
    }

    fn row_bytes(&self) -> u64 {
        self.dims as u64 * 4
    }

    /// Where a row of the input matrix begins. Cannot overflow for a row that there is, because
    /// the whole matrix was found to lie inside the file.
    fn row_at(&self, row: u64) -> u64 {
        self.matrix + row * self.row_bytes()
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

        let own = self.row_at(self.next_word);
        self.scan.source().floats_at(own, &mut self.bytes, row)?;
        let mut rows = 1u32;
        for id in self.ngrams.iter().flat_map(|rule| rule.ids_of_listed(word)) {
            let at = self.row_at(self.words + id);
            self.scan.source().floats_at(at, &mut self.bytes, &mut self.part)?;
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
        let buckets = self.ngrams.map_or(0, |rule| rule.buckets);
        let row = self.row_bytes();
        ((self.next_word + self.next_bucket) * row, (self.words + buckets) * row)
    }

    fn count(&self) -> Option<u64> {
        self.count
    }

    fn subword(&self) -> Option<Subword> {
        self.ngrams.map(|NGrams { min, max, buckets }| Subword::NGrams { min, max, buckets })
    }

    fn next_bucket(&mut self, row: &mut [f32]) -> Result<bool, ReadError> {
        if self.ngrams.is_none() || self.next_bucket == self.buckets {
            return Ok(false);
        }
        let at = self.row_at(self.words + self.next_bucket);
        self.place = at;
        self.scan.source().floats_at(at, &mut self.bytes, row)?;
        self.next_bucket += 1;
        Ok(true)
    }
}

/// What a model was trained with, as far as its vectors depend on it.
struct Arguments {
    dims: usize,
    buckets: u64,
    shortest: u32,
    longest: u32,
}

impl Arguments {
    fn read(scan: &mut Scan, budget: Budget) -> Result<Self, ReadError> {
        let magic = scan.i32("the magic number")?;
        if magic != MAGIC {
            return Err(scan.source().unsupported(format!(
                "no binary fastText model of version 11 or 12: it begins with {magic} where \
                 {MAGIC} is expected. Files from before 2017 have no such number; open and save \
                 them with gensim or export their vectors as text"
            )));
        }
        let version = scan.i32("the version")?;
        if !(11..=12).contains(&version) {
            let problem = format!("fastText version 11 or 12 is expected, found {version}");
            return Err(scan.source().unsupported(problem));
        }
        let dims = argument(scan, "dim", 1, i32::MAX)?;
        if dims as usize > budget.dims {
            let problem =
                format!("vectors of {dims} dimensions, at most {} are taken", budget.dims);
            return Err(scan.source().unsupported(problem));
        }
        for what in ["ws", "epoch", "minCount", "neg", "wordNgrams"] {
            scan.i32(what)?;
        }
        argument(scan, "loss", 1, LAST_LOSS)?;
        let model = argument(scan, "model", 1, SUPERVISED)?;
        let buckets = argument(scan, "bucket", 0, i32::MAX)?;
        let shortest = argument(scan, "minn", 0, i32::MAX)?;
        let mut longest = argument(scan, "maxn", 0, i32::MAX)?;
        if longest > LONGEST_NGRAM {
            let problem =
                format!("n-grams of {longest} characters, at most {LONGEST_NGRAM} are taken");
            return Err(scan.source().unsupported(problem));
        }
        scan.i32("lrUpdateRate")?;
        scan.array::<8>("t")?;
        // Supervised models of version 11 were trained without n-grams, whatever they say.
        if version == 11 && model == SUPERVISED as u32 {
            longest = 0;
        }
        Ok(Self { dims: dims as usize, buckets: u64::from(buckets), shortest, longest })
    }

    /// The n-gram rule, unless it yields nothing. A supervised model without character n-grams
    /// may still have buckets: those belong to its word n-grams.
    fn ngrams(&self) -> Option<NGrams> {
        let some = self.longest > 0 && self.shortest <= self.longest && self.buckets > 0;
        let rule = NGrams { min: self.shortest, max: self.longest, buckets: self.buckets };
        some.then_some(rule)
    }
}

fn argument(scan: &mut Scan, name: &str, least: i32, most: i32) -> Result<u32, ReadError> {
    let at = scan.position();
    let value = scan.i32(name)?;
    if (least..=most).contains(&value) {
        return Ok(value.unsigned_abs());
    }
    let problem = format!("expected {name} between {least} and {most}, found {value}");
    Err(scan.source().malformed(at, problem))
}

#[derive(Clone, Copy)]
struct Entries {
    words: u64,
    labels: u64,
}

/// Reads the numbers before the dictionary and checks them against what is left of the file.
fn skip_dictionary_head(scan: &mut Scan, budget: Budget) -> Result<Entries, ReadError> {
    let at = scan.position();
    let entries = argument(scan, "the number of dictionary entries", 0, i32::MAX)?;
    let words = argument(scan, "the number of words", 0, i32::MAX)?;
    let labels = argument(scan, "the number of labels", 0, i32::MAX)?;
    if words.checked_add(labels) != Some(entries) {
        let problem =
            format!("expected {entries} entries, found {words} words and {labels} labels");
        return Err(scan.source().malformed(at, problem));
    }
    let tokens_at = scan.position();
    let tokens = scan.i64("the number of tokens")?;
    if tokens < 0 {
        let problem = format!("expected a number of tokens, found {tokens}");
        return Err(scan.source().malformed(tokens_at, problem));
    }
    let pruned_at = scan.position();
    match scan.i64("the number of pruned n-grams")? {
        -1 => {}
        pruned if pruned < 0 => {
            let problem = format!("expected -1 or a number of pruned n-grams, found {pruned}");
            return Err(scan.source().malformed(pruned_at, problem));
        }
        _ => return Err(scan.source().unsupported(QUANTISED)),
    }
    if u64::from(words) > budget.words {
        let problem = format!("{words} words, at most {} are taken", budget.words);
        return Err(scan.source().unsupported(problem));
    }
    if u64::from(entries) * SMALLEST_ENTRY > scan.left() {
        let problem =
            format!("{entries} dictionary entries cannot fit in the {} bytes left", scan.left());
        return Err(scan.source().malformed(at, problem));
    }
    Ok(Entries { words: u64::from(words), labels: u64::from(labels) })
}

const QUANTISED: &str = "a quantised or pruned fastText model (.ftz): pack the full .bin model that it was made from, \
     or its vectors as text";

/// Walks over the dictionary once, so that a fault in it is reported before hours of packing.
fn check_dictionary(scan: &mut Scan, entries: Entries, budget: Budget) -> Result<(), ReadError> {
    let mut word = Vec::new();
    for index in 0..entries.words + entries.labels {
        scan.terminated_word(&mut word, budget.word_bytes)?;
        let at = scan.position();
        let count = scan.i64("a word's count")?;
        if count < 0 {
            let problem = format!("expected a word's count, found {count}");
            return Err(scan.source().malformed(at, problem));
        }
        // Rows are numbered by entries, so a label among the words would shift them.
        let expected = u8::from(index >= entries.words);
        let [kind] = scan.array("a word's kind")?;
        if kind != expected {
            let problem = format!("expected kind {expected} for entry {index}, found {kind}");
            return Err(scan.source().malformed(at + 8, problem));
        }
    }
    Ok(())
}

/// Checks shape and size of the input matrix, steps over it, and says where its rows begin.
fn input_matrix(scan: &mut Scan, rows: u64, dims: usize) -> Result<u64, ReadError> {
    if flag(scan, "whether the input is quantised")? {
        return Err(scan.source().unsupported(QUANTISED));
    }
    let at = scan.position();
    let shape = (scan.i64("rows")?, scan.i64("columns")?);
    if (u64::try_from(shape.0), usize::try_from(shape.1)) != (Ok(rows), Ok(dims)) {
        let problem = format!(
            "expected an input matrix of {rows} x {dims} (words and buckets by dimensions), \
             found {} x {}",
            shape.0, shape.1
        );
        return Err(scan.source().malformed(at, problem));
    }
    let begin = scan.position();
    step_over_matrix(scan, at, shape)?;
    Ok(begin)
}

/// The output matrix is not read, but a file that ends inside it is a broken copy.
fn check_output_matrix(scan: &mut Scan) -> Result<(), ReadError> {
    if flag(scan, "whether the output is quantised")? {
        return Ok(());
    }
    let at = scan.position();
    let shape = (scan.i64("rows")?, scan.i64("columns")?);
    step_over_matrix(scan, at, shape)
}

fn flag(scan: &mut Scan, what: &str) -> Result<bool, ReadError> {
    let at = scan.position();
    match scan.array(what)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => {
            Err(scan.source().malformed(at, format!("expected {what}, 0 or 1, found {other}")))
        }
    }
}

fn step_over_matrix(scan: &mut Scan, at: u64, shape: (i64, i64)) -> Result<(), ReadError> {
    let bytes = u64::try_from(shape.0)
        .ok()
        .zip(u64::try_from(shape.1).ok())
        .and_then(|(rows, columns)| rows.checked_mul(columns)?.checked_mul(4))
        .filter(|&bytes| bytes <= scan.left());
    let Some(bytes) = bytes else {
        let problem = format!(
            "a matrix of {} x {} floats cannot fit in the {} bytes left",
            shape.0,
            shape.1,
            scan.left()
        );
        return Err(scan.source().malformed(at, problem));
    };
    scan.seek(scan.position() + bytes);
    Ok(())
}
