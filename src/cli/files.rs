//! Flags of commands that read files of records: the format, the field of texts, threads and memory.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use cognate_files::progress;
use cognate_files::records::{Format, Options};
use cognate_rows::OnBadRow;

use crate::cli::{Failure, MAX_THREADS, count, show, usage};

/// How the records of files are written down, and which of their columns are written.
#[derive(Debug, Args)]
pub(super) struct RecordArgs {
    /// How records are written down: a JSON object a line, or rows between tabs or commas [default: by
    /// the file's name, else by its first line]
    #[arg(long, value_parser = PossibleValuesParser::new(Format::NAMES)
          .try_map(|name| name.parse::<Format>()))]
    format: Option<Format>,
    /// Rows have no header: columns are named by numbers from 1
    #[arg(long)]
    pub(super) no_header: bool,
    /// Character between the cells of CSV, such as `;`, or `tab`
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// What becomes of rows that cannot be read: `stop` ends the run, `skip` leaves them out; any
    /// other name is that of a file that takes them, with file, line and reason, as NDJSON [default: stop]
    #[arg(long, value_name = "stop|skip|FILE", value_parser = OsStringValueParser::new().try_map(parse_on_bad_row))]
    bad_rows: Option<OnBadRow>,
    /// Write only these columns, separated by commas: by name, added ones among them, or by number
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    columns: Vec<String>,
    /// Show neither progress nor a report
    #[arg(short, long)]
    pub(super) quiet: bool,
}

fn delimiter(written: &str) -> Result<u8, String> {
    match written.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[character] if character.is_ascii() && !b"\"\r\n".contains(&character) => Ok(character),
        _ => Err("expected one ASCII character that is no quotation mark, or `tab`".to_owned()),
    }
}

fn parse_on_bad_row(written: OsString) -> Result<OnBadRow, String> {
    match written.to_str() {
        Some("stop") => Ok(OnBadRow::Stop),
        Some("skip") => Ok(OnBadRow::Skip),
        Some("-") => Err("expected stop, skip or the name of a file".to_owned()),
        _ => Format::Ndjson.only(written.as_ref()).map(|()| OnBadRow::Keep(written.into())),
    }
}

impl RecordArgs {
    /// How records are read; from here on nothing is shown where nothing is wanted.
    pub(super) fn options(&self) -> Result<Options, Failure> {
        if self.quiet {
            progress::hide();
        }
        let format = match (self.delimiter, self.format) {
            (None, format) => format,
            (Some(delimiter), None | Some(Format::Csv(_))) => Some(Format::Csv(delimiter)),
            (Some(_), Some(_)) => {
                return Err(usage("--delimiter is for CSV, not for this --format"));
            }
        };
        Ok(Options { format, headless: self.no_header })
    }

    pub(super) fn bad_rows(&self) -> OnBadRow {
        self.bad_rows.clone().unwrap_or_default()
    }

    pub(super) fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }
}

/// How the records of files are read, and by how many threads.
#[derive(Debug, Args)]
pub(super) struct Reading {
    #[command(flatten)]
    pub(super) records: RecordArgs,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, MAX_THREADS))]
    threads: Option<usize>,
}

impl Reading {
    /// The flags, and whether they were given.
    pub(super) fn said(&self) -> [(&'static str, bool); 7] {
        let RecordArgs { format, no_header, delimiter, bad_rows, columns, quiet } = &self.records;
        [
            ("--format", format.is_some()),
            ("--no-header", *no_header),
            ("--delimiter", delimiter.is_some()),
            ("--bad-rows", bad_rows.is_some()),
            ("--columns", !columns.is_empty()),
            ("--quiet", *quiet),
            ("--threads", self.threads.is_some()),
        ]
    }

    /// Shows the report of a run: on standard error where the rows are on standard output.
    pub(super) fn report<T: std::fmt::Display + serde::Serialize>(
        &self,
        done: &T,
        output: Option<&Path>,
        as_json: bool,
    ) -> Result<(), Failure> {
        if self.records.quiet {
            return Ok(());
        }
        if output.is_some() {
            return show(done, as_json);
        }
        let told = if as_json { serde_json::to_string(done)? } else { done.to_string() };
        // A standard error that is closed is no reason to fail.
        let _ = writeln!(io::stderr(), "{}", told.trim_end());
        Ok(())
    }

    /// Runs the work on the requested number of threads.
    pub(super) fn on_threads<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Failure> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or_default());
        Ok(pool.build()?.install(work))
    }
}

/// Returns the file to write; `None`, standard output, if no file or `-` is named.
pub(super) fn file(output: Option<PathBuf>) -> Option<PathBuf> {
    output.filter(|path| path.as_os_str() != "-")
}

/// The folder for files without a name: that of what is written, else the system's.
pub(super) fn folder_for(named: Option<PathBuf>, output: Option<&Path>) -> PathBuf {
    let beside = |path: &Path| match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    named.or_else(|| output.map(beside)).unwrap_or_else(std::env::temp_dir)
}

/// Bytes: a number, optionally followed by K, M or G.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => match text.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 20),
            None => text.strip_suffix(['G', 'g']).map_or((text, 0), |digits| (digits, 30)),
        },
    };
    let number: Option<usize> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes such as 500000000, 800M or 2G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_or_none() {
        for (text, expected) in
            [("17", Some(17)), ("2k", Some(2048)), ("3M", Some(3 << 20)), ("1G", Some(1 << 30))]
        {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
        for wrong in ["", "G", "1.5G", "-1", "99999999999999999999", "20000000000G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
