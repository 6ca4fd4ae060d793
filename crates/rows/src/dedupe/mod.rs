//! Finds near-duplicates among very many short texts, within one file or of one file in another.
//!
//! Not all pairs are compared, only those that share a rare word, two less rare words, or a bucket
//! of vectors, and of these only pairs with near vectors, or with enough words in common, are scored. How many duplicates this
//! misses can be measured (`check`). Texts with the same tokens are found first and count as one.
//! What exceeds the memory limit lies on disk; 12 bytes a text stay in memory. The same
//! files give the same bytes with any number of threads and any amount of memory.
//!
//! [`run`] searches files of records, [`among`] columns in memory; command-line flags are not known
//! here. [`steps`] and the public types next to it are the same search in parts, for use on several
//! machines.

mod block;
mod buckets;
mod clusters;
mod judge;
mod output;
mod search;
mod sorter;
pub mod steps;
mod store;
mod texts;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use std::{fmt, io};

pub use block::{Block, Blocks, Match, Member, Work};
pub use buckets::{Buckets, Centres};
pub use clusters::stand_for;
use cognate::engine::{Engine, Query, QueryError, least_score};
use cognate_files::{ReadError, records};
pub use judge::Judge;
pub use search::{Duplicates, Recall, among};
use serde::Serialize;
pub use steps::WordCounts;

use crate::dedupe::search::SearchResult;
use crate::dedupe::texts::{Source, Texts};
use crate::{LeftOut, OnBadRow};

/// Minimum memory of a search, in bytes.
pub const MIN_MEMORY: usize = 16 << 20;
pub const MEMORY: usize = 1 << 30;

/// What [`share`] accepts, for messages.
pub const SHARE: &str = "a number above 0, at most 1";

/// The least score of duplicates, or the least cosine of a pair to be scored. A number is refused too if it
/// is 0 in the single precision of scores.
pub fn share(number: f64) -> Option<f32> {
    let share = least_score(number);
    (number <= 1.0 && share > 0.0).then_some(share)
}

/// The files to search and to write, and the options of the search.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file in which to find duplicates, or `-`.
    pub file: PathBuf,
    /// The file that they may duplicate; if absent, the same file.
    pub against: Option<PathBuf>,
    /// How the records of both files are formatted.
    pub records: records::Options,
    /// What to do with records that cannot be read; they have no numbers.
    pub bad_rows: OnBadRow,
    /// The column of texts, by name or number.
    pub text: Option<String>,
    pub search: Search,
    /// File for the records; `None`: standard output.
    pub output: Option<PathBuf>,
    /// Prefix of the names of added fields.
    pub prefix: String,
    /// The only columns to write, added columns among them; if empty, all.
    pub columns: Vec<String>,
    /// Whether to leave out duplicates and write other records unchanged.
    pub drop: bool,
    pub pairs: Option<PathBuf>,
}

/// What counts as a duplicate, and the resources of a search.
#[derive(Debug, Clone)]
pub struct Search {
    pub query: Query,
    /// Whether a pair has the share of its words that are the same (Dice) for its score where that is more
    /// than the method's: plain copies are told by words, likenesses by vectors.
    pub copies: bool,
    pub threshold: f32,
    /// Minimum cosine of a pair for it to be scored; if absent, a cosine that suits the method.
    pub floor: Option<f32>,
    pub explain: bool,
    pub memory: usize,
    /// Folder for data that exceeds the memory.
    pub folder: PathBuf,
    /// Number of texts that are compared with all others, to measure the recall.
    pub check: usize,
    pub stop: Arc<AtomicBool>,
}

impl Search {
    pub fn new(query: Query, threshold: f32) -> Self {
        Self {
            query,
            copies: false,
            threshold,
            floor: None,
            explain: false,
            memory: MEMORY,
            folder: std::env::temp_dir(),
            check: 0,
            stop: Arc::default(),
        }
    }

    fn room(&self, source: io::Error) -> DedupeError {
        DedupeError::Room { folder: self.folder.clone(), source }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DedupeError {
    #[error("{0}")]
    Options(String),
    /// The method uses neither word vectors nor sets of words.
    #[error("duplicates are looked for by word vectors or by `jaccard`, not by {method}")]
    OnlyTokens { method: &'static str },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    /// Temporary data could not be written or read.
    #[error("cannot sort on disk in {}: {source}", folder.display())]
    Room { folder: PathBuf, source: io::Error },
    #[error("there are more than 4,294,967,295 records")]
    TooMany,
    #[error("the search was stopped")]
    Stopped,
}

pub fn run(engine: &Engine, options: &Options) -> Result<Report, DedupeError> {
    let begun = Instant::now();
    output::check(options)?;
    let search = &options.search;
    let judge = Judge::new(engine, search)?;
    let mut texts = Texts { sources: Vec::new() };
    for path in options.against.iter().chain([&options.file]) {
        texts.sources.push(Source::file(path, options)?);
    }
    let left_out = texts.left_out(&options.bad_rows)?;
    let mut pairs = output::Pairs::create(options)?;
    let found = search::search(judge, search, &texts, |found, known| pairs.push(found, known));
    // If the file of matches caused the failure, this error names it.
    pairs.check()?;
    let found = found?;
    pairs.finish()?;
    let header = texts.sources.last().map(|source| output::write(options, source, &found));
    let SearchResult { mut report, .. } = found;
    report.header = header.transpose()?.flatten();
    (report.left_out, report.seconds) = (left_out, begun.elapsed().as_secs_f64());
    Ok(report)
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    pub records: u64,
    /// Number of records in the other file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<u64>,
    /// Number of distinct texts in both files, compared by their tokens.
    pub distinct: u64,
    pub clusters: u64,
    pub duplicates: u64,
    /// The header of a single column that was not named: it may have been meant as a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    #[serde(flatten)]
    pub left_out: LeftOut,
    pub method: &'static str,
    /// Whether the words that are the same count beside the method.
    pub copies: bool,
    pub threshold: f32,
    pub floor: f32,
    pub buckets: u64,
    /// Number of pairs compared by their vectors, or by bits of their words.
    pub compared: u64,
    pub scored: u64,
    /// Number of pairs of distinct texts with a score above the threshold.
    pub matches: u64,
    pub runs: usize,
    /// The recall, measured by comparing some texts with all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
    pub seconds: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, distinct, clusters, duplicates, seconds, .. } = self;
        let rate = *records as f64 / seconds.max(1e-9);
        writeln!(f, "{records} records in {seconds:.1} s, {rate:.0} a second")?;
        match self.known {
            Some(known) => {
                writeln!(f, "  {duplicates} duplicate {clusters} of the {known} records known")?;
            }
            None => writeln!(f, "  {duplicates} are duplicates, of {clusters} others")?,
        }
        if let Some(header) = &self.header {
            writeln!(f, "  `{header}` is the header; --no-header reads it as a text")?;
        }
        if let Some(told) = self.left_out.told() {
            writeln!(f, "  {told}")?;
        }
        let Self { method, threshold, matches, compared, scored, runs, .. } = self;
        let words = if self.copies { " or by their words" } else { "" };
        writeln!(
            f,
            "  {distinct} different texts; {matches} pairs of them score {threshold} or more by {method}{words}"
        )?;
        writeln!(f, "  {compared} pairs compared, {scored} scored; {runs} sorted runs on disk")?;
        if let Some(Recall { texts, matches, found }) = self.recall {
            let share = 100.0 * found as f64 / matches.max(1) as f64;
            writeln!(
                f,
                "  checked: {found} of the {matches} matches of {texts} texts were found ({share:.1} %)"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_least_score_is_above_0_in_single_precision_too() {
        let accepted = [0.8, 1.0, 1e-40].map(super::share);
        assert_eq!(accepted, [Some(0.8), Some(1.0), Some(1e-40)]);
        for number in [0.0, -0.1, 1e-50, 1.0 + 1e-12, f64::NAN, f64::INFINITY] {
            assert_eq!(super::share(number), None, "{number}");
        }
    }
}
