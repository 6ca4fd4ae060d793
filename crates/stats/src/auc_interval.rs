//! The 95 % interval of the area under the ROC curve, by DeLong, DeLong and Clarke-Pearson
//! ("Comparing the areas under two or more correlated receiver operating characteristic curves",
//! 1988): the variance of an area from how often each single item wins.
//!
//! It knows one set of scores; the difference of two areas is not its business.

use super::correlation::average_ranks;
use super::normal;

/// The interval, within 0 to 1.
///
/// `None` when the lengths differ, a score is not finite, or there are fewer than two items of
/// either label.
#[must_use]
pub fn roc_auc_interval(labels: &[bool], scores: &[f64]) -> Option<[f64; 2]> {
    if labels.len() != scores.len() || scores.iter().any(|score| !score.is_finite()) {
        return None;
    }
    let of = |wanted: bool| -> Vec<f64> {
        let items = labels.iter().zip(scores).filter(|(label, _)| **label == wanted);
        items.map(|(_, score)| *score).collect()
    };
    let (positive, negative) = (of(true), of(false));
    if positive.len() < 2 || negative.len() < 2 {
        return None;
    }
    // An item's rank among all, less its rank among its own, is how many of the others it passes.
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

/// The sample variance of at least two numbers.
fn spread(numbers: &[f64]) -> f64 {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    squares / (numbers.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::roc_auc_interval;

    #[test]
    fn a_small_case_counted_by_hand() {
        // Positives 4, 3, 1 against negatives 2, 0: they pass 2, 2, 1 of 2, so the area is 5/6.
        // Wins 1, 1, 1/2 have variance 1/12; losses 1/3, 0 have 1/18. The standard error is
        // √(1/36 + 1/36).
        let labels = [true, true, false, true, false];
        let scores = [4.0, 3.0, 2.0, 1.0, 0.0];
        let [low, high] = roc_auc_interval(&labels, &scores).unwrap();
        let half = 1.959_963_985 * (1.0_f64 / 18.0).sqrt();
        assert!((low - (5.0 / 6.0 - half)).abs() < 1e-9, "{low}");
        assert_eq!(high, 1.0, "cut at the end of the range");
    }

    #[test]
    fn ties_are_level_and_too_little_is_refused() {
        let level = roc_auc_interval(&[true, true, false, false], &[1.0; 4]).unwrap();
        assert_eq!(level, [0.5, 0.5]);
        assert_eq!(roc_auc_interval(&[true, false, false], &[1.0, 2.0, 3.0]), None);
        assert_eq!(roc_auc_interval(&[true, true, false, false], &[f64::NAN; 4]), None);
    }
}
