//! Answers a question for every row of files: the score of its two texts, the vector of its text,
//! or its rank among the rows with the same query. Rows are written back in order, unchanged, with
//! the answer's fields added; of a ranking all of them, or the best of each query.
//!
//! Rows stream through in constant memory and are answered on every core. An answer has the bits of
//! a direct call to the engine, with any number of threads and wherever a file is split.
//! Command-line flags are not known here.

#[cfg(feature = "columns")]
mod columns;
mod parts;
mod question;
mod rows;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fmt, io};

use cognate::engine::QueryError;
use cognate::model::writer::clash;
use cognate_files::records::Format;
use cognate_files::{ReadError, records};
pub use question::{Question, Task};
use rayon::prelude::*;
use serde::Serialize;

use crate::bad_rows::BadRows;
use crate::bulk::question::{Answer, Texts};
#[cfg(feature = "columns")]
use crate::columnar::Layout;
use crate::columnar::holds_columns;
#[cfg(not(feature = "columns"))]
use crate::columnar::unreadable;
use crate::{LeftOut, OnBadRow, STANDARD};

/// What to do with a row whose texts are missing or cannot be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    Fail,
    /// The score is left empty, or `null`.
    Null,
}

#[derive(Debug, Clone)]
pub struct Options {
    /// Files, folders of files, or `-`.
    pub inputs: Vec<PathBuf>,
    /// A file for the rows of all inputs, or a folder for one file each; if absent, standard
    /// output.
    pub output: Option<PathBuf>,
    pub records: records::Options,
    pub on_error: OnError,
    pub bad_rows: OnBadRow,
    pub prefix: String,
    /// The only columns to write, including added columns; if empty, all.
    pub columns: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    #[error("{0}")]
    Options(String),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Query(QueryError),
    /// A row has no score, and the options end the run then.
    #[error("{place}: {problem}; `--on-error null` leaves its score empty and continues")]
    Row { place: String, problem: String },
    #[error(
        "{place}: the query of this row came before that of the row above: rows with the same query stand together, as after sorting by it"
    )]
    Apart { place: String },
    #[error("cannot read {path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

fn unwritten(path: &Path) -> impl Fn(io::Error) -> BulkError {
    let path = path.to_owned();
    move |source| BulkError::Write { path: path.clone(), source }
}

pub fn run(question: &Question<'_>, options: &Options) -> Result<Report, BulkError> {
    let begun = Instant::now();
    question.check().map_err(BulkError::Query)?;
    let inputs = files_of(&options.inputs)?;
    check_written(options, &inputs)?;
    let mut bad = BadRows::create(&options.bad_rows)?;
    let mut report = Report {
        files: inputs.len() as u64,
        best: question.top_k().map(|_| 0),
        method: question.query.method.name(),
        ..Report::default()
    };
    match &options.output {
        Some(folder) if parts::is_folder(folder) => {
            parts::run(question, options, &inputs, folder, (&mut report, &mut bad))?;
        }
        output => {
            let output = output.as_deref();
            into_one(question, options, &inputs, output, (&mut report, &mut bad))?;
        }
    }
    (report.left_out, report.seconds) = (bad.finish()?, begun.elapsed().as_secs_f64());
    Ok(report)
}

/// Refuses to overwrite an input, or to write two outputs into one file.
fn check_written(options: &Options, inputs: &[PathBuf]) -> Result<(), BulkError> {
    let mut written: Vec<(&str, &Path)> = Vec::new();
    let folder = options.output.as_deref().is_some_and(parts::is_folder);
    if let Some(path) = options.bad_rows.path() {
        if folder {
            let problem = "a file of broken rows would lose those of parts that were made before; \
                           with a folder as -o, --bad-rows takes skip or stop";
            return Err(BulkError::Options(problem.to_owned()));
        }
        written.push(("--bad-rows", path));
    }
    written.extend(options.output.as_deref().filter(|_| !folder).map(|output| ("-o", output)));
    match clash(&written, inputs.iter().map(PathBuf::as_path)) {
        Some(problem) => Err(BulkError::Options(problem)),
        None => Ok(()),
    }
}

fn into_one(
    question: &Question<'_>,
    options: &Options,
    inputs: &[PathBuf],
    output: Option<&Path>,
    (report, bad): (&mut Report, &mut BadRows),
) -> Result<u64, BulkError> {
    let contents = contents_of(inputs, output)?;
    match contents {
        Contents::Rows => rows::into_one(question, options, inputs, output, (report, bad)),
        #[cfg(feature = "columns")]
        Contents::Columns(input, written) => {
            columns::into_one(question, options, inputs, (input, written), output, report)
        }
    }
}

/// Maximum number of distinct problems that are counted separately.
const KINDS: usize = 16;

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    pub files: u64,
    pub skipped: u64,
    pub rows: u64,
    /// Number of rows among the best of their query, if only those are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<u64>,
    #[serde(flatten)]
    pub left_out: LeftOut,
    pub without_score: BTreeMap<String, u64>,
    pub method: &'static str,
    pub seconds: f64,
}

impl Report {
    fn count(&mut self, question: &Question<'_>, answers: &[Answer]) {
        self.rows += answers.len() as u64;
        if let Some(best) = &mut self.best {
            *best += answers.iter().filter(|answer| question.writes(answer)).count() as u64;
        }
        for problem in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            let known =
                self.without_score.contains_key(problem) || self.without_score.len() < KINDS;
            let kind = if known { problem.as_str() } else { "other problems" };
            *self.without_score.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, skipped, rows, best, left_out, without_score, method, seconds } = self;
        let rate = *rows as f64 / seconds.max(1e-9);
        writeln!(f, "{rows} rows by {method} in {seconds:.1} s, {rate:.0} a second")?;
        if *skipped > 0 {
            writeln!(f, "  {skipped} of {files} files were done before")?;
        }
        if let Some(best) = best {
            writeln!(f, "  {best} of them written, the best of each query")?;
        }
        if let Some(told) = left_out.told() {
            writeln!(f, "  {told}")?;
        }
        for (problem, count) in without_score {
            writeln!(f, "  {count} without a score: {problem}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    Rows,
    /// Columns: the format of the input and that of the output.
    #[cfg(feature = "columns")]
    Columns(Layout, Layout),
}

/// The format of the inputs and of the output, which must all be rows or all be columns.
fn contents_of(inputs: &[PathBuf], output: Option<&Path>) -> Result<Contents, BulkError> {
    let wrong = |path: &Path, problem: &str| {
        Err(BulkError::Options(format!("{}: {problem}", path.display())))
    };
    let first = inputs.first().is_some_and(|input| holds_columns(input));
    if let Some(other) = inputs.iter().find(|input| holds_columns(input) != first) {
        return wrong(other, "rows of text and columns do not go into one file");
    }
    if !first {
        return match output {
            Some(output) => match Format::of_output(output) {
                Ok(_) => Ok(Contents::Rows),
                Err(problem) => Err(BulkError::Options(problem)),
            },
            None => Ok(Contents::Rows),
        };
    }
    columns_of(inputs, output)
}

#[cfg(feature = "columns")]
fn columns_of(inputs: &[PathBuf], output: Option<&Path>) -> Result<Contents, BulkError> {
    let Some(output) = output else {
        let problem = "columns are not written to standard output: name a file with -o";
        return Err(BulkError::Options(problem.to_owned()));
    };
    let Some(written) = Layout::of_path(output) else {
        let problem =
            format!("-o {}: expected a name that ends in .parquet or .arrow", output.display());
        return Err(BulkError::Options(problem));
    };
    let mut layouts = inputs.iter().filter_map(|input| Layout::of_path(input));
    let first = layouts.next().unwrap_or(written);
    if layouts.any(|layout| layout != first) {
        let problem =
            "Parquet and Arrow files do not go into one file; a folder as -o takes one for each";
        return Err(BulkError::Options(problem.to_owned()));
    }
    Ok(Contents::Columns(first, written))
}

#[cfg(not(feature = "columns"))]
fn columns_of(inputs: &[PathBuf], _: Option<&Path>) -> Result<Contents, BulkError> {
    let first = inputs.first().map_or(Path::new(STANDARD), PathBuf::as_path);
    Err(unreadable(first).into())
}

fn files_of(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, BulkError> {
    let mut files = Vec::new();
    for input in inputs {
        if input.as_os_str() == STANDARD || !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let failed = |source| BulkError::Folder { path: input.clone(), source };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(input).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let path = entry.path();
            let known = Format::of_path(&path).is_some() || holds_columns(&path);
            if !hidden && known && path.is_file() {
                found.push(path);
            }
        }
        if found.is_empty() {
            let expected =
                "none of its files ends in .ndjson, .jsonl, .tsv, .csv, .parquet or .arrow";
            return Err(BulkError::Options(format!("{}: {expected}", input.display())));
        }
        found.sort();
        files.extend(found);
    }
    let standard = files.iter().filter(|path| path.as_os_str() == STANDARD).count();
    if standard > 1 {
        return Err(BulkError::Options("standard input can be read once".to_owned()));
    }
    Ok(files)
}

const ROWS: usize = 8192;
const BYTES: usize = 8 << 20;
/// Maximum rows that must be answered together.
const MAX_TOGETHER: usize = 1 << 20;

struct Batch<K> {
    texts: Vec<Texts>,
    kept: K,
}

trait Source: Send {
    type RowData: Send;

    /// The next rows; none of them belongs to a group that continues after them. `None` at the end.
    fn next(&mut self, question: &Question<'_>) -> Result<Option<Batch<Self::RowData>>, BulkError>;

    /// The position of a row, for messages.
    fn place(&self, kept: &Self::RowData, at: usize) -> String;
}

trait Sink<K>: Send {
    /// Writes the rows that the question wants written, with their answers; returns whether the output is
    /// still read.
    fn write(
        &mut self,
        question: &Question<'_>,
        kept: K,
        answers: &[Answer],
    ) -> Result<bool, BulkError>;
}

fn answer_all<S: Source>(
    source: &mut S,
    sink: &mut impl Sink<S::RowData>,
    question: &Question<'_>,
    on_error: OnError,
    (report, asked): (&mut Report, &mut HashSet<u64>),
) -> Result<(), BulkError> {
    let mut batch = source.next(question)?;
    let mut done: Option<(S::RowData, Vec<Answer>)> = None;
    while let Some(Batch { texts, kept }) = batch {
        if let Some(at) = question.asked_again(&texts, asked) {
            return Err(BulkError::Apart { place: source.place(&kept, at) });
        }
        let (answers, moved) = rayon::join(
            || answered(question, &texts),
            || {
                let read = match done.take() {
                    Some((kept, answers)) => sink.write(question, kept, &answers)?,
                    None => true,
                };
                Ok::<_, BulkError>((read, source.next(question)?))
            },
        );
        // An error in an earlier row takes precedence over errors after it.
        let answers = answers.map_err(BulkError::Query)?;
        report.count(question, &answers);
        if on_error == OnError::Fail
            && let Some((at, problem)) = first_wrong(&answers)
        {
            return Err(BulkError::Row { place: source.place(&kept, at), problem });
        }
        let (still_read, next) = moved?;
        if !still_read {
            return Ok(());
        }
        done = Some((kept, answers));
        batch = next;
    }
    if let Some((kept, answers)) = done {
        sink.write(question, kept, &answers)?;
    }
    Ok(())
}

fn answered(
    question: &Question<'_>,
    texts: &[Texts],
) -> Result<Vec<Answer>, cognate::engine::QueryError> {
    let parts = question.parts(texts);
    let parts: Result<Vec<_>, _> =
        parts.par_iter().with_max_len(1).map(|part| question.answer(part)).collect();
    Ok(parts?.into_iter().flatten().collect())
}

fn first_wrong(answers: &[Answer]) -> Option<(usize, String)> {
    let wrong = |(at, answer): (usize, &Answer)| Some((at, answer.as_ref().err()?.clone()));
    answers.iter().enumerate().find_map(wrong)
}
