//! What the parts of a fusion score, one after the other for parts of a long list, and the ranking
//! that they make together.

use std::cmp::Ordering;

use crate::engine::fuse::{Fusion, Source, combine};
use crate::engine::{BoostBy, Boosts, Counts, Parts, RankOptions, Ranked, Ranking, Reason};

/// The scores of candidates by the methods of a fusion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartScores {
    pub(super) candidates: usize,
    /// A column for each method, in the order of the fusion; negative infinity for no score.
    pub(super) columns: Vec<Vec<f64>>,
    /// Candidates that could not be read, by index, and why.
    pub(super) left: Vec<(usize, Reason)>,
    /// Candidates that were cut short.
    pub(super) truncated: Vec<usize>,
    /// Whether the query was cut short.
    pub(super) query_truncated: bool,
    /// The share of listed words of each candidate, if requested.
    pub(super) known: Vec<f32>,
    /// The share of listed words of the query, if requested.
    pub(super) query_known: Option<f32>,
    /// Counts of what was read, without the query.
    pub counts: Counts,
}

impl Parts for PartScores {
    fn append(&mut self, part: Self, first: usize) {
        self.candidates += part.candidates;
        self.columns.resize_with(self.columns.len().max(part.columns.len()), Vec::new);
        for (column, more) in self.columns.iter_mut().zip(part.columns) {
            column.extend(more);
        }
        self.left.extend(part.left.into_iter().map(|(index, reason)| (index + first, reason)));
        self.truncated.extend(part.truncated.into_iter().map(|index| index + first));
        self.query_truncated = part.query_truncated;
        self.known.extend(part.known);
        self.query_known = part.query_known;
        self.counts.add(part.counts);
    }
}

impl PartScores {
    /// The scores of candidates when no method reads them.
    pub fn unread(fusion: &Fusion, candidates: usize) -> Self {
        let columns = fusion.methods().map(|_| vec![f64::NEG_INFINITY; candidates]);
        Self { candidates, columns: columns.collect(), ..Self::default() }
    }

    /// Candidates that were cut short.
    pub fn truncated(&self) -> &[usize] {
        &self.truncated
    }

    /// The fused score of each candidate; negative infinity for one that no part scores. `runs` are
    /// the caller's numbers in the order in which the fusion names them: one that is missing or too
    /// short scores nothing there.
    pub fn fused<R: AsRef<[f64]>>(&self, fusion: &Fusion, runs: &[R]) -> Vec<f64> {
        let mut methods = self.columns.iter().map(Vec::as_slice);
        let mut runs = runs.iter().map(AsRef::as_ref);
        let column = |source: &Source| match source {
            Source::Method(..) => methods.next(),
            Source::Run(_) => runs.next(),
        };
        let parts = fusion.parts();
        let columns: Vec<&[f64]> = parts
            .iter()
            .map(|part| &part.source)
            .map(column)
            .map(Option::unwrap_or_default)
            .collect();
        let weights: Vec<f64> = parts.iter().map(|part| part.weight).collect();
        let mut fused = combine(fusion.by(), &columns, &weights);
        fused.resize(self.candidates, f64::NEG_INFINITY);
        fused
    }

    /// Candidates by these scores, which have double precision so that none becomes equal to another
    /// by being rounded. Boosts change fused scores, standardised ones where that is how they are
    /// fused. Best first, equal scores by index; what has none is unscored.
    pub fn ranking(self, scores: &[f64], options: &RankOptions, boosts: &Boosts<'_>) -> Ranking {
        let boosted = |(index, &score): (usize, &f64)| match boosts.of.get(index) {
            Some(&Some(boost)) => match boosts.by {
                BoostBy::Add => (index, score + f64::from(boost)),
                // A boost gives no score to a candidate without one.
                BoostBy::Multiply if score.is_finite() => (index, score * f64::from(boost)),
                BoostBy::Multiply => (index, score),
                BoostBy::Share(share) => (index, f64::from(share) * score + f64::from(boost)),
            },
            _ => (index, score),
        };
        let mut order: Vec<(usize, f64)> = scores.iter().enumerate().map(boosted).collect();
        let mut unscored = Vec::new();
        order.retain(|&(index, score)| {
            let scored = score.is_finite();
            if !scored {
                unscored.push(index);
            }
            scored
        });
        order.sort_unstable_by(|(one, high), (other, low)| match low.total_cmp(high) {
            Ordering::Equal => one.cmp(other),
            differ => differ,
        });
        let scored = order.len();
        let single = |(index, score): (usize, f64)| Ranked { index, score: score as f32 };
        let wanted = order.into_iter().map(single).filter(|ranked| options.wants(ranked.score));
        let reason = |index: &usize| {
            let left = self.left.binary_search_by_key(index, |(left, _)| *left);
            let left = left.ok().and_then(|at| self.left.get(at));
            left.map_or(Reason::Unknown, |(_, reason)| *reason)
        };
        Ranking {
            results: wanted.take(options.top_k.unwrap_or(usize::MAX)).collect(),
            reasons: unscored.iter().map(reason).collect(),
            unscored,
            truncated: self.truncated,
            query_truncated: self.query_truncated,
            known: self.known,
            query_known: self.query_known,
            scored,
            counts: self.counts,
            ..Ranking::default()
        }
    }
}
