//! Near-duplicates among very many short texts, within one file or of one file in another.
//!
//! Never all pairs: texts are compared where they share a rare word, two of their less rare ones, or
//! a bucket of vectors, and of these pairs only those are scored whose vectors lie near. What that
//! misses can be measured (`check`). Texts with the same tokens are found first and count as one.
//! What does not fit into the memory is sorted on disk; 12 bytes a text stay in memory. The same
//! files give the same bytes on any number of threads and in any amount of memory.
//!
//! [`run`] looks through files of records, [`among`] through columns in memory; flags are turned into
//! [`Options`] elsewhere. [`steps`] and what stands beside it are the same search in parts, for those who
//! have more than one machine.

mod block;
mod buckets;
mod check;
mod clusters;
mod judge;
mod keys;
mod output;
mod report;
mod search;
mod sorter;
pub mod steps;
mod texts;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub use block::{Block, Blocks, Match, Member, Work};
pub use buckets::{Buckets, Centres};
pub use check::Recall;
pub use clusters::stand_for;
use cognate::engine::{Engine, Query, QueryError};
use cognate_files::{ReadError, records};
pub use judge::Judge;
pub use keys::WordCounts;
pub use report::Report;
pub use texts::{Duplicates, among};

use crate::dedupe::search::Found;
use crate::dedupe::texts::{Source, Texts};

/// The least memory that sorting can work in.
pub const LEAST_MEMORY: usize = 16 << 20;
/// The memory that sorting works in unless another is named.
pub const MEMORY: usize = 1 << 30;

/// What to look for, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file whose duplicates are looked for, or `-`.
    pub file: PathBuf,
    /// The file that they are looked for in; none means the same.
    pub against: Option<PathBuf>,
    /// How the records of both are written down.
    pub records: records::Options,
    /// The column of texts, by name or number.
    pub text: Option<String>,
    /// What is looked for in them.
    pub search: Search,
    /// Where records go; none means standard output.
    pub output: Option<PathBuf>,
    /// What stands before the names of added fields.
    pub prefix: String,
    /// Whether duplicates are left out and the others written as they came.
    pub drop: bool,
    /// Where all matches go.
    pub pairs: Option<PathBuf>,
}

/// What counts as a duplicate, and what a search may take.
#[derive(Debug, Clone)]
pub struct Search {
    /// Method and what to do with overlong texts.
    pub query: Query,
    /// The least score of a match.
    pub threshold: f32,
    /// The least cosine at which a pair is scored; none means one that suits the method.
    pub floor: Option<f32>,
    /// Whether the words that texts share are told.
    pub explain: bool,
    pub memory: usize,
    /// The folder for what does not fit into it.
    pub folder: PathBuf,
    /// Texts to be compared with all others, so that it is known what was missed.
    pub check: usize,
    /// Set by whoever wants no answer any more.
    pub stop: Arc<AtomicBool>,
}

impl Search {
    /// A search by a method for texts that score at least so much.
    pub fn new(query: Query, threshold: f32) -> Self {
        Self {
            query,
            threshold,
            floor: None,
            explain: false,
            memory: MEMORY,
            folder: std::env::temp_dir(),
            check: 0,
            stop: Arc::default(),
        }
    }

    /// The error of what could not be written to the folder, or read back.
    fn room(&self, source: io::Error) -> DedupeError {
        DedupeError::Room { folder: self.folder.clone(), source }
    }
}

/// Why duplicates could not be told.
#[derive(Debug, thiserror::Error)]
pub enum DedupeError {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Options(String),
    /// The method has no use for word vectors.
    #[error(
        "--method: {method} compares letters or tokens; duplicates are looked for by word vectors"
    )]
    OnlyTokens { method: &'static str },
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The method cannot be used.
    #[error(transparent)]
    Query(QueryError),
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no room for what does not fit into the memory.
    #[error("cannot sort on disk in {}: {source}; another folder can be named with --temp", folder.display())]
    Room {
        /// Where it was to be written.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Texts are numbered in 32 bits.
    #[error("there are more than 4,294,967,295 records")]
    TooMany,
    /// Somebody wanted no answer any more.
    #[error("the search was stopped")]
    Stopped,
}

/// Looks for duplicates and writes what was found.
pub fn run(engine: &Engine, options: &Options) -> Result<Report, DedupeError> {
    let begun = Instant::now();
    output::check(options)?;
    let search = &options.search;
    let judge = Judge::new(engine, search)?;
    let mut texts = Texts { sources: Vec::new() };
    for path in options.against.iter().chain([&options.file]) {
        let column = options.text.as_deref();
        texts.sources.push(Source::file(path, options.records, column, &search.folder)?);
    }
    let mut pairs = output::Pairs::create(options)?;
    let found = search::search(judge, search, &texts, |found, known| pairs.push(found, known));
    // Where that ended the search it says which file it was.
    pairs.check()?;
    let found = found?;
    pairs.finish()?;
    if let Some(source) = texts.sources.last() {
        output::write(options, source, &found)?;
    }
    let Found { mut report, .. } = found;
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}
