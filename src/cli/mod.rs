//! The command line: flags, their help and defaults, converted to the options of each subcommand.
//!
//! Nothing is computed here. Exit codes: 0 ok, 1 failed while running, 2 usage or configuration, 74
//! no room left for the output.

mod ask;
mod choices;
mod collection;
mod dedupe;
#[cfg(feature = "eval")]
mod eval;
mod events;
mod export;
mod files;
mod fit;
mod healthcheck;
mod inspect;
mod keygen;
mod log;
mod machine;
mod model;
mod model_file;
mod pack;
#[cfg(feature = "train")]
mod pairs;
mod serve;
mod shell;
#[cfg(feature = "train")]
mod train;

use std::io;
use std::io::{ErrorKind, Write};

use clap::builder::RangedU64ValueParser;
use clap::{CommandFactory, Parser, Subcommand};
use cognate::model::sigbus;
use cognate_files::instant;
use cognate_kernels::simd;

use crate::http::build;

/// Score how similar very short texts are, in microseconds on a CPU.
#[derive(Debug, Parser)]
#[command(name = "cognate", version, long_version = long_version(), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Convert word vectors and counts into a model file
    Pack(Box<pack::PackArgs>),
    /// Write a model file as a folder for model2vec or sentence-transformers
    Export(export::ExportArgs),
    /// Fit components or a universe to a model file, for the methods that need them
    Fit(fit::FitArgs),
    /// Start the HTTP service
    Serve(serve::ServeArgs),
    /// Score how similar two texts are, or those of every row of files
    Similarity(Box<ask::similarity::SimilarityArgs>),
    /// Rank candidates by similarity to a text, or those of every query of files
    Rank(Box<ask::rank::RankArgs>),
    /// Print the vectors of texts, or write those of every row of files
    Embed(Box<ask::embed::EmbedArgs>),
    /// Show what each word adds to the score of two texts
    Explain(ask::explain::ExplainArgs),
    /// Find near-duplicates in a file, or of one file in another
    Dedupe(Box<dedupe::DedupeArgs>),
    /// Print a script that completes commands and flags in a shell
    Completions(shell::CompletionsArgs),
    /// Print the manual page of a command
    Man(shell::ManArgs),
    /// Check whether a running service is ready: exit code 0 if it is, 1 if not
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Generate an API key and the line for the key file
    Keygen(keygen::KeygenArgs),
    /// Show the contents of a model file, and how it reads texts
    Inspect(inspect::InspectArgs),
    /// Find events in a stream of texts: each joins that of its nearest before it, or begins one
    Events(Box<events::EventsArgs>),
    /// Make, fill, rank, match and copy collections of a folder, without a service
    #[command(subcommand)]
    Collection(collection::CollectionCommand),
    #[cfg(feature = "eval")]
    /// Measure methods on labelled texts, or calibrate thresholds
    #[command(subcommand)]
    Eval(Box<eval::EvalCommand>),
    #[cfg(feature = "train")]
    /// Train weights, word vectors or rankers
    #[command(subcommand)]
    Train(train::TrainCommand),
    #[cfg(feature = "train")]
    /// Generate labelled pairs from unlabelled text
    #[command(subcommand)]
    Pairs(Box<pairs::PairsCommand>),
}

/// Why the process ends with another code than 0.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub error: anyhow::Error,
    /// Whether it is the last line of a log of JSON lines.
    pub in_log: bool,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.in_log {
            return write!(f, "cognate: {}", self.error);
        }
        let line = serde_json::json!({
            "timestamp": instant::written_exactly(cognate_collections::now()),
            "level": "ERROR",
            "message": self.error.to_string(),
            "exit_code": self.code,
            "target": module_path!(),
        });
        line.fmt(f)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let full = |cause: &(dyn std::error::Error + 'static)| {
            let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            matches!(
                kind,
                Some(ErrorKind::StorageFull | ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded)
            )
        };
        let code = if error.chain().any(full) { 74 } else { 1 };
        Self { code, error, in_log: false }
    }
}

/// Wrong usage that the flags' own types could not refuse.
fn usage(problem: impl std::fmt::Display) -> Failure {
    Failure { code: 2, error: anyhow::anyhow!("{problem}"), in_log: false }
}

/// Facts for a bug report: the version, the loops that this processor runs, and the built-in
/// features.
fn long_version() -> String {
    let (revision, kernels, features) = (build::REVISION, simd::name(), build::features());
    format!("{}\nrevision: {revision}\nkernels: {kernels}\nfeatures: {features}", build::VERSION)
}

pub fn command() -> clap::Command {
    Cli::command()
}

fn count<T>(least: u64, most: u64) -> RangedU64ValueParser<T>
where
    T: TryFrom<u64>,
    <T as TryFrom<u64>>::Error: std::error::Error + Send + Sync + 'static,
{
    RangedU64ValueParser::new().range(least..=most)
}

fn share(written: &str) -> Result<f64, String> {
    let share = written.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Most threads of a run, more than any machine has cores.
const MAX_THREADS: u64 = 1024;
#[cfg(feature = "train")]
const MAX_EPOCHS: u64 = 1_000_000;
/// Most resamples of an interval: more digits have no use.
#[cfg(feature = "eval")]
const MAX_RESAMPLES: u64 = 1_000_000;

pub fn run() -> Result<(), Failure> {
    sigbus::ignore_file_size_signal()?;
    match Cli::parse().command {
        Command::Pack(args) => pack::run(*args),
        Command::Export(args) => export::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Similarity(args) => ask::similarity::run(*args),
        Command::Rank(args) => ask::rank::run(*args),
        Command::Embed(args) => ask::embed::run(*args),
        Command::Explain(args) => ask::explain::run(args),
        Command::Dedupe(args) => dedupe::run(*args),
        Command::Completions(args) => shell::completions(args),
        Command::Man(args) => shell::man(args),
        Command::Healthcheck(args) => healthcheck::run(args),
        Command::Keygen(args) => keygen::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Events(args) => events::run(*args),
        Command::Collection(command) => collection::run(command),
        #[cfg(feature = "eval")]
        Command::Eval(command) => eval::run(*command),
        #[cfg(feature = "train")]
        Command::Train(command) => train::run(command),
        #[cfg(feature = "train")]
        Command::Pairs(command) => pairs::run(*command),
    }
}

/// Prints to standard output; a closed reader is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn show<T: std::fmt::Display + serde::Serialize>(done: &T, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print(&serde_json::to_string_pretty(done)?);
    }
    print(&done.to_string())
}
