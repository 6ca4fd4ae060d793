//! Flags of `cognate pack`.

use std::fmt;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use cognate::engine::{Engine, Served, auto_method};
use cognate::model::format::{Dtype, Limits};
use cognate::model::{Frequency, OpenOptions, Verify};
use cognate::text::Normalisation;
use cognate_pack::counts::Documents;
use cognate_pack::intake::{BadUtf8, FlawedRows, Policy};
use cognate_pack::readers::{Budget, Format, Source};
use cognate_pack::transform::{Changes, Cut};
use cognate_pack::{PackError, PackOptions, Packed, UnknownChoice};
use serde::Serialize;

use crate::cli::choices::{choice, normalisation};
use crate::cli::{Failure, count, show, usage};

#[derive(Debug, Args)]
pub(super) struct PackArgs {
    /// File with word vectors, or a model2vec folder; .gz and .zst are read directly
    input: PathBuf,
    /// Model file to write
    #[arg(short, long)]
    output: PathBuf,
    /// Format of the input [default: detected from its name and first bytes]
    #[arg(long, value_parser = format_names())]
    format: Option<Format>,
    /// Words of .npy and safetensors input, one a line
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
    /// Tensor to read from safetensors input [default: the only matrix]
    #[arg(long)]
    tensor: Option<String>,
    /// Take the first N words
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    words: Option<u64>,
    /// Reduce to N dimensions
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, Limits::DEFAULT.dims))]
    dims: Option<usize>,
    /// How to reduce the dimensions
    #[arg(long, value_parser = choice::<Cut>(), default_value = "pca")]
    cut: Cut,
    /// Element type of the vectors
    #[arg(long, value_parser = choice::<Dtype>(), default_value = "f32")]
    dtype: Dtype,
    /// Rules that turn texts into words
    #[arg(long, value_name = "PRESET", default_value = "plain", value_parser = normalisation())]
    normalisation: Normalisation,
    /// Lower-case the words; of words that become equal, keep the first
    #[arg(long)]
    lower: bool,
    /// Vectors of words that are not in the vocabulary [default: the format's rule, else skip]
    #[arg(long, value_enum)]
    unknown: Option<UnknownKind>,
    /// Vectors of pieces of words for --unknown fallback; `##` begins a piece within a word
    #[arg(long, value_name = "FILE")]
    pieces: Option<PathBuf>,
    /// Pieces of .npy and safetensors input, one a line
    #[arg(long, value_name = "FILE", requires = "pieces")]
    pieces_vocabulary: Option<PathBuf>,
    /// Length of the vectors that --unknown fallback makes [default: median of the rarer half]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    hash_norm: Option<f32>,
    /// All-but-the-top: subtract the mean and the first K principal components
    #[arg(long, value_name = "K", value_parser = count::<usize>(0, Limits::DEFAULT.dims))]
    abtt: Option<usize>,
    /// Give every vector length 1
    #[arg(long)]
    unit_norm: bool,
    /// Whether the vectors' lengths already carry the words' weights (none, in-norm)
    #[arg(long, default_value = "none")]
    frequency: Frequency,
    /// Word counts: a word, a tab and its count in each line
    #[arg(long, value_name = "FILE", conflicts_with = "corpus")]
    counts: Option<PathBuf>,
    /// Running text to count words and documents in
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// What the documents of --corpus are
    #[arg(long, value_parser = choice::<Documents>(), default_value = "line")]
    documents: Documents,
    /// File of negating words, opposites and numbers, for polarity-blend
    #[arg(long, value_name = "FILE")]
    polarity: Option<PathBuf>,
    /// Duplicate words: keep the first, or stop
    #[arg(long, value_parser = choice::<FlawedRows>(), default_value = "drop")]
    duplicates: FlawedRows,
    /// Rows with NaN or infinity, or whose norm overflows: drop, or stop
    #[arg(long, value_parser = choice::<FlawedRows>(), default_value = "refuse")]
    non_finite: FlawedRows,
    /// Words that are not UTF-8
    #[arg(long, value_parser = choice::<BadUtf8>(), default_value = "skip")]
    utf8: BadUtf8,
    /// Licence of the vectors, stored in the file
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// The method that `auto` stands for with these vectors
    #[arg(long, value_name = "METHOD", value_parser = auto_method)]
    auto_method: Option<&'static str>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UnknownKind {
    /// Leave the word out
    Skip,
    /// Made from parts of the word, by the rule of the format
    Subword,
    /// Stem, parts, pieces where given, then a vector made from the hash of the word
    Fallback,
}

/// The formats, listed in help and in the error for an unknown one.
fn format_names() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|format| format.name());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// Longest hash vector: products of vectors as long as that are still finite.
const MAX_LENGTH: f32 = 1e9;

fn length(text: &str) -> Result<f32, String> {
    let length = text.parse().ok().filter(|&length: &f32| length > 0.0 && length <= MAX_LENGTH);
    length.ok_or_else(|| format!("expected a length above 0, at most {MAX_LENGTH}"))
}

impl PackArgs {
    fn options(self) -> PackOptions {
        let unknown = match self.unknown {
            None => UnknownChoice::Format,
            Some(UnknownKind::Skip) => UnknownChoice::Skip,
            Some(UnknownKind::Subword) => UnknownChoice::Subword,
            Some(UnknownKind::Fallback) => UnknownChoice::Fallback { norm: self.hash_norm },
        };
        PackOptions {
            source: Source {
                path: self.input,
                format: self.format,
                vocabulary: self.vocabulary,
                tensor: self.tensor,
                budget: Budget::DEFAULT,
            },
            output: self.output,
            dtype: self.dtype,
            policy: Policy {
                duplicates: self.duplicates,
                non_finite: self.non_finite,
                utf8: self.utf8,
                lower: self.lower,
                words: self.words.unwrap_or(u64::MAX),
            },
            changes: Changes {
                abtt: self.abtt,
                dims: self.dims.map(|dims| (dims, self.cut)),
                unit_norm: self.unit_norm,
            },
            normalisation: self.normalisation,
            unknown,
            pieces: self
                .pieces
                .map(|pieces| Source { vocabulary: self.pieces_vocabulary, ..Source::at(pieces) }),
            frequency: self.frequency,
            counts: self.counts,
            corpus: self.corpus,
            polarity: self.polarity,
            documents: self.documents,
            licence: self.licence,
            auto_method: self.auto_method.map(str::to_owned),
        }
    }
}

/// The packed model, and what it can be used for.
#[derive(Debug, Serialize)]
struct Done {
    #[serde(flatten)]
    packed: Packed,
    #[serde(flatten)]
    served: Served,
    hints: Vec<String>,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.packed, self.served)?;
        self.hints.iter().try_for_each(|hint| write!(f, "\n  note: {hint}"))
    }
}

pub(super) fn refused(error: PackError) -> Failure {
    match error {
        PackError::Options(problem) => usage(problem),
        other => other.into(),
    }
}

pub(super) fn run(args: PackArgs) -> Result<(), Failure> {
    let as_json = args.json;
    let packed = cognate_pack::pack(&args.options()).map_err(refused)?;
    // The writer has read back every byte.
    let options = OpenOptions { verify: Verify::Structure, ..OpenOptions::default() };
    let engine = Engine::open(&packed.written.path, &options)?;
    let hints = cognate_pack::hints(engine.model());
    show(&Done { packed, served: engine.served(), hints }, as_json)
}
