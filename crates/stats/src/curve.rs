//! Points of the ROC and the precision-recall curve, thinned for plots.
//!
//! Thinning leaves out points and moves none. Areas are not taken from these points but from all
//! (`classification`). It knows nothing of drawing.

use super::classification::{Step, Sweep};

/// A point of the ROC curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RocPoint {
    /// The share of negatives that are accepted.
    pub false_positive_rate: f64,
    /// The share of positives that are accepted.
    pub true_positive_rate: f64,
}

/// A point of the precision-recall curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionRecallPoint {
    /// The share of positives that are accepted.
    pub recall: f64,
    /// The share of accepted pairs that are positive.
    pub precision: f64,
    /// A threshold that accepts these pairs.
    pub threshold: f64,
}

/// The ROC curve from (0, 0) to (1, 1), of at most `limit` points (but never fewer than its two
/// ends), spread evenly along its length.
///
/// `None` when the lengths differ, a score is not finite, or either label is missing.
#[must_use]
pub fn roc(labels: &[bool], scores: &[f64], limit: usize) -> Option<Vec<RocPoint>> {
    let sweep = Sweep::over(labels, scores)?;
    let point = |step: &Step| RocPoint {
        false_positive_rate: step.false_positives as f64 / sweep.negatives as f64,
        true_positive_rate: step.true_positives as f64 / sweep.positives as f64,
    };
    let start = RocPoint { false_positive_rate: 0.0, true_positive_rate: 0.0 };
    let points: Vec<RocPoint> = [start].into_iter().chain(sweep.steps.iter().map(point)).collect();
    Some(thinned(&points, limit, |point| point.false_positive_rate + point.true_positive_rate))
}

/// The precision-recall curve from the highest score to accepting everything, of at most `limit`
/// points (but never fewer than two, if it has them), spread evenly over recall. Where several
/// thresholds have the same recall, a thinned curve keeps the one of highest precision.
///
/// `None` as for [`roc`].
#[must_use]
pub fn precision_recall(
    labels: &[bool],
    scores: &[f64],
    limit: usize,
) -> Option<Vec<PrecisionRecallPoint>> {
    let sweep = Sweep::over(labels, scores)?;
    let points: Option<Vec<PrecisionRecallPoint>> = sweep
        .steps
        .iter()
        .enumerate()
        .map(|(place, step)| {
            let accepted = (step.true_positives + step.false_positives) as f64;
            Some(PrecisionRecallPoint {
                recall: step.true_positives as f64 / sweep.positives as f64,
                precision: step.true_positives as f64 / accepted,
                threshold: sweep.threshold(place)?,
            })
        })
        .collect();
    Some(thinned(&points?, limit, |point| point.recall))
}

/// Both ends, and between them the first point at or past each of evenly spaced places; `place`
/// must not fall.
fn thinned<Point: Copy>(
    points: &[Point],
    limit: usize,
    place: impl Fn(&Point) -> f64,
) -> Vec<Point> {
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

    use super::{precision_recall, roc};
    use crate::classification::Confusion;
    use crate::golden;

    #[test]
    fn whole_curves_are_those_of_scikit_learn() {
        for case in golden::cases("classification") {
            let (labels, scores) =
                (golden::labels(&case["labels"]), golden::numbers(&case["scores"]));
            let found = roc(&labels, &scores, usize::MAX).unwrap();
            let expected = case["roc"].as_array().unwrap();
            assert_eq!(found.len(), expected.len());
            for (point, pair) in found.iter().zip(expected) {
                golden::check(point.false_positive_rate, &pair[0]);
                golden::check(point.true_positive_rate, &pair[1]);
            }
            let found = precision_recall(&labels, &scores, usize::MAX).unwrap();
            let expected = case["precision_recall"].as_array().unwrap();
            // scikit-learn leaves out what lies beyond full recall.
            assert!(found.len() >= expected.len());
            for (point, pair) in found.iter().zip(expected) {
                golden::check(point.recall, &pair[0]);
                golden::check(point.precision, &pair[1]);
                let at = Confusion::at(point.threshold, &labels, &scores).unwrap();
                assert_eq!((at.recall(), at.precision()), (point.recall, point.precision));
            }
        }
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
                prop_assert!(thin.is_sorted_by(|a, b| a.recall <= b.recall));
                prop_assert!(thin.is_sorted_by(|a, b| a.threshold > b.threshold));
            }
        }
    }
}
