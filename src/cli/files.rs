//! Flags of commands that read files of records: how records are written down, where their texts
//! stand, how much of the machine may be used.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cognate_files::records::{Format, Options};

use crate::cli::{Failure, MOST_THREADS, count};

/// How the records of files are written down.
#[derive(Debug, Args)]
pub(super) struct Reading {
    /// How records are written down: a JSON object a line, or rows between tabs or commas [default: by
    /// the file's name, else by its first line]
    #[arg(long, value_parser = PossibleValuesParser::new(Format::NAMES)
          .try_map(|name| name.parse::<Format>()))]
    format: Option<Format>,
    /// Rows have no header: columns are named by numbers from 1
    #[arg(long)]
    no_header: bool,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, MOST_THREADS))]
    threads: Option<usize>,
}

impl Reading {
    /// The flags, and whether they were given.
    pub(super) fn said(&self) -> [(&'static str, bool); 3] {
        [
            ("--format", self.format.is_some()),
            ("--no-header", self.no_header),
            ("--threads", self.threads.is_some()),
        ]
    }

    pub(super) fn options(&self) -> Options {
        Options { format: self.format, headless: self.no_header }
    }

    /// Does the work on as many threads as were asked for.
    pub(super) fn on_threads<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Failure> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or_default());
        Ok(pool.build()?.install(work))
    }
}

/// The folder for files without a name: that of what is written, else the system's.
pub(super) fn folder_for(named: Option<PathBuf>, output: Option<&Path>) -> PathBuf {
    let beside = |path: &Path| match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    named.or_else(|| output.map(beside)).unwrap_or_else(std::env::temp_dir)
}

/// Bytes: a number, or one with K, M or G behind it.
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
