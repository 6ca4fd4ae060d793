//! The scores of a fusion's parts, as unsorted rankings, and the fused ranking.

use std::cmp::Ordering;

use crate::engine::fuse::{Fusion, Part, Source, combine};
use crate::engine::rank::{BoostBy, Boosts};
use crate::engine::{RankOptions, Ranked, Ranking, Reason};

impl Fusion {
    /// The fused score of each candidate; negative infinity if no part scores it. `runs` are the caller's
    /// numbers in the order in which the fusion names them; a run that is missing or too short scores
    /// nothing there.
    pub(in crate::engine) fn scores(
        &self,
        parts: &[Ranking],
        runs: &[Vec<f64>],
        candidates: usize,
    ) -> Vec<f64> {
        let column = |part: &Ranking| {
            let mut column = vec![f64::NEG_INFINITY; candidates];
            for one in &part.results {
                if let Some(place) = column.get_mut(one.index) {
                    *place = f64::from(one.score);
                }
            }
            column
        };
        let methods: Vec<Vec<f64>> = parts.iter().map(column).collect();
        let (mut methods, mut runs) = (methods.iter(), runs.iter());
        let column = |part: &Part| {
            let column = match part.source {
                Source::Method(..) => methods.next(),
                Source::Run(_) => runs.next(),
            };
            column.map_or(&[][..], Vec::as_slice)
        };
        let columns: Vec<&[f64]> = self.parts.iter().map(column).collect();
        let weights: Vec<f64> = self.parts.iter().map(|part| part.weight).collect();
        let mut fused = combine(self.by, &columns, &weights);
        fused.resize(candidates, f64::NEG_INFINITY);
        fused
    }
}

impl Ranking {
    /// Returns a ranking by fused scores, with the notes of reading the candidates. Scores have double
    /// precision, so that rounding does not make different scores equal. Boosts change fused scores,
    /// standardised ones in a fusion by z-scores. Best first, equal scores by index; a candidate
    /// without a score is unscored.
    pub(in crate::engine) fn fused(
        self,
        scores: &[f64],
        options: &RankOptions,
        boosts: &Boosts<'_>,
    ) -> Self {
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
            let left = self.unscored.binary_search(index).ok();
            left.and_then(|at| self.reasons.get(at)).copied().unwrap_or(Reason::Unknown)
        };
        let reasons = unscored.iter().map(reason).collect();
        let results = wanted.take(options.top_k.unwrap_or(usize::MAX)).collect();
        Self { results, unscored, reasons, scored, ..self }
    }
}
