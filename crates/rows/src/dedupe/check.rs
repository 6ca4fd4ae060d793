//! Recall, measured: some texts are compared with every other by the method itself, and what it
//! finds is held against what the blocks found.

use std::collections::{BTreeSet, BinaryHeap};

use cognate::engine::{QueryError, RankOptions};
use serde::Serialize;

use crate::dedupe::DedupeError;
use crate::dedupe::block::Match;
use crate::dedupe::judge::Judge;
use crate::dedupe::keys::mixed;
use crate::dedupe::texts::{Text, Texts};

/// What was found of what is there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Recall {
    /// Texts that were compared with all others.
    pub texts: usize,
    pub matches: usize,
    /// Those that the blocks found, too.
    pub found: usize,
}

/// The texts to be compared with all others, and the matches of theirs that were found.
pub(super) struct Check {
    sample: BTreeSet<u32>,
    found: BTreeSet<(u32, u32)>,
}

impl Check {
    /// As many of the texts that `takes_part` as are wanted, drawn by their numbers alone.
    pub(super) fn new(wanted: usize, count: u32, takes_part: impl Fn(u32) -> bool) -> Self {
        let mut drawn: BinaryHeap<(u64, u32)> = BinaryHeap::new();
        for id in (0..count).filter(|&id| takes_part(id)) {
            drawn.push((mixed(id.into()), id));
            if drawn.len() > wanted {
                drawn.pop();
            }
        }
        let sample = drawn.into_iter().map(|(_, id)| id).collect();
        Self { sample, found: BTreeSet::new() }
    }

    /// Looks at a match that was found.
    pub(super) fn see(&mut self, found: &Match) {
        if self.sample.contains(&found.later) || self.sample.contains(&found.earlier) {
            self.found.insert((found.earlier, found.later));
        }
    }

    /// Compares the texts of the sample with all others.
    pub(super) fn finish(
        self,
        texts: &Texts<'_>,
        judge: &Judge<'_>,
        takes_part: impl Fn(u32) -> bool + Sync,
    ) -> Result<Recall, DedupeError> {
        let Self { sample, found } = self;
        let mut drawn: Vec<Text> = Vec::new();
        texts.each(
            "sample",
            |id| sample.contains(&id),
            |part| Ok(part.to_vec()),
            |part| {
                drawn.extend(part);
                Ok(())
            },
        )?;
        let mut there = BTreeSet::new();
        let every = |part: &[Text]| matches_of(&drawn, part, judge).map_err(DedupeError::Query);
        texts.each("check", takes_part, every, |matches| {
            there.extend(matches);
            Ok(())
        })?;
        let both = there.intersection(&found).count();
        Ok(Recall { texts: sample.len(), matches: there.len(), found: both })
    }
}

/// The matches of the sample among some texts.
fn matches_of(
    sample: &[Text],
    part: &[Text],
    judge: &Judge<'_>,
) -> Result<Vec<(u32, u32)>, QueryError> {
    let candidates: Vec<&str> = part.iter().map(|text| text.text.as_str()).collect();
    let options = RankOptions { min_score: Some(judge.threshold), ..RankOptions::all(judge.query) };
    let mut found = Vec::new();
    for drawn in sample {
        let ranking = match judge.engine.rank_best(&drawn.text, &candidates, &options) {
            // A text that cannot be scored has no match.
            Err(error) if error.place().is_some() => continue,
            other => other?,
        };
        for result in ranking.results {
            let Some(other) = part.get(result.index) else { continue };
            let (earlier, later) = (drawn.id.min(other.id), drawn.id.max(other.id));
            let across = judge.known.is_none_or(|known| earlier < known && later >= known);
            if earlier != later && across {
                found.push((earlier, later));
            }
        }
    }
    Ok(found)
}
