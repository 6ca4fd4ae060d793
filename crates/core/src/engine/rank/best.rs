//! The best of candidates with known upper bounds: candidates are scored by bound, best first,
//! until no bound left can reach the results. Candidates left out could not have been among them,
//! ties included, so the answer is the same bit for bit.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::engine::{QueryError, RankOptions, Ranked};

/// Ordered so that the worst result is the greatest and on top of a heap.
struct Worst(Ranked);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worst {}

/// The best candidates in the order of results, from their upper bounds, the best bound first; and
/// how many had to be scored.
pub(super) fn best_of_bounded(
    bounds: &[Ranked],
    options: &RankOptions,
    mut score: impl FnMut(usize) -> Result<f32, QueryError>,
) -> Result<(Vec<Ranked>, usize), QueryError> {
    let most = options.top_k.unwrap_or(usize::MAX);
    let mut best: BinaryHeap<Worst> = BinaryHeap::new();
    let mut scored = 0;
    for bound in bounds {
        let full = best.len() >= most;
        // A score equal to its bound would still rank behind an equal score of a lower index.
        let behind = |worst: &Worst| bound.order(&worst.0) == Ordering::Greater;
        if !options.wants(bound.score) || (full && best.peek().is_none_or(behind)) {
            // The bounds that follow are no better.
            break;
        }
        let result = Ranked { index: bound.index, score: score(bound.index)? };
        scored += 1;
        if options.wants(result.score) {
            best.push(Worst(result));
            if full {
                best.pop();
            }
        }
    }
    Ok((best.into_sorted_vec().into_iter().map(|Worst(result)| result).collect(), scored))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Query;
    use crate::methods::Method;

    proptest! {
        /// Scores and bounds from a handful of values, so that ties abound.
        #[test]
        fn nothing_that_belongs_to_the_results_is_left_out(
            list in prop::collection::vec((0u8..6, 0u8..4), 0..40),
            top_k in prop::option::of(0usize..8),
            least in prop::option::of(0u8..8),
        ) {
            let exact = |(index, &(score, _)): (usize, &(u8, u8))| {
                Ranked { index, score: f32::from(score) }
            };
            let bound = |(index, &(score, slack)): (usize, &(u8, u8))| {
                Ranked { index, score: f32::from(score + slack) }
            };
            let min_score = least.map(f32::from);
            let query = Query::new(Method::Wmd);
            let options = RankOptions { query, top_k, min_score };
            let mut expected: Vec<Ranked> = list.iter().enumerate().map(exact).collect();
            expected.sort_by(Ranked::order);
            expected.retain(|result| min_score.is_none_or(|least| result.score >= least));
            expected.truncate(top_k.unwrap_or(usize::MAX));
            let mut bounds: Vec<Ranked> = list.iter().enumerate().map(bound).collect();
            bounds.sort_by(Ranked::order);
            let score = |index: usize| Ok(f32::from(list[index].0));
            let (results, scored) = best_of_bounded(&bounds, &options, score).unwrap();
            prop_assert_eq!(results, expected);
            prop_assert!(scored <= list.len());
        }
    }
}
