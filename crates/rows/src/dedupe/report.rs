//! What a run did, for people and for programs.

use std::fmt;

use serde::Serialize;

use crate::dedupe::check::Recall;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    /// Records of the file.
    pub records: u64,
    /// Records of the other file, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<u64>,
    /// Different texts in both, by their tokens.
    pub distinct: u64,
    /// Records that stand for others.
    pub clusters: u64,
    /// Records that something stands for.
    pub duplicates: u64,
    pub method: &'static str,
    /// The least score of a match.
    pub threshold: f32,
    /// The least cosine at which a pair was scored.
    pub floor: f32,
    pub buckets: u64,
    /// Pairs compared by their vectors.
    pub compared: u64,
    /// Pairs scored by the method.
    pub scored: u64,
    /// Pairs of different texts whose score is high enough.
    pub matches: u64,
    /// Sorted runs on disk.
    pub runs: usize,
    /// What a comparison of some texts with all others says was found.
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
        let Self { method, threshold, matches, compared, scored, runs, .. } = self;
        writeln!(
            f,
            "  {distinct} different texts; {matches} pairs of them score {threshold} or more by {method}"
        )?;
        writeln!(
            f,
            "  {compared} pairs compared by vectors, {scored} scored; {runs} sorted runs on disk"
        )?;
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
