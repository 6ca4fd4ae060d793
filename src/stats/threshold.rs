//! The best threshold of one set of labelled scores, to be tried on another.
//!
//! A threshold lies midway between two neighbouring distinct scores, so that no score of the set
//! sits on it. It knows nothing of the set it will be used on; how that goes is counted by
//! [`Confusion`](super::classification::Confusion).

use super::sweep::Step;
use super::sweep::Sweep;

/// What a threshold is chosen for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// The highest F1.
    F1,
    /// The highest accuracy, which is the lowest split error. It may be best to accept nothing:
    /// then the threshold is the next number above the highest score.
    Accuracy,
    /// The highest recall among thresholds of at least this precision.
    Precision(f64),
}

/// The threshold that serves the aim best; of several that serve it equally, the highest.
///
/// `None` when the lengths differ, a score is not finite, either label is missing, or the wanted
/// precision is never reached. Accepting everything is a threshold at the lowest score.
#[must_use]
pub fn best_threshold(labels: &[bool], scores: &[f64], aim: Criterion) -> Option<f64> {
    let sweep = Sweep::over(labels, scores)?;
    let mut best = match aim {
        Criterion::Accuracy => (sweep.negatives as f64, sweep.steps.first()?.score.next_up()),
        Criterion::F1 | Criterion::Precision(_) => (f64::NEG_INFINITY, f64::NAN),
    };
    for (place, step) in sweep.steps.iter().enumerate() {
        let worth = worth(&sweep, step, aim);
        if worth > best.0 {
            best = (worth, sweep.threshold(place)?);
        }
    }
    (!best.1.is_nan()).then_some(best.1)
}

/// A number that is larger the better the step serves the aim; minus infinity if it does not serve
/// at all.
fn worth(sweep: &Sweep, step: &Step, aim: Criterion) -> f64 {
    let found = step.true_positives as f64;
    let wrong = step.false_positives as f64;
    match aim {
        // Twice the positives found, over accepted and positive pairs together.
        Criterion::F1 => 2.0 * found / (found + wrong + sweep.positives as f64),
        Criterion::Accuracy => found + sweep.negatives as f64 - wrong,
        Criterion::Precision(wanted) if found > 0.0 && found / (found + wrong) >= wanted => found,
        Criterion::Precision(_) => f64::NEG_INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::Criterion;
    use super::best_threshold;
    use crate::stats::classification::Confusion;
    use crate::stats::golden;
    use proptest::prelude::*;

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
            golden::check(at(Criterion::Accuracy).unwrap().accuracy(), &case["best_accuracy"]);
            // The script writes -1 where no threshold reaches the precision.
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
        // Half of everything is positive, so this precision is had by accepting all.
        assert_eq!(
            best_threshold(&labels, &scores, Criterion::Precision(0.5)),
            Some(0.4_f64.midpoint(0.6))
        );
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

    proptest! {
        #[test]
        fn no_score_of_the_set_is_a_better_threshold(
            pairs in prop::collection::vec((any::<bool>(), (-9..9).prop_map(f64::from)), 0..40),
        ) {
            let (labels, scores): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            if let Some(best) = best_threshold(&labels, &scores, Criterion::Accuracy) {
                let at = |threshold| Confusion::at(threshold, &labels, &scores).unwrap();
                let error = |threshold| at(threshold).split_error();
                prop_assert!(scores.iter().all(|&score| error(best) <= error(score)));
            }
        }
    }
}
