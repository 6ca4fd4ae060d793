//! Flags of a question about every row of files.

use std::path::PathBuf;

use clap::Args;
use cognate::engine::{Engine, Query};
use cognate_rows::bulk;
use cognate_rows::bulk::{BulkError, OnError, Options, Question, Task};

use crate::cli::ask::refused;
use crate::cli::choices::choice;
use crate::cli::files::{Reading, file};
use crate::cli::{Failure, usage};

#[derive(Debug, Args)]
#[command(next_help_heading = "Rows of files")]
pub(super) struct Files {
    /// Files whose rows are asked about, folders of them, or `-` for standard input: NDJSON, TSV or
    /// CSV, or a text a line (.txt); .gz and .zst are read directly
    #[arg(long, value_name = "FILE", num_args = 1..)]
    input: Vec<PathBuf>,
    /// File for the rows with what was found of them; its name says how: .ndjson, .tsv or .csv, .gz
    /// or .zst behind it. Or a folder, for a file of each input, where those that are finished are not
    /// made again [default: as they came, to standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What becomes of a row whose texts are missing, empty, too long or unknown [default:
    /// null]
    #[arg(long, value_parser = choice::<OnError>())]
    on_error: Option<OnError>,
    /// Prefix of the names of added fields
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    #[command(flatten)]
    reading: Reading,
}

impl Files {
    /// Whether files were named. If not, flags about files or `columns` are refused.
    pub(super) fn are_given(&self, columns: &[(&str, &Option<String>)]) -> Result<bool, Failure> {
        if !self.input.is_empty() {
            return Ok(true);
        }
        let own = [
            ("-o", self.output.is_some()),
            ("--on-error", self.on_error.is_some()),
            ("--prefix", self.prefix.is_some()),
        ];
        let columns = columns.iter().map(|(flag, column)| (*flag, column.is_some()));
        let said = own.into_iter().chain(self.reading.said()).chain(columns);
        match said.into_iter().find(|(_, said)| *said) {
            Some((flag, _)) => {
                Err(usage(format!("{flag} is for rows of files: name them with --input")))
            }
            None => Ok(false),
        }
    }

    /// A named column, or the one of the usual name or, without a header, number.
    pub(super) fn column(&self, named: Option<String>, name: &str, number: usize) -> String {
        match named {
            Some(column) => column,
            None if self.reading.records.no_header => number.to_string(),
            None => name.to_owned(),
        }
    }

    pub(super) fn run(
        self,
        engine: &Engine,
        query: Query,
        task: Task,
        json: bool,
    ) -> Result<(), Failure> {
        let question = Question { engine, query, task };
        let options = Options {
            inputs: self.input,
            output: file(self.output),
            records: self.reading.records.options()?,
            on_error: self.on_error.unwrap_or(OnError::Null),
            bad_rows: self.reading.records.bad_rows(),
            prefix: self.prefix.unwrap_or_default(),
            columns: self.reading.records.columns(),
        };
        let done = self.reading.on_threads(|| bulk::run(&question, &options))?;
        let report = done.map_err(|error| match error {
            BulkError::Options(problem) => usage(problem),
            BulkError::Query(error) => refused(error),
            other => other.into(),
        })?;
        self.reading.report(&report, options.output.as_deref(), json)
    }
}
