//! Chooses the best threshold for labelled scores; it can then be used on other scores.
//!
//! A threshold is midway between two adjacent distinct scores, so that no score equals it. The
//! scores it will be used on are not known here; [`Confusion`](super::classification::Confusion)
//! counts how well it does.

use super::classification::{Step, Sweep, Weights};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    F1,
    /// The highest accuracy, which is the lowest split error. If it is best to accept nothing, the
    /// threshold is the next number above the highest score.
    Accuracy,
    /// The highest recall among thresholds with at least this precision.
    Precision(f64),
    /// The highest threshold with at least this recall.
    Recall(f64),
}

/// The best threshold for the criterion; of equally good ones the highest.
///
/// A pair with a score of minus infinity is accepted by no threshold. `None` if the lengths differ,
/// another score is not finite, either label is missing, or the aim is never reached. A threshold
/// at the lowest finite score accepts everything else.
#[must_use]
pub fn best_threshold(labels: &[bool], scores: &[f64], aim: Criterion) -> Option<f64> {
    best_weighted_threshold(labels, scores, aim, Weights::EVEN)
}

#[must_use]
pub fn best_weighted_threshold(
    labels: &[bool],
    scores: &[f64],
    aim: Criterion,
    weights: Weights,
) -> Option<f64> {
    let sweep = Sweep::over_acceptable(labels, scores)?;
    let negatives = sweep.negatives as f64 * weights.negative;
    let mut best = match aim {
        Criterion::Accuracy => (negatives, sweep.steps.first()?.score.next_up()),
        Criterion::F1 | Criterion::Precision(_) | Criterion::Recall(_) => {
            (f64::NEG_INFINITY, f64::NAN)
        }
    };
    for (place, step) in sweep.steps.iter().enumerate() {
        let worth = worth(&sweep, step, aim, weights);
        if worth > best.0 {
            best = (worth, sweep.threshold(place)?);
        }
    }
    (!best.1.is_nan()).then_some(best.1)
}

/// How well a step meets the criterion, larger is better; minus infinity if it does not meet it.
fn worth(sweep: &Sweep, step: &Step, aim: Criterion, weights: Weights) -> f64 {
    let found = step.true_positives as f64 * weights.positive;
    let wrong = step.false_positives as f64 * weights.negative;
    let positives = sweep.positives as f64 * weights.positive;
    match aim {
        // Twice the accepted positives over the sum of accepted and positive pairs.
        Criterion::F1 => 2.0 * found / (found + wrong + positives),
        Criterion::Accuracy => found + sweep.negatives as f64 * weights.negative - wrong,
        // The fewer pairs are accepted, the higher is the threshold.
        Criterion::Recall(wanted)
            if step.true_positives as f64 >= wanted * sweep.positives as f64 =>
        {
            -((step.true_positives + step.false_positives) as f64)
        }
        Criterion::Recall(_) => f64::NEG_INFINITY,
        Criterion::Precision(wanted) if found > 0.0 && found / (found + wrong) >= wanted => found,
        Criterion::Precision(_) => f64::NEG_INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::{Criterion, best_threshold, best_weighted_threshold};
    use crate::classification::{Confusion, Weights};
    use crate::golden;

    #[test]
    fn no_other_threshold_does_better() {
        for case in golden::cases("classification") {
            let (labels, scores) =
                (golden::labels(&case["labels"]), golden::numbers(&case["scores"]));
            let at = |aim| {
                let threshold = best_threshold(&labels, &scores, aim)?;
                Confusion::at(threshold, &labels, &scores)
            };
            golden::check(at(Criterion::F1).unwrap().f1(), &case["best_f1"]);
            let accuracy = 1.0 - at(Criterion::Accuracy).unwrap().split_error();
            golden::check(accuracy, &case["best_accuracy"]);
            // The script writes -1 if no threshold reaches the precision.
            let recall = at(Criterion::Precision(0.75)).map_or(-1.0, |found| found.recall());
            golden::check(recall, &case["best_recall_at_precision_075"]);
        }
    }

    #[test]
    fn the_threshold_lies_midway() {
        let (labels, scores) = ([true, true, false, false], [0.9, 0.6, 0.4, 0.1]);
        for aim in [Criterion::F1, Criterion::Accuracy, Criterion::Precision(1.0)] {
            assert_eq!(best_threshold(&labels, &scores, aim), Some(0.5));
        }
        // Half of the pairs are positive, so accepting all reaches this precision.
        assert_eq!(
            best_threshold(&labels, &scores, Criterion::Precision(0.5)),
            Some(0.4_f64.midpoint(0.6))
        );
    }

    #[test]
    fn a_prior_moves_the_threshold_as_so_many_more_negatives_would() {
        let (labels, scores) = ([true, false, true, true, false], [0.9, 0.8, 0.7, 0.4, 0.2]);
        // 1 of 91 pairs is positive, as if each negative occurred 135 times.
        let weights = Weights::of_prior(&labels, 3.0 / 273.0).unwrap();
        assert!((weights.negative / weights.positive - 135.0).abs() < 1e-9);
        let repeated = |times: usize| {
            let one = |place: usize| if labels[place] { 1 } else { times };
            let places: Vec<usize> =
                (0..5).flat_map(|place| std::iter::repeat_n(place, one(place))).collect();
            let labels: Vec<bool> = places.iter().map(|&place| labels[place]).collect();
            let scores: Vec<f64> = places.iter().map(|&place| scores[place]).collect();
            (labels, scores)
        };
        let (more_labels, more_scores) = repeated(135);
        for aim in [Criterion::F1, Criterion::Accuracy, Criterion::Precision(0.9)] {
            let weighted = best_weighted_threshold(&labels, &scores, aim, weights);
            assert_eq!(weighted, best_threshold(&more_labels, &more_scores, aim), "{aim:?}");
        }
        assert_eq!(Weights::of_prior(&labels, 1.0), None);
        assert_eq!(Weights::of_prior(&[true], 0.5), None);
    }

    #[test]
    fn a_wanted_recall_gives_the_highest_threshold_that_has_it() {
        let (labels, scores) = ([true, false, true, true, false], [0.9, 0.8, 0.7, 0.4, 0.2]);
        let at = |recall| best_threshold(&labels, &scores, Criterion::Recall(recall)).unwrap();
        assert_eq!(at(0.3), 0.9_f64.midpoint(0.8));
        assert_eq!(at(0.5), 0.7_f64.midpoint(0.4));
        assert_eq!(at(1.0), 0.4_f64.midpoint(0.2));
    }

    #[test]
    fn what_no_threshold_accepts_counts_all_the_same() {
        let refused = f64::NEG_INFINITY;
        let (labels, scores) =
            ([true, false, true, true, false], [0.9, refused, 0.7, refused, 0.2]);
        let at = |aim| best_threshold(&labels, &scores, aim);
        assert_eq!(at(Criterion::Precision(1.0)), Some(0.7_f64.midpoint(0.2)));
        assert_eq!(at(Criterion::Recall(0.6)), Some(0.7_f64.midpoint(0.2)));
        assert_eq!(at(Criterion::Recall(0.7)), None, "one of three is never found");
        // Of the three related pairs one is always missed, so that F1 is 4/5 here and 4/6 with all.
        assert_eq!(at(Criterion::F1), Some(0.7_f64.midpoint(0.2)));
        let found = Confusion::at(0.45, &labels, &scores).unwrap();
        assert_eq!((found.true_positives, found.false_negatives), (2, 1));
        assert_eq!(best_threshold(&labels, &[refused; 5], Criterion::F1), None);
    }

    #[test]
    fn useless_scores_have_a_threshold_or_say_so() {
        let (labels, scores) = ([false, false, true], [0.9, 0.6, 0.1]);
        let none = best_threshold(&labels, &scores, Criterion::Accuracy).unwrap();
        assert!(none > 0.9, "accepting nothing is wrong only once");
        assert_eq!(best_threshold(&labels, &scores, Criterion::F1), Some(0.1));
        assert_eq!(best_threshold(&labels, &scores, Criterion::Precision(0.5)), None);
        assert_eq!(best_threshold(&labels, &scores, Criterion::Precision(f64::NAN)), None);
        assert_eq!(best_threshold(&[true], &[0.1], Criterion::F1), None);
    }
}
