//! What a run did, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::bulk::question::Question;

/// Most kinds of problems that are told apart.
const KINDS: usize = 16;

/// What is counted on the way.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) rows: u64,
    /// Rows without a score, by what is wrong with them.
    pub(super) without: BTreeMap<String, u64>,
    /// Parts that were there already.
    pub(super) skipped: u64,
}

impl Tally {
    pub(super) fn without(&mut self, problem: &str) {
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
    pub(super) fn of(question: &Question<'_>, files: u64, tally: Tally, seconds: f64) -> Self {
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
