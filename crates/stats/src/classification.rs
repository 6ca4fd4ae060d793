//! How well scores separate two classes: over all thresholds (areas and curves) and at a given one
//! (counts and their ratios).
//!
//! A larger score means more similar, and a score equal to the threshold is accepted. Distances
//! must be negated by the caller. Thresholds are chosen in `threshold`; drawing is not known here.

use super::correlation::average_ranks;
use super::normal;

#[must_use]
pub fn of_label(labels: &[bool], scores: &[f64], wanted: bool) -> Vec<f64> {
    let pairs = labels.iter().zip(scores).filter(|(label, _)| **label == wanted);
    pairs.map(|(_, score)| *score).collect()
}

/// The area under the ROC curve: the chance that a positive scores above a negative, ties counting
/// half.
///
/// `None` when the lengths differ, a score is not finite, or either label is missing.
#[must_use]
pub fn roc_auc(labels: &[bool], scores: &[f64]) -> Option<f64> {
    let sweep = Sweep::over(labels, scores)?;
    let (mut above, mut rejected, mut doubled_wins) = (0, 0, 0.0);
    for step in &sweep.steps {
        // Each negative of this step loses to all earlier positives and ties with those of its
        // step.
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

/// The weights of a positive and a negative pair, for data whose share of positives differs from the
/// labelled set's: in a stream one pair in hundreds is related, among labelled pairs often half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub positive: f64,
    pub negative: f64,
}

impl Weights {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confusion {
    pub true_positives: usize,
    pub false_positives: usize,
    pub false_negatives: usize,
    pub true_negatives: usize,
}

impl Confusion {
    /// Counts the pairs, accepting scores of at least `threshold`. `None` if the lengths differ,
    /// there is no pair, or a score or the threshold is NaN.
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

    /// Returns the 95 % interval of the precision; every pair counts as 1.
    #[must_use]
    pub fn precision_interval(&self) -> [f64; 2] {
        proportion_interval(self.true_positives, self.true_positives + self.false_positives)
    }

    #[must_use]
    pub fn recall_interval(&self) -> [f64; 2] {
        proportion_interval(self.true_positives, self.true_positives + self.false_negatives)
    }

    /// The harmonic mean of precision and recall; 0 when nothing is positive, neither by label nor
    /// by score.
    #[must_use]
    pub fn f1(&self) -> f64 {
        self.weighted_f1(Weights::EVEN)
    }

    #[must_use]
    pub fn weighted_f1(&self, weights: Weights) -> f64 {
        let found = self.true_positives as f64 * weights.positive;
        let missed = self.false_negatives as f64 * weights.positive;
        share(2.0 * found, self.false_positives as f64 * weights.negative + missed)
    }

    #[must_use]
    pub fn split_error(&self) -> f64 {
        share(
            self.false_positives as f64 + self.false_negatives as f64,
            self.true_positives as f64 + self.true_negatives as f64,
        )
    }
}

/// The 95 % interval of a share observed as `part` of `all` independent items (Wilson 1927), which,
/// unlike the one by the standard error, stays within 0 to 1 and has a width where `part` is none
/// or all. Of no items, every share is possible.
#[must_use]
pub fn proportion_interval(part: usize, all: usize) -> [f64; 2] {
    if all == 0 {
        return [0.0, 1.0];
    }
    let (seen, all) = (part.min(all) as f64 / all as f64, all as f64);
    let z = normal::quantile(0.975);
    let square = z * z / all;
    let middle = (seen + square / 2.0) / (1.0 + square);
    let half = z / (1.0 + square) * (seen * (1.0 - seen) / all + square / (4.0 * all)).sqrt();
    // Rounding could put an end just beyond the observed share.
    [(middle - half).clamp(0.0, seen), (middle + half).clamp(seen, 1.0)]
}

/// `part / (part + rest)`; 0 if both are 0.
fn share(part: f64, rest: f64) -> f64 {
    if part > 0.0 { part / (part + rest) } else { 0.0 }
}

pub(super) struct Sweep {
    pub(super) positives: usize,
    pub(super) negatives: usize,
    /// A step for each distinct score, the highest first.
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) score: f64,
    pub(super) true_positives: usize,
    pub(super) false_positives: usize,
}

impl Sweep {
    /// Counts at every distinct score. `None` if the lengths differ, a score is not finite, or
    /// either label is missing.
    pub(super) fn over(labels: &[bool], scores: &[f64]) -> Option<Self> {
        Self::over_acceptable(labels, scores).filter(|_| scores.iter().all(|s| s.is_finite()))
    }

    /// [`Sweep::over`] that also accepts a score of minus infinity, for a pair that no step
    /// accepts.
    pub(super) fn over_acceptable(labels: &[bool], scores: &[f64]) -> Option<Self> {
        let positives = labels.iter().filter(|&&label| label).count();
        let negatives = labels.len() - positives;
        let sound = |&score: &f64| score.is_finite() || score == f64::NEG_INFINITY;
        if labels.len() != scores.len()
            || !scores.iter().all(sound)
            || positives == 0
            || negatives == 0
        {
            return None;
        }
        let mut order: Vec<usize> =
            (0..scores.len()).filter(|&at| scores[at].is_finite()).collect();
        order.sort_unstable_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let (mut true_positives, mut false_positives) = (0, 0);
        let steps = order
            .chunk_by(|&a, &b| scores[a] == scores[b])
            .map(|tied| {
                let accepted = tied.iter().filter(|&&item| labels[item]).count();
                true_positives += accepted;
                false_positives += tied.len() - accepted;
                Step { score: scores[tied[0]], true_positives, false_positives }
            })
            .collect();
        Some(Self { positives, negatives, steps })
    }

    /// A threshold that accepts exactly the pairs of this step: midway to the next lower score, or
    /// the lowest score itself.
    pub(super) fn threshold(&self, step: usize) -> Option<f64> {
        let upper = self.steps.get(step)?.score;
        let Some(lower) = self.steps.get(step + 1).map(|next| next.score) else {
            return Some(upper);
        };
        let middle = f64::midpoint(lower, upper);
        // There is no number between two adjacent doubles, and the lower one would accept too much.
        Some(if middle > lower { middle } else { upper })
    }
}

/// The interval, within 0 to 1.
///
/// `None` when the lengths differ, a score is not finite, or there are fewer than two items of
/// either label.
#[must_use]
pub fn roc_auc_interval(labels: &[bool], scores: &[f64]) -> Option<[f64; 2]> {
    if labels.len() != scores.len() || scores.iter().any(|score| !score.is_finite()) {
        return None;
    }
    let [positive, negative] = [true, false].map(|wanted| of_label(labels, scores, wanted));
    if positive.len() < 2 || negative.len() < 2 {
        return None;
    }
    // An item's rank among all minus its rank among its own label is how many of the others it
    // beats.
    let together: Vec<f64> = positive.iter().chain(&negative).copied().collect();
    let ranks = average_ranks(&together);
    let (of_positive, of_negative) = ranks.split_at(positive.len());
    let passed = |ranks: &[f64], own: &[f64], others: usize| -> Vec<f64> {
        let own = average_ranks(own);
        ranks.iter().zip(own).map(|(all, own)| (all - own) / others as f64).collect()
    };
    let wins = passed(of_positive, &positive, negative.len());
    let losses = passed(of_negative, &negative, positive.len());
    let area = wins.iter().sum::<f64>() / wins.len() as f64;
    let variance = spread(&wins) / wins.len() as f64 + spread(&losses) / losses.len() as f64;
    let half = -normal::quantile(0.025) * variance.sqrt();
    Some([(area - half).max(0.0), (area + half).min(1.0)])
}

fn spread(numbers: &[f64]) -> f64 {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    squares / (numbers.len() as f64 - 1.0)
}

/// A function from labels, scores and a maximum number of points to the points of a curve.
pub type Curve = fn(&[bool], &[f64], usize) -> Option<Vec<(f64, f64)>>;

/// The ROC curve, the shares of accepted negatives and positives, from (0, 0) to (1, 1), of at most `limit` points (but always with both ends),
/// evenly spread along its length. Thinning drops points but moves none.
///
/// `None` if the lengths differ, a score is not finite, or either label is missing.
#[must_use]
pub fn roc(labels: &[bool], scores: &[f64], limit: usize) -> Option<Vec<(f64, f64)>> {
    let sweep = Sweep::over(labels, scores)?;
    let point = |step: &Step| {
        let accepted = step.false_positives as f64 / sweep.negatives as f64;
        (accepted, step.true_positives as f64 / sweep.positives as f64)
    };
    let points = [(0.0, 0.0)].into_iter().chain(sweep.steps.iter().map(point));
    Some(thinned(&points.collect::<Vec<_>>(), limit, |(negatives, positives)| {
        negatives + positives
    }))
}

/// The curve of recall and precision from the highest score to accepting everything, of at most `limit`
/// points (but never fewer than two, if it has them), spread evenly over recall. If several
/// thresholds have the same recall, a thinned curve keeps the one with the highest precision.
///
/// `None` as for [`roc`].
#[must_use]
pub fn precision_recall(labels: &[bool], scores: &[f64], limit: usize) -> Option<Vec<(f64, f64)>> {
    let sweep = Sweep::over(labels, scores)?;
    let point = |step: &Step| {
        let found = step.true_positives as f64;
        (
            found / sweep.positives as f64,
            found / (step.true_positives + step.false_positives) as f64,
        )
    };
    let points: Vec<_> = sweep.steps.iter().map(point).collect();
    Some(thinned(&points, limit, |(recall, _)| *recall))
}

/// Both ends, and between them the first point at or after each of evenly spaced places; `place`
/// must not decrease.
fn thinned(
    points: &[(f64, f64)],
    limit: usize,
    place: impl Fn(&(f64, f64)) -> f64,
) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let gaps = limit.max(2) - 1;
    if points.len() <= gaps + 1 {
        return points.to_vec();
    }
    let (start, length) = (place(first), place(last) - place(first));
    let mut kept: Vec<usize> = (0..gaps)
        .map(|gap| start + length * gap as f64 / gaps as f64)
        .map(|wanted| points.partition_point(|point| place(point) < wanted))
        .chain([points.len() - 1])
        .collect();
    kept.dedup();
    kept.into_iter().filter_map(|index| points.get(index).copied()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
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
                golden::check(1.0 - found.split_error(), &at["accuracy"]);
            }
            // scikit-learn omits points after full recall.
            let curves: [(&str, Curve); 2] = [("roc", roc), ("precision_recall", precision_recall)];
            for (name, curve) in curves {
                let found = curve(&labels, &scores, usize::MAX).unwrap();
                let expected = case[name].as_array().unwrap();
                assert!(
                    found.len() == expected.len() || found.len() > expected.len() && name != "roc"
                );
                for ((x, y), pair) in found.iter().zip(expected) {
                    golden::check(*x, &pair[0]);
                    golden::check(*y, &pair[1]);
                }
            }
        }
    }

    #[test]
    fn thresholds_part_neighbouring_doubles_and_the_widest_range() {
        let threshold = |scores: [f64; 2]| Sweep::over(&[true, false], &scores)?.threshold(0);
        let above = 1.0_f64.next_up();
        assert_eq!(threshold([above, 1.0]), Some(above));
        assert_eq!(threshold([f64::MAX, f64::MIN]), Some(0.0));
        assert_eq!(threshold([1.0, f64::NAN]), None);
        assert!(Sweep::over(&[true, true], &[1.0, 2.0]).is_none());
        assert!(Sweep::over(&[true, false], &[1.0]).is_none());
    }

    #[test]
    fn the_interval_of_an_area_is_that_counted_by_hand() {
        // Positives 4, 3, 1 against negatives 2, 0: they pass 2, 2, 1 of 2, so the area is 5/6.
        // Wins 1, 1, 1/2 have variance 1/12; losses 1/3, 0 have 1/18. The standard error is
        // √(1/36 + 1/36).
        let labels = [true, true, false, true, false];
        let [low, high] = roc_auc_interval(&labels, &[4.0, 3.0, 2.0, 1.0, 0.0]).unwrap();
        let half = 1.959_963_985 * (1.0_f64 / 18.0).sqrt();
        assert!((low - (5.0 / 6.0 - half)).abs() < 1e-9, "{low}");
        assert_eq!(high, 1.0, "cut at the end of the range");
        assert_eq!(roc_auc_interval(&labels, &[1.0; 5]), Some([0.5, 0.5]));
        assert_eq!(roc_auc_interval(&labels[1..4], &[1.0, 2.0, 3.0]), None, "one negative");
        assert_eq!(roc_auc_interval(&labels, &[f64::NAN; 5]), None);
    }

    /// Four rows of table I of Newcombe 1998, "Two-sided confidence intervals for the single proportion",
    /// method 3.
    #[test]
    fn intervals_of_shares_are_those_that_are_published() {
        for (part, all, expected) in [
            (81, 263, [0.2553, 0.3662]),
            (15, 148, [0.0624, 0.1605]),
            (0, 20, [0.0, 0.1611]),
            (1, 29, [0.0061, 0.1718]),
        ] {
            let found = proportion_interval(part, all);
            let near = found.iter().zip(expected).all(|(found, told)| (found - told).abs() < 5e-5);
            assert!(near, "{part} of {all}: {found:?}");
            let [low, high] = proportion_interval(all - part, all);
            let turned = [(found[0], 1.0 - high), (found[1], 1.0 - low)];
            assert!(turned.iter().all(|(one, other)| (one - other).abs() < 1e-12));
        }
        assert_eq!(proportion_interval(0, 0), [0.0, 1.0]);
        let at = Confusion::at(0.5, &[true, true, true, false], &[0.9, 0.8, 0.1, 0.7]).unwrap();
        assert_eq!(at.precision_interval(), proportion_interval(2, 3));
        assert_eq!(at.recall_interval(), proportion_interval(2, 3));
    }

    #[test]
    fn ratios_of_nothing_are_zero() {
        let none = Confusion::at(2.0, &[false, false], &[0.0, 1.0]).unwrap();
        assert_eq!([none.precision(), none.recall(), none.f1(), none.split_error()], [0.0; 4]);
        assert_eq!(Confusion::at(f64::NAN, &[true], &[0.0]), None);
        assert_eq!(Confusion::at(0.0, &[true], &[f64::NAN]), None);
        assert_eq!(Confusion::at(0.0, &[], &[]), None);
    }

    proptest! {
        #[test]
        fn a_thinned_curve_is_a_part_of_the_whole(
            pairs in prop::collection::vec((any::<bool>(), -9.0..9.0), 0..80),
            limit in 0_usize..20,
        ) {
            let (labels, scores): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            if let Some(thin) = roc(&labels, &scores, limit) {
                let whole = roc(&labels, &scores, usize::MAX).unwrap();
                prop_assert!(thin.len() <= limit.max(2));
                prop_assert!(thin.iter().all(|point| whole.contains(point)));
                prop_assert_eq!(thin.first(), whole.first());
                prop_assert_eq!(thin.last(), whole.last());
                let thin = precision_recall(&labels, &scores, limit).unwrap();
                prop_assert!(thin.len() <= limit.max(2));
                prop_assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
            }
        }
    }
}
