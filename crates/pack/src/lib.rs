//! `cognate pack`: converts foreign word vectors and counts into one model file.
//!
//! The source is read once: its rows stream into a nameless temporary file, changes are fitted to
//! them there, and the changed and quantised rows stream into the model; only the vocabulary is
//! held in memory. The formats are known to `readers`, the model file to the crate `cognate`.

pub mod counts;
pub mod export;
pub mod fit;
pub mod inspect;
pub mod intake;
pub mod readers;
mod spool;
pub mod transform;

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

use cognate::methods::{Unfittable, polarity};
use cognate::model::format::{Dtype, Limits, PREFIX};
use cognate::model::pieces::put_pieces;
use cognate::model::unknown::Fallback;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Target, Written, clash, directory_of};
use cognate::model::{Counts, Frequency, LONGEST, ModelError, Unknown};
use cognate::text::Normalisation;
use cognate_files::progress::Progress;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
pub use inspect::hints;

use crate::counts::Documents;
use crate::fit::read_lines;
use crate::inspect::{describe, push_subword};
use crate::intake::{Intake, LeftOut, Policy};
use crate::readers::input::Input;
use crate::readers::{Place, ReadError, Source, Subword, VectorReader, format};
use crate::spool::Spool;
use crate::transform::{Changes, Matrix, Transform};

#[derive(Debug)]
pub struct PackOptions {
    pub source: Source,
    pub output: PathBuf,
    pub dtype: Dtype,
    pub policy: Policy,
    pub changes: Changes,
    /// Rules that turn texts into this vocabulary's words.
    pub normalisation: Normalisation,
    pub unknown: UnknownChoice,
    /// Vectors of word pieces, for words that neither stem nor parts find. Requires
    /// [`UnknownChoice::Fallback`].
    pub pieces: Option<Source>,
    pub frequency: Frequency,
    pub counts: Option<PathBuf>,
    pub corpus: Option<PathBuf>,
    pub polarity: Option<PathBuf>,
    pub documents: Documents,
    pub licence: Option<String>,
    pub auto_method: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnknownChoice {
    /// The format's own rule if it has one, else skip them.
    Format,
    Skip,
    Subword,
    /// Stem, parts, pieces if there are any, hash; composed vectors get this norm (by default the
    /// median norm of the rarer half of the words).
    Fallback {
        /// Norm of vectors composed of pieces or hashes.
        norm: Option<f32>,
    },
}

#[derive(Debug, serde::Serialize)]
pub struct Packed {
    pub words: u64,
    pub dims: usize,
    pub left_out: LeftOut,
    pub skipped_count_lines: u64,
    pub counted_words: u64,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.written.path.display())?;
        writeln!(
            f,
            "  {} words × {} dimensions, {} bytes",
            self.words, self.dims, self.written.bytes
        )?;
        if self.counted_words > 0 {
            writeln!(f, "  {} words with a count", self.counted_words)?;
        }
        let left_out = [
            (self.left_out.duplicates, "rows left out: the word stood before"),
            (self.left_out.non_finite, "rows left out: NaN, infinity, or too long"),
            (self.left_out.zero_rows, "rows left out: all zeros"),
            (self.left_out.bad_utf8, "rows left out: the word is not UTF-8"),
            (self.left_out.empty_words, "rows left out: the word is empty"),
            (self.skipped_count_lines, "lines of the count table have no count"),
        ];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "  {count} {what}")?;
        }
        write!(f, "{}", self.written)
    }
}

pub fn pack(options: &PackOptions) -> Result<Packed> {
    let mut sources = options.source.files();
    sources.extend(options.pieces.iter().flat_map(Source::files));
    let read = sources.iter().chain(&options.counts).chain(&options.corpus);
    let read = read.chain(&options.polarity);
    if let Some(problem) = clash(&[("-o", &options.output)], read.map(PathBuf::as_path)) {
        return Err(PackError::Options(problem));
    }
    if is_model(&options.source.path) {
        let problem = format!(
            "{}: a cognate model already; `cognate fit` adds components and a universe to it, and \
             other models are packed from the vectors that it was packed from",
            options.source.path.display()
        );
        return Err(PackError::Options(problem));
    }
    let target = Target::follow(&options.output).map_err(|source| ModelError::Io {
        path: options.output.clone(),
        action: "write to",
        source,
    })?;
    let directory = directory_of(&target.path);
    let spooled = PackError::spool(directory);
    let mut reader = format::open(&options.source)?;
    check(options, reader.as_ref())?;
    let mut policy = options.policy;
    policy.words = policy.words.min(Limits::DEFAULT.words);
    let intake = Intake::read(reader.as_mut(), &policy, directory, &Progress::bytes("reading"))?;
    let Intake { words, mut rows, counts, scores, left_out } = intake;
    let listed = words.len() as u64;
    if words.is_empty() {
        return Err(PackError::NoRows { path: options.source.path.clone() });
    }
    let tables = VocabularyTables::build(words.iter());
    let counts = gather_counts(options, counts, &tables)?;
    let transform =
        rows.rows().and_then(|rows| Transform::fit(&options.changes, &rows)).map_err(&spooled)?;
    let by_format = matches!(options.unknown, UnknownChoice::Format | UnknownChoice::Subword);
    let rule = reader.subword().filter(|_| by_format);
    let kept = reader.kept_buckets().map(<[u32]>::to_vec);
    if rule.is_some() {
        read_buckets(reader.as_mut(), &mut rows, directory)?;
    }
    let digest = reader.digest()?;
    let mut pieces = match &options.pieces {
        Some(source) => Some(transform::read_pieces(source, reader.dims(), directory)?),
        None => None,
    };
    let mut piece_rows = None;
    if let Some(pieces) = &mut pieces {
        let rows = pieces.rows.rows().map_err(&spooled)?;
        piece_rows =
            Some((&pieces.strings, Matrix::new(rows, &transform, options.dtype), &pieces.digest));
    }
    let (vectors, buckets) = rows.rows().map_err(&spooled)?.split_at(listed);
    let vectors = Matrix::new(vectors, &transform, options.dtype);
    let buckets = Matrix::new(buckets, &transform, options.dtype);
    let unknown = match options.unknown {
        UnknownChoice::Fallback { norm } => {
            let median = || vectors.median_norm_of_rarer_half().map_err(&spooled);
            let norm = norm.map_or_else(median, Ok)?;
            let piece_norm = piece_rows.as_ref().map(|_| norm);
            Unknown::Fallback(Fallback { piece_norm, ..Fallback::english(norm) })
        }
        _ if rule.is_some() => Unknown::Subword,
        _ => Unknown::Skip,
    };
    let polarity = match &options.polarity {
        Some(file) => Some(polarity::fit(&tables.view(), read_lines(file)?)?),
        None => None,
    };
    let mut draft = Draft::default();
    describe(&mut draft, options, &unknown, transform.dims(), digest)?;
    draft.tables.extend(vectors.tables("vectors", "scales"));
    draft.push_vocabulary(&tables);
    draft.push_counts(&counts);
    if let Some(rule) = rule {
        push_subword(&mut draft, rule, &buckets, &scores, kept.as_deref()).map_err(&spooled)?;
    }
    if let Some((strings, rows, digest)) = &piece_rows {
        let rows = rows.tables("rows", "scales");
        put_pieces(&mut draft, strings, rows, Some((*digest).clone()))
            .map_err(|error| PackError::Options(format!("pieces: {error}")))?;
    }
    polarity.iter().for_each(|polarity| polarity.put_into(&mut draft));
    let written = draft.write(&options.output)?;
    let occurrences = counts.occurrences.as_deref().unwrap_or_default();
    Ok(Packed {
        words: listed,
        dims: transform.dims(),
        left_out,
        skipped_count_lines: counts.skipped_lines,
        counted_words: occurrences.iter().filter(|&&count| count > 0).count() as u64,
        written,
    })
}

/// Whether a file starts like a cognate model, of any version and however damaged.
fn is_model(path: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Header {
        #[serde(rename = "__metadata__")]
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        format: String,
    }
    if !path.is_file() {
        return false;
    }
    let header = || {
        let mut file = File::open(path).ok()?;
        let mut prefix = [0; PREFIX as usize];
        file.read_exact(&mut prefix).ok()?;
        let length = u64::from_le_bytes(prefix);
        let mut json = Vec::new();
        file.take(length.min(Limits::DEFAULT.header_bytes)).read_to_end(&mut json).ok()?;
        serde_json::from_slice::<Header>(&json).ok()
    };
    header().is_some_and(|header| header.metadata.format.starts_with("cognate/"))
}

/// Adds the rows of the n-gram table; there are none if words are composed of pieces.
fn read_buckets(reader: &mut dyn VectorReader, rows: &mut Spool, directory: &Path) -> Result<()> {
    let mut row = vec![0.0; reader.dims()];
    for number in 0_u64.. {
        if !reader.next_bucket(&mut row)? {
            break;
        }
        let refuse = |problem: String| Err(PackError::Row { place: reader.place(), problem });
        if let Some(value) = row.iter().find(|value| !value.is_finite()) {
            return refuse(format!("n-gram row {number} holds {value}"));
        }
        if vector::norm(Row::F32(&row)) > LONGEST {
            return refuse(format!("n-gram row {number} is longer than {LONGEST:e}"));
        }
        rows.push(&row).map_err(PackError::spool(directory))?;
    }
    Ok(())
}

/// The counts from the first available: corpus, table, format.
fn gather_counts(
    options: &PackOptions,
    from_format: Option<Vec<u64>>,
    tables: &VocabularyTables,
) -> Result<Counts> {
    let vocabulary = tables.view();
    if let Some(corpus) = &options.corpus {
        let rules = &options.normalisation;
        let bar = Progress::bytes("counting");
        let input = Input::open(corpus)?;
        return counts::of_corpus(input, options.documents, &vocabulary, rules, &bar);
    }
    if let Some(table) = &options.counts {
        return counts::of_table(Input::open(table)?, &vocabulary, &Progress::bytes("counts"));
    }
    Ok(from_format.and_then(counts::of_format).unwrap_or_default())
}

fn check(options: &PackOptions, reader: &dyn VectorReader) -> Result<()> {
    let refuse = |problem: String| Err(PackError::Options(problem));
    let dims = reader.dims();
    if let Some((wanted, _)) = options.changes.dims
        && !(1..=dims).contains(&wanted)
    {
        return refuse(format!(
            "--dims: expected 1 to {dims}, the input's dimensions, got {wanted}"
        ));
    }
    if let Some(components) = options.changes.abtt
        && components >= dims
    {
        return refuse(format!("--abtt: expected fewer than {dims} components, got {components}"));
    }
    if options.changes.unit_norm && options.frequency == Frequency::InNorm {
        return refuse(
            "--unit-norm takes away the weight that --frequency in-norm says is in the length"
                .to_owned(),
        );
    }
    if options.pieces.is_some() && !matches!(options.unknown, UnknownChoice::Fallback { .. }) {
        return refuse("--pieces needs --unknown fallback, which makes use of them".to_owned());
    }
    if options.pieces.is_some() && (options.changes.unit_norm || options.changes.abtt.is_some()) {
        return refuse(
            "--unit-norm and --abtt do not hold for words made from --pieces, whose sum they would \
             change"
                .to_owned(),
        );
    }
    let subword = reader.subword();
    if options.unknown == UnknownChoice::Subword && subword.is_none() {
        return refuse(
            "--unknown subword: this format brings no rule for unlisted words".to_owned(),
        );
    }
    let by_ngrams = matches!(subword, Some(Subword::NGrams { .. }));
    let used = matches!(options.unknown, UnknownChoice::Format | UnknownChoice::Subword);
    if options.changes.unit_norm && by_ngrams && used {
        return refuse(
            "--unit-norm does not hold for words made from n-grams; add --unknown skip or fallback"
                .to_owned(),
        );
    }
    Ok(())
}

/// What is made of a model file, or why it cannot be.
pub type Result<T, E = PackError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{place}: {problem}")]
    Row { place: Place, problem: String },
    #[error("cannot keep rows in {}: {source}", directory.display())]
    Spool { directory: PathBuf, source: io::Error },
    #[error("{}: no line holds a word and a count", path.display())]
    NoCounts { path: PathBuf },
    #[error("{}: the input holds no usable row", path.display())]
    NoRows { path: PathBuf },
    #[error("{0}")]
    Options(String),
    #[error(transparent)]
    Unfittable(#[from] Unfittable),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl PackError {
    fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write { path: path.to_owned(), source }
    }

    fn spool(directory: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Spool { directory: directory.to_owned(), source }
    }
}
