//! One pass over labelled scores from the highest down: how many positives and negatives every
//! possible threshold accepts.
//!
//! Areas, curves and best thresholds are all read off it. It does not know which of them is wanted.

/// What is accepted at each distinct score.
pub(super) struct Sweep {
    /// How many labels are positive; at least one.
    pub(super) positives: usize,
    /// How many labels are negative; at least one.
    pub(super) negatives: usize,
    /// One for each distinct score, the highest first.
    pub(super) steps: Vec<Step>,
}

/// What is accepted when everything with at least this score is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) score: f64,
    /// How many accepted items are positive.
    pub(super) true_positives: usize,
    /// How many accepted items are negative.
    pub(super) false_positives: usize,
}

impl Sweep {
    /// Sweeps over the scores. `None` when the lengths differ, a score is not finite, or either
    /// label is missing.
    pub(super) fn over(labels: &[bool], scores: &[f64]) -> Option<Self> {
        let positives = labels.iter().filter(|&&label| label).count();
        let negatives = labels.len() - positives;
        let unfit = labels.len() != scores.len() || scores.iter().any(|score| !score.is_finite());
        if unfit || positives == 0 || negatives == 0 {
            return None;
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
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

    /// A threshold that accepts exactly what this step does: midway to the next lower score, or the
    /// lowest score itself.
    pub(super) fn threshold(&self, step: usize) -> Option<f64> {
        let upper = self.steps.get(step)?.score;
        let Some(lower) = self.steps.get(step + 1).map(|next| next.score) else {
            return Some(upper);
        };
        let middle = f64::midpoint(lower, upper);
        // Between two neighbouring doubles there is no middle, and the lower one would accept too
        // much.
        Some(if middle > lower { middle } else { upper })
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, Sweep};

    #[test]
    fn ties_are_accepted_together() {
        let sweep = Sweep::over(&[true, false, true, false], &[0.5, 0.5, 0.9, 0.1]).unwrap();
        let step = |score, true_positives, false_positives| Step {
            score,
            true_positives,
            false_positives,
        };
        assert_eq!(sweep.steps, [step(0.9, 1, 0), step(0.5, 2, 1), step(0.1, 2, 2)]);
        let thresholds: Vec<_> = (0..4).map(|place| sweep.threshold(place)).collect();
        assert_eq!(thresholds, [Some(0.7), Some(0.3), Some(0.1), None]);
    }

    #[test]
    fn neighbouring_doubles_are_still_parted() {
        let above = 1.0_f64.next_up();
        let sweep = Sweep::over(&[true, false], &[above, 1.0]).unwrap();
        assert_eq!(sweep.threshold(0), Some(above));
        let widest = Sweep::over(&[true, false], &[f64::MAX, f64::MIN]).unwrap();
        assert_eq!(widest.threshold(0), Some(0.0));
    }

    #[test]
    fn one_sided_or_broken_input_is_refused() {
        assert!(Sweep::over(&[true, true], &[1.0, 2.0]).is_none());
        assert!(Sweep::over(&[true, false], &[1.0]).is_none());
        assert!(Sweep::over(&[true, false], &[1.0, f64::NAN]).is_none());
        assert!(Sweep::over(&[], &[]).is_none());
    }
}
