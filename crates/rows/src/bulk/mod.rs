//! Questions asked of every row of files: the score of its two texts, the vector of its text, or its
//! rank among the rows with the same query. Rows are written back in their order, with all that they
//! held and what was found of them.
//!
//! Rows stream through in constant memory and are answered on every core; an answer is the engine's,
//! bit for bit, whatever the number of threads and wherever a file is cut. It knows rows and questions;
//! flags are turned into [`Options`] elsewhere.

#[cfg(feature = "columns")]
mod columns;
mod parts;
mod pipeline;
mod question;
mod rows;
mod sources;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fmt, io};

use cognate::engine::QueryError;
use cognate::model::writer::clash;
use cognate_files::{ReadError, records};
pub use question::{Question, Task};
use serde::Serialize;

/// What becomes of a row whose texts cannot be scored, or are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    Fail,
    /// Its score is left empty, or `null`.
    Null,
}

/// Which files to read and write, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Files, folders of files, or `-`.
    pub inputs: Vec<PathBuf>,
    /// A file for the rows of all inputs, or a folder for a file of each; none means standard output.
    pub output: Option<PathBuf>,
    /// How rows are written down.
    pub records: records::Options,
    /// What becomes of rows without a score.
    pub on_error: OnError,
    /// What stands before the names of added fields.
    pub prefix: String,
}

/// Why rows could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Options(String),
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The method cannot be used.
    #[error(transparent)]
    Query(QueryError),
    /// A row has no score, where that ends the run.
    #[error("{place}: {problem}; `--on-error null` leaves its score empty and goes on")]
    Row {
        /// The file and the line or row.
        place: String,
        /// What is wrong with its texts.
        problem: String,
    },
    /// A folder could not be read.
    #[error("cannot read {path}: {source}")]
    Folder {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The error that `path` cannot be written.
fn unwritten(path: &Path) -> impl Fn(io::Error) -> BulkError {
    let path = path.to_owned();
    move |source| BulkError::Write { path: path.clone(), source }
}

/// Asks the question of every row.
pub fn run(question: &Question<'_>, options: &Options) -> Result<Report, BulkError> {
    let begun = Instant::now();
    question.check().map_err(BulkError::Query)?;
    let inputs = sources::files_of(&options.inputs)?;
    let mut tally = Tally::default();
    match &options.output {
        Some(folder) if parts::is_folder(folder) => {
            parts::run(question, options, &inputs, folder, &mut tally)?;
        }
        output => {
            let read = inputs.iter().map(PathBuf::as_path);
            if let Some(output) = output
                && let Some(problem) = clash(&[("-o", output)], read)
            {
                return Err(BulkError::Options(problem));
            }
            into_one(question, options, &inputs, output.as_deref(), &mut tally)?;
        }
    }
    let files = inputs.len() as u64;
    Ok(Report::of(question, files, tally, begun.elapsed().as_secs_f64()))
}

/// Answers the rows of files one after the other into one file, and gives back its size.
fn into_one(
    question: &Question<'_>,
    options: &Options,
    inputs: &[PathBuf],
    output: Option<&Path>,
    tally: &mut Tally,
) -> Result<u64, BulkError> {
    let contents = sources::contents_of(inputs, output)?;
    match contents {
        sources::Contents::Rows => rows::into_one(question, options, inputs, output, tally),
        #[cfg(feature = "columns")]
        sources::Contents::Columns(input, written) => {
            columns::into_one(question, options, inputs, (input, written), output, tally)
        }
    }
}

/// Most kinds of problems that are told apart.
const KINDS: usize = 16;

/// What is counted on the way.
#[derive(Debug, Clone, Default)]
struct Tally {
    rows: u64,
    /// Rows without a score, by what is wrong with them.
    without: BTreeMap<String, u64>,
    /// Parts that were there already.
    skipped: u64,
}

impl Tally {
    fn without(&mut self, problem: &str) {
        let known = self.without.contains_key(problem) || self.without.len() < KINDS;
        let kind = if known { problem } else { "other problems" };
        *self.without.entry(kind.to_owned()).or_default() += 1;
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub files: u64,
    /// Files whose part was there already.
    pub skipped: u64,
    /// Rows that were answered.
    pub rows: u64,
    /// Rows without a score, by what is wrong with them.
    pub without_score: BTreeMap<String, u64>,
    pub method: &'static str,
    pub seconds: f64,
}

impl Report {
    fn of(question: &Question<'_>, files: u64, tally: Tally, seconds: f64) -> Self {
        let Tally { rows, without, skipped } = tally;
        let method = question.query.method.name();
        Self { files, skipped, rows, without_score: without, method, seconds }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, skipped, rows, without_score, method, seconds } = self;
        let rate = *rows as f64 / seconds.max(1e-9);
        writeln!(f, "{rows} rows by {method} in {seconds:.1} s, {rate:.0} a second")?;
        if *skipped > 0 {
            writeln!(f, "  {skipped} of {files} files were done before")?;
        }
        for (problem, count) in without_score {
            writeln!(f, "  {count} without a score: {problem}")?;
        }
        Ok(())
    }
}
