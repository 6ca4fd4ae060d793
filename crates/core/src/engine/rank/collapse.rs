//! Merges candidates that are nearly the same into the best of them.

use std::cmp::Ordering;

use crate::engine::rank::diversify::together;
use crate::engine::rank::panel::Panel;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, Ranked};
use crate::model::Phrase;

/// Fewest candidates that are compared at once.
const MIN_BLOCK: usize = 32;
/// Maximum number of candidates that are compared at once.
const MAX_BLOCK: usize = 1024;

/// A candidate and its duplicates.
pub(super) struct Fold {
    pub(super) best: Ranked,
    pub(super) duplicates: Vec<Duplicate>,
}

/// A candidate that is nearly the same as a better candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplicate {
    /// The candidate.
    pub ranked: Ranked,
    /// The similarity of the two.
    pub similarity: f32,
}

impl Engine {
    /// Folds scored candidates, best first: a candidate whose similarity to a better representative
    /// reaches the threshold is a duplicate of the best such. There are at most `wanted`
    /// representatives; candidates after the last of them are not compared. `check` is called
    /// repeatedly.
    pub(super) fn collapse<T: AsRef<str>, E: From<QueryError>>(
        &self,
        ranked: &[Ranked],
        candidates: &[T],
        (least, wanted): (f32, usize),
        query: &Query,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<Fold>, E> {
        let mut panel = Panel::new(self, query)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let text = |ranked: &Ranked| candidates.get(ranked.index).map_or("", AsRef::as_ref);
        let texts: Vec<&str> = ranked.iter().map(text).collect();
        let (mut folds, mut heads): (Vec<Fold>, Vec<Phrase<'_>>) = (Vec::new(), Vec::new());
        let (mut tokens, mut first) = (0, 0);
        for block in texts.chunks(wanted.clamp(MIN_BLOCK, MAX_BLOCK)) {
            if folds.len() >= wanted {
                break;
            }
            let mut phrases = Vec::with_capacity(block.len());
            for (ranked, text) in ranked.iter().skip(first).zip(block) {
                let mut phrase = Phrase::new(&self.model);
                self.read(&mut phrase, text, query, Place::Candidate(ranked.index))?;
                phrases.push(phrase);
            }
            panel.fill(&phrases);
            let mut loose: Vec<Option<Ranked>> =
                ranked.iter().skip(first).take(block.len()).copied().map(Some).collect();
            for (head, fold) in heads.iter().zip(&mut folds) {
                check()?;
                let found = panel.alike(head, &phrases, 0, least, &mut workspace)?;
                fold.take(found, &mut loose);
            }
            for place in 0..phrases.len() {
                let stands = loose.get_mut(place).filter(|_| folds.len() < wanted);
                let Some(best) = stands.and_then(Option::take) else { continue };
                check()?;
                let Some(phrase) = phrases.get_mut(place) else { continue };
                let head = std::mem::replace(phrase, Phrase::new(&self.model));
                tokens += head.tokens_read();
                together(tokens)?;
                let found = panel.alike(&head, &phrases, place + 1, least, &mut workspace)?;
                let mut fold = Fold { best, duplicates: Vec::new() };
                fold.take(found, &mut loose);
                folds.push(fold);
                heads.push(head);
            }
            first += block.len();
        }
        if let Some(last) = folds.last().filter(|_| folds.len() >= wanted).map(|last| last.best) {
            let is_before = |one: &Duplicate| one.ranked.order(&last) == Ordering::Less;
            folds.iter_mut().for_each(|fold| fold.duplicates.retain(is_before));
        }
        Ok(folds)
    }
}

impl Fold {
    /// Takes those of `found` that belong to no other fold.
    fn take(&mut self, found: Vec<(usize, f32)>, loose: &mut [Option<Ranked>]) {
        for (place, similarity) in found {
            if let Some(ranked) = loose.get_mut(place).and_then(Option::take) {
                self.duplicates.push(Duplicate { ranked, similarity });
            }
        }
    }
}

impl Panel<'_> {
    /// Returns the texts, from an index on, whose similarity to `one` is at least `least`, with their
    /// similarity.
    fn alike(
        &self,
        one: &Phrase<'_>,
        phrases: &[Phrase<'_>],
        from: usize,
        least: f32,
        workspace: &mut Workspace<'_>,
    ) -> Result<Vec<(usize, f32)>, QueryError> {
        let mut scores = Vec::new();
        let scratch = workspace.scratch();
        let mut visitor = self.visitor(one, scratch);
        visitor.score(self, phrases, from, &mut scores, scratch)?;
        visitor.leave(scratch);
        let reached = scores.into_iter().enumerate().filter(|&(_, score)| score >= least);
        Ok(reached.map(|(place, score)| (from + place, score)).collect())
    }
}
