//! How well scores part two classes: over all thresholds (areas) and at a given one (counts and
//! their ratios).
//!
//! A larger score always means more alike, and a score equal to the threshold is accepted.
//! Distances are negated by the caller. Finding a threshold is the business of `threshold`.

use super::sweep::Sweep;

/// The area under the ROC curve: the chance that a positive scores above a negative, ties counting
/// half.
///
/// `None` when the lengths differ, a score is not finite, or either label is missing.
#[must_use]
pub fn roc_auc(labels: &[bool], scores: &[f64]) -> Option<f64> {
    let sweep = Sweep::over(labels, scores)?;
    let (mut above, mut rejected, mut doubled_wins) = (0, 0, 0.0);
    for step in &sweep.steps {
        // Each negative of this step loses to the positives above it and is level with those of its
        // own step.
        let negatives = (step.false_positives - rejected) as f64;
        doubled_wins += negatives * (above + step.true_positives) as f64;
        (above, rejected) = (step.true_positives, step.false_positives);
    }
    Some(doubled_wins / (2.0 * sweep.positives as f64 * sweep.negatives as f64))
}

/// Average precision of pairs ranked by score: the precision at each distinct score, weighted by
/// the recall gained there.
///
/// Pairs of equal score come in together, so the order of the input does not matter (scikit-learn's
/// definition; that of trec_eval, where document ids break ties, is in `ranking`). `None` as for
/// [`roc_auc`].
#[must_use]
pub fn average_precision(labels: &[bool], scores: &[f64]) -> Option<f64> {
    let sweep = Sweep::over(labels, scores)?;
    let (mut found, mut sum) = (0, 0.0);
    for step in &sweep.steps {
        let accepted = step.true_positives + step.false_positives;
        sum += (step.true_positives - found) as f64 * step.true_positives as f64 / accepted as f64;
        found = step.true_positives;
    }
    Some((sum / sweep.positives as f64).clamp(0.0, 1.0))
}

/// How much a positive and a negative count, where the share of positives is another than that of the
/// labelled set: in a stream one pair of hundreds is related, among labelled pairs often half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub positive: f64,
    pub negative: f64,
}

impl Weights {
    /// Each counts as itself.
    pub const EVEN: Self = Self { positive: 1.0, negative: 1.0 };

    /// Weights under which `labels` have the share `prior` of positives. `None` if a label is missing
    /// or the share is not between 0 and 1.
    #[must_use]
    pub fn of_prior(labels: &[bool], prior: f64) -> Option<Self> {
        let positives = labels.iter().filter(|&&label| label).count() as f64;
        let negatives = labels.len() as f64 - positives;
        let sound = positives > 0.0 && negatives > 0.0 && prior > 0.0 && prior < 1.0;
        sound.then(|| Self { positive: prior / positives, negative: (1.0 - prior) / negatives })
    }
}

/// How the pairs fall at one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confusion {
    pub true_positives: usize,
    pub false_positives: usize,
    pub false_negatives: usize,
    pub true_negatives: usize,
}

impl Confusion {
    /// Counts the pairs, those with a score of at least `threshold` accepted. `None` when the
    /// lengths differ, there is no pair, or a score or the threshold is NaN.
    #[must_use]
    pub fn at(threshold: f64, labels: &[bool], scores: &[f64]) -> Option<Self> {
        let unordered = threshold.is_nan() || scores.iter().any(|score| score.is_nan());
        if labels.len() != scores.len() || labels.is_empty() || unordered {
            return None;
        }
        let count = |accepted: bool, positive: bool| {
            let pairs = labels.iter().zip(scores);
            pairs
                .filter(|&(&label, &score)| label == positive && (score >= threshold) == accepted)
                .count()
        };
        Some(Self {
            true_positives: count(true, true),
            false_positives: count(true, false),
            false_negatives: count(false, true),
            true_negatives: count(false, false),
        })
    }

    /// The share of accepted pairs that are positive; 0 when none is accepted.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.weighted_precision(Weights::EVEN)
    }

    /// The precision where positives and negatives count as much as `weights` says.
    #[must_use]
    pub fn weighted_precision(&self, weights: Weights) -> f64 {
        let found = self.true_positives as f64 * weights.positive;
        share(found, self.false_positives as f64 * weights.negative)
    }

    /// The share of positive pairs that are accepted; 0 when there are none.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.true_positives as f64, self.false_negatives as f64)
    }

    /// The harmonic mean of precision and recall; 0 when nothing is positive, neither by label nor
    /// by score.
    #[must_use]
    pub fn f1(&self) -> f64 {
        self.weighted_f1(Weights::EVEN)
    }

    /// The F1 where positives and negatives count as much as `weights` says.
    #[must_use]
    pub fn weighted_f1(&self, weights: Weights) -> f64 {
        let found = self.true_positives as f64 * weights.positive;
        let missed = self.false_negatives as f64 * weights.positive;
        share(2.0 * found, self.false_positives as f64 * weights.negative + missed)
    }

    /// The share of pairs on their right side.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        share(
            self.true_positives as f64 + self.true_negatives as f64,
            self.false_positives as f64 + self.false_negatives as f64,
        )
    }

    /// The share of pairs on the wrong side (the split error of De Boom et al. 2016): one less the
    /// accuracy.
    #[must_use]
    pub fn split_error(&self) -> f64 {
        share(
            self.false_positives as f64 + self.false_negatives as f64,
            self.true_positives as f64 + self.true_negatives as f64,
        )
    }
}

/// The part over the part and the rest; 0 of nothing.
fn share(part: f64, rest: f64) -> f64 {
    if part > 0.0 { part / (part + rest) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Confusion, average_precision, roc_auc};
    use crate::golden;

    #[test]
    fn agrees_with_scikit_learn() {
        for case in golden::cases("classification") {
            let (labels, scores) =
                (golden::labels(&case["labels"]), golden::numbers(&case["scores"]));
            golden::check(roc_auc(&labels, &scores).unwrap(), &case["auc"]);
            golden::check(average_precision(&labels, &scores).unwrap(), &case["average_precision"]);
            for at in case["at"].as_array().unwrap() {
                let found =
                    Confusion::at(golden::number(&at["threshold"]), &labels, &scores).unwrap();
                golden::check(found.precision(), &at["precision"]);
                golden::check(found.recall(), &at["recall"]);
                golden::check(found.f1(), &at["f1"]);
                golden::check(found.accuracy(), &at["accuracy"]);
                golden::check(1.0 - found.split_error(), &at["accuracy"]);
            }
        }
    }

    #[test]
    fn ratios_of_nothing_are_zero() {
        let nothing_accepted = Confusion::at(2.0, &[false, false], &[0.0, 1.0]).unwrap();
        assert_eq!(nothing_accepted.precision(), 0.0);
        assert_eq!(nothing_accepted.recall(), 0.0);
        assert_eq!(nothing_accepted.f1(), 0.0);
        assert_eq!(nothing_accepted.split_error(), 0.0);
        assert_eq!(Confusion::at(f64::NAN, &[true], &[0.0]), None);
        assert_eq!(Confusion::at(0.0, &[true], &[f64::NAN]), None);
        assert_eq!(Confusion::at(0.0, &[], &[]), None);
    }

    fn pairs() -> impl Strategy<Value = Vec<(bool, f64)>> {
        // Few distinct scores, so that most cases have ties.
        prop::collection::vec((any::<bool>(), (-9..9).prop_map(f64::from)), 0..60)
    }

    proptest! {
        #[test]
        fn the_areas_see_only_the_order_of_scores(pairs in pairs()) {
            let (labels, scores): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            let bent: Vec<f64> = scores.iter().map(|score: &f64| score.exp()).collect();
            let turned: Vec<f64> = scores.iter().map(|score| -score).collect();
            let (reversed_labels, reversed): (Vec<_>, Vec<_>) = pairs.iter().rev().copied().unzip();

            let auc = roc_auc(&labels, &scores);
            prop_assert_eq!(roc_auc(&labels, &bent), auc);
            prop_assert_eq!(roc_auc(&reversed_labels, &reversed), auc);
            let both = auc.zip(roc_auc(&labels, &turned));
            prop_assert!(both.is_none_or(|(auc, turned)| (auc + turned - 1.0).abs() < 1e-12));

            let precision = average_precision(&labels, &scores);
            prop_assert_eq!(average_precision(&labels, &bent), precision);
            prop_assert_eq!(average_precision(&reversed_labels, &reversed), precision);
            prop_assert!(precision.is_none_or(|precision| (0.0..=1.0).contains(&precision)));
        }

        #[test]
        fn the_area_is_the_share_of_pairs_in_order(pairs in pairs()) {
            let (labels, scores): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            let of = |wanted| {
                let labelled = pairs.iter().filter(move |(label, _)| *label == wanted);
                labelled.map(|(_, score)| *score)
            };
            let wins = |positive: f64, negative: f64| match positive.total_cmp(&negative) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
            let all: Vec<f64> = of(true)
                .flat_map(|positive| of(false).map(move |negative| wins(positive, negative)))
                .collect();
            let naive = (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
            prop_assert_eq!(roc_auc(&labels, &scores), naive);
        }
    }
}
