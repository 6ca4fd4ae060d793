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
//! The vector of a word is not stored: it is the mean of the word's own row and the rows of its
//! n-grams (of those that pruning kept). The dictionary is streamed and rows are read by position, so
//! neither is held in memory; only the list of kept n-grams is, eight bytes each. How n-grams are
//! hashed is known to `model::subword`. The output matrix is skipped: it serves training and
//! classification only.

use std::path::Path;

use cognate::model::subword::NGrams;

use super::positioned::{Scan, Source};
use super::{Budget, Info, Mark, Opened, Place, Result, Subword, VectorReader};

const MAGIC: i32 = 793_712_314;

pub(crate) const INFO: Info = Info {
    name: "fasttext",
    mark: Mark::Bytes(|first, _| first.starts_with(&MAGIC.to_le_bytes())),
};

pub(super) fn open(source: &super::Source) -> Opened {
    Ok(Box::new(FastTextReader::open(&source.path, source.budget)?))
}

#[derive(Debug)]
pub struct FastTextReader {
    scan: Scan,
    word_bytes: usize,
    dims: usize,
    words: u64,
    ngram_rows: u64,
    ngrams: Option<NGrams>,
    kept: Option<KeptNGrams>,
    /// The end of the matrix was checked against the size of the file.
    matrix: Matrix,
    next_word: u64,
    next_bucket: u64,
    place: u64,
    count: Option<u64>,
    bytes: Vec<u8>,
    part: Vec<f32>,
}

impl FastTextReader {
    /// Opens a model and checks everything but the numbers in its matrices.
    pub fn open(path: &Path, budget: Budget) -> Result<Self> {
        Self::over(Source::open(path)?, budget)
    }

    pub fn over(source: Source, budget: Budget) -> Result<Self> {
        let mut scan = Scan::new(source);
        let arguments = Arguments::read(&mut scan, budget)?;
        let entries = read_head(&mut scan, budget)?;
        let begin = scan.position();
        check_entries(&mut scan, entries, budget)?;
        let mut kept = None;
        let mut ngram_rows = arguments.buckets;
        if let Some(count) = entries.kept {
            kept = Some(KeptNGrams::new(&read_kept(&mut scan, count, arguments.buckets)?));
            ngram_rows = count;
        }
        let matrix = Matrix::input(&mut scan, entries.words + ngram_rows, arguments.dims)?;
        check_output(&mut scan)?;
        scan.seek(begin);
        Ok(Self {
            scan,
            word_bytes: budget.word_bytes,
            dims: arguments.dims,
            words: entries.words,
            ngram_rows,
            // If every n-gram was pruned, words consist of their own rows alone.
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

    /// The index of a bucket's row, which follows those of the words; `None` if it was pruned.
    fn ngram_row(&self, bucket: u64) -> Option<u64> {
        self.kept.as_ref().map_or_else(|| Some(bucket), |kept| kept.row(bucket))
    }
}

#[derive(Debug)]
struct KeptNGrams {
    buckets: Vec<u32>,
    rows: Vec<u32>,
}

impl KeptNGrams {
    fn new(pairs: &[(u32, u32)]) -> Self {
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

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool> {
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
        // fastText divides in double precision and multiplies in single, so this gives the same
        // bits.
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

    fn digest(&mut self) -> Result<String> {
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

    fn next_bucket(&mut self, row: &mut [f32]) -> Result<bool> {
        if self.ngrams.is_none() || self.next_bucket == self.ngram_rows {
            return Ok(false);
        }
        let ngram = match &self.kept {
            None => self.next_bucket,
            // There is one kept row for each kept bucket.
            Some(kept) => kept.rows.get(self.next_bucket as usize).map_or(0, |&row| row.into()),
        };
        self.place = self.matrix.row_at(self.words + ngram);
        self.matrix.row(self.scan.source(), self.words + ngram, &mut self.bytes, row)?;
        self.next_bucket += 1;
        Ok(true)
    }
}

/// Minimum bytes of a dictionary entry: the zero byte, the count and the kind.
const SMALLEST_ENTRY: u64 = 10;
/// Bytes of a kept n-gram: its bucket and its row.
const PAIR: u64 = 8;

#[derive(Clone, Copy)]
struct Entries {
    words: u64,
    labels: u64,
    /// Number of n-grams that pruning kept; `None` for a model that was not pruned.
    kept: Option<u64>,
}

/// Reads the numbers before the dictionary and checks them against the remaining size.
fn read_head(scan: &mut Scan, budget: Budget) -> Result<Entries> {
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
    let kept = match scan.i64("the number of n-grams kept")? {
        -1 => None,
        kept => Some(u64::try_from(kept).map_err(|_| {
            let problem = format!("expected -1 or a number of n-grams kept, found {kept}");
            scan.source().malformed(pruned_at, problem)
        })?),
    };
    if u64::from(words) > budget.words {
        let problem = format!("{words} words, at most {} are taken", budget.words);
        return Err(scan.source().unsupported(problem));
    }
    let pairs = kept.unwrap_or(0).checked_mul(PAIR);
    let smallest = pairs.and_then(|pairs| pairs.checked_add(u64::from(entries) * SMALLEST_ENTRY));
    if smallest.is_none_or(|smallest| smallest > scan.left()) {
        let kept = kept.map_or(String::new(), |kept| format!(" and {kept} n-grams"));
        let problem = format!(
            "{entries} dictionary entries{kept} cannot fit in the {} bytes left",
            scan.left()
        );
        return Err(scan.source().malformed(at, problem));
    }
    Ok(Entries { words: u64::from(words), labels: u64::from(labels), kept })
}

/// Walks over the dictionary once, so that an error in it is reported before hours of packing.
fn check_entries(scan: &mut Scan, entries: Entries, budget: Budget) -> Result<()> {
    let mut word = Vec::new();
    for index in 0..entries.words + entries.labels {
        scan.terminated_word(&mut word, budget.word_bytes)?;
        let at = scan.position();
        let count = scan.i64("a word's count")?;
        if count < 0 {
            let problem = format!("expected a word's count, found {count}");
            return Err(scan.source().malformed(at, problem));
        }
        // Rows are numbered by entries, so a label between words would shift them.
        let expected = u8::from(index >= entries.words);
        let [kind] = scan.array("a word's kind")?;
        if kind != expected {
            let problem = format!("expected kind {expected} for entry {index}, found {kind}");
            return Err(scan.source().malformed(at + 8, problem));
        }
    }
    Ok(())
}

/// Reads the kept n-grams: for each its bucket and its row (counted after the words), sorted by
/// bucket.
fn read_kept(scan: &mut Scan, count: u64, buckets: u64) -> Result<Vec<(u32, u32)>> {
    let begin = scan.position();
    // The size of the pairs was checked against the file.
    let mut kept = Vec::new();
    for _ in 0..count {
        let at = scan.position();
        let pair = (scan.i32("the bucket of an n-gram")?, scan.i32("the row of an n-gram")?);
        let (bucket, row) = (u32::try_from(pair.0), u32::try_from(pair.1));
        match (bucket, row) {
            (Ok(bucket), Ok(row)) if u64::from(bucket) < buckets && u64::from(row) < count => {
                kept.push((bucket, row));
            }
            _ => {
                let problem = format!(
                    "expected a bucket below {buckets} and a row below {count}, found {} and {}",
                    pair.0, pair.1
                );
                return Err(scan.source().malformed(at, problem));
            }
        }
    }
    kept.sort_unstable();
    if kept.windows(2).any(|two| matches!(two, [a, b] if a.0 == b.0)) {
        return Err(scan.source().malformed(begin, "the same n-gram occurs twice"));
    }
    Ok(kept)
}

/// Codes 1 to 3 are cbow, skip-gram and supervised.
const SUPERVISED: i32 = 3;
/// Codes 1 to 4 are hierarchical softmax, negative sampling, softmax and one-vs-all.
const LAST_LOSS: i32 = 4;
/// fastText's default is 6; with longer n-grams, summing up one word would take too long.
const LONGEST_NGRAM: u32 = 64;

struct Arguments {
    dims: usize,
    buckets: u64,
    shortest: u32,
    longest: u32,
}

impl Arguments {
    fn read(scan: &mut Scan, budget: Budget) -> Result<Self> {
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
        // Supervised models of version 11 were trained without n-grams, whatever they state.
        if version == 11 && model == SUPERVISED as u32 {
            longest = 0;
        }
        Ok(Self { dims: dims as usize, buckets: u64::from(buckets), shortest, longest })
    }

    /// The n-gram rule, unless it produces nothing. A supervised model without character n-grams
    /// may still have buckets: they belong to its word n-grams.
    fn ngrams(&self) -> Option<NGrams> {
        let some = self.longest > 0 && self.shortest <= self.longest && self.buckets > 0;
        let rule = NGrams { min: self.shortest, max: self.longest, buckets: self.buckets };
        some.then_some(rule)
    }
}

fn argument(scan: &mut Scan, name: &str, least: i32, most: i32) -> Result<u32> {
    let at = scan.position();
    let value = scan.i32(name)?;
    if (least..=most).contains(&value) {
        return Ok(value.unsigned_abs());
    }
    let problem = format!("expected {name} between {least} and {most}, found {value}");
    Err(scan.source().malformed(at, problem))
}

const CENTROIDS: usize = 256;

#[derive(Debug)]
enum Matrix {
    Floats { begin: u64, dims: usize },
    Quantised(Quantised),
}

#[derive(Debug)]
struct Quantised {
    codes: u64,
    parts: Quantiser,
    lengths: Option<(u64, Quantiser)>,
}

#[derive(Debug)]
struct Quantiser {
    dims: usize,
    part: usize,
    centroids: Vec<f32>,
}

impl Matrix {
    /// Checks the shape and size of the input matrix, of floats or codes, and skips it.
    fn input(scan: &mut Scan, rows: u64, dims: usize) -> Result<Self> {
        if flag(scan, "whether the input is quantised")? {
            return Ok(Self::Quantised(Quantised::read(scan, rows, dims)?));
        }
        let (at, shape) = shape(scan, rows, dims)?;
        let begin = scan.position();
        step_over_matrix(scan, at, shape)?;
        Ok(Self::Floats { begin, dims })
    }

    /// Byte offset of a row. It cannot overflow for an existing row, because the whole matrix lies
    /// within the file.
    fn row_at(&self, row: u64) -> u64 {
        match self {
            Self::Floats { begin, dims } => begin + row * *dims as u64 * 4,
            Self::Quantised(rows) => rows.codes + row * rows.parts.count() as u64,
        }
    }

    /// Reads a row; `bytes` is a reusable buffer.
    fn row(&self, source: &Source, row: u64, bytes: &mut Vec<u8>, out: &mut [f32]) -> Result<()> {
        let at = self.row_at(row);
        let rows = match self {
            Self::Floats { .. } => return source.floats_at(at, bytes, out),
            Self::Quantised(rows) => rows,
        };
        let mut length = 1.0;
        if let Some((begin, lengths)) = &rows.lengths {
            let mut code = [0; 1];
            source.read_at(begin + row, &mut code)?;
            lengths.decode(&code, 1.0, std::slice::from_mut(&mut length));
        }
        bytes.resize(rows.parts.count(), 0);
        source.read_at(at, bytes)?;
        rows.parts.decode(bytes, length, out);
        Ok(())
    }
}

impl Quantised {
    fn read(scan: &mut Scan, rows: u64, dims: usize) -> Result<Self> {
        let with_lengths = flag(scan, "whether lengths are quantised")?;
        shape(scan, rows, dims)?;
        let at = scan.position();
        let size = scan.i32("the number of codes")?;
        let codes = scan.position();
        let size = u64::try_from(size).ok().filter(|&size| size <= scan.left());
        let Some(size) = size else {
            return Err(scan.source().malformed(at, "more codes than fit in the file"));
        };
        scan.seek(codes + size);
        let parts = Quantiser::read(scan, dims)?;
        if rows.checked_mul(parts.count() as u64) != Some(size) {
            let problem =
                format!("expected {} codes for each of {rows} rows, found {size}", parts.count());
            return Err(scan.source().malformed(at, problem));
        }
        let mut lengths = None;
        if with_lengths {
            let begin = scan.position();
            if rows > scan.left() {
                return Err(scan.source().malformed(begin, "more lengths than fit in the file"));
            }
            scan.seek(begin + rows);
            lengths = Some((begin, Quantiser::read(scan, 1)?));
        }
        Ok(Self { codes, parts, lengths })
    }
}

impl Quantiser {
    fn read(scan: &mut Scan, dims: usize) -> Result<Self> {
        let at = scan.position();
        let mut number = |what| scan.i32(what).map(|number| usize::try_from(number).unwrap_or(0));
        let found = [
            number("the dimensions of a quantiser")?,
            number("the parts of a quantiser")?,
            number("the numbers of a part")?,
            number("the numbers of the last part")?,
        ];
        let part = found[2];
        let last = match dims.checked_rem(part) {
            Some(0) => part,
            Some(rest) => rest,
            None => 0,
        };
        if part == 0 || found != [dims, dims.div_ceil(part), part, last] {
            let problem = format!(
                "expected a quantiser of {dims} dimensions and parts that cover them, found \
                 dimensions, parts and their numbers {found:?}"
            );
            return Err(scan.source().malformed(at, problem));
        }
        let begin = scan.position();
        // A row has at most `Budget::dims` numbers.
        let count = CENTROIDS * dims;
        if count as u64 * 4 > scan.left() {
            return Err(scan.source().malformed(begin, "more centroids than fit in the file"));
        }
        let mut centroids = vec![0.0; count];
        scan.source().floats_at(begin, &mut Vec::new(), &mut centroids)?;
        scan.seek(begin + count as u64 * 4);
        Ok(Self { dims, part, centroids })
    }

    fn count(&self) -> usize {
        self.dims.div_ceil(self.part)
    }

    fn decode(&self, codes: &[u8], scale: f32, out: &mut [f32]) {
        let blocks = self.centroids.chunks(CENTROIDS * self.part);
        for ((out, block), &code) in out.chunks_mut(self.part).zip(blocks).zip(codes) {
            let begin = usize::from(code) * out.len();
            let centroid = block.get(begin..).unwrap_or_default();
            for (value, number) in out.iter_mut().zip(centroid) {
                *value = scale * number;
            }
        }
    }
}

/// Reads a shape, which must equal the given shape, and returns the offset after it.
fn shape(scan: &mut Scan, rows: u64, dims: usize) -> Result<(u64, (i64, i64))> {
    let at = scan.position();
    let shape = (scan.i64("rows")?, scan.i64("columns")?);
    if (u64::try_from(shape.0), usize::try_from(shape.1)) == (Ok(rows), Ok(dims)) {
        return Ok((at, shape));
    }
    let problem = format!(
        "expected an input matrix of {rows} x {dims} (words and buckets by dimensions), \
         found {} x {}",
        shape.0, shape.1
    );
    Err(scan.source().malformed(at, problem))
}

/// The output matrix is not read, but a file that ends within it is incomplete.
fn check_output(scan: &mut Scan) -> Result<()> {
    if flag(scan, "whether the output is quantised")? {
        return Ok(());
    }
    let at = scan.position();
    let shape = (scan.i64("rows")?, scan.i64("columns")?);
    step_over_matrix(scan, at, shape)
}

fn flag(scan: &mut Scan, what: &str) -> Result<bool> {
    let at = scan.position();
    match scan.array(what)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => {
            Err(scan.source().malformed(at, format!("expected {what}, 0 or 1, found {other}")))
        }
    }
}

fn step_over_matrix(scan: &mut Scan, at: u64, shape: (i64, i64)) -> Result<()> {
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
