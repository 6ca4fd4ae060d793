//! How far apart two spreads are: the Jensen-Shannon divergence of their histograms, in bits.
//!
//! Evaluation reports it between the distances of related and of non-related pairs (De Boom et
//! al. 2016). The figure depends on the bins; here they are 100 equal ones over the joint range, to
//! be said wherever the figure is shown.

use super::distribution::{equal_edges, histogram};

/// How many equal bins the joint range is cut into.
pub const BINS: usize = 100;

/// The Jensen-Shannon divergence (base 2, so from 0 for equal spreads to 1 for ones that share no
/// bin) between the histograms of two lists over [`BINS`] equal bins from the smallest to the
/// largest number of both.
///
/// `None` when a list is empty or holds a number that is not finite. When all numbers of both are
/// one and the same, the divergence is 0.
#[must_use]
pub fn jensen_shannon(first: &[f64], second: &[f64]) -> Option<f64> {
    let numbers = || first.iter().chain(second).copied();
    if first.is_empty() || second.is_empty() || numbers().any(|number| !number.is_finite()) {
        return None;
    }
    let low = numbers().fold(f64::INFINITY, f64::min);
    let high = numbers().fold(f64::NEG_INFINITY, f64::max);
    let edges = equal_edges(low, high, BINS);
    if edges.is_empty() {
        return Some(0.0);
    }
    jensen_shannon_of_counts(&histogram(first, &edges)?, &histogram(second, &edges)?)
}

/// The Jensen-Shannon divergence (base 2) between two histograms with the same bins.
///
/// `None` when the numbers of bins differ or a histogram counts nothing.
#[must_use]
pub fn jensen_shannon_of_counts(first: &[u64], second: &[u64]) -> Option<f64> {
    // Summed as floating point, because the sum of two counts read from elsewhere may not fit.
    let total = |counts: &[u64]| counts.iter().map(|&count| count as f64).sum::<f64>();
    let (first_total, second_total) = (total(first), total(second));
    if first.len() != second.len() || first_total == 0.0 || second_total == 0.0 {
        return None;
    }
    let divergence: f64 = first
        .iter()
        .zip(second)
        .map(|(&a, &b)| {
            let (a, b) = (a as f64 / first_total, b as f64 / second_total);
            let middle = f64::midpoint(a, b);
            // The two halves are added before they meet the sum, so that swapping the histograms
            // changes no bit.
            0.5 * (bits(a, middle) + bits(b, middle))
        })
        .sum();
    Some(divergence.clamp(0.0, 1.0))
}

/// What one bin adds to a Kullback-Leibler divergence; an empty bin adds nothing.
fn bits(share: f64, reference: f64) -> f64 {
    if share > 0.0 { share * (share / reference).log2() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{jensen_shannon, jensen_shannon_of_counts};
    use crate::golden;

    #[test]
    fn agrees_with_scipy() {
        for case in golden::cases("distribution") {
            let (first, second) =
                (golden::numbers(&case["first"]), golden::numbers(&case["second"]));
            golden::check(jensen_shannon(&first, &second).unwrap(), &case["jensen_shannon"]);
        }
    }

    #[test]
    fn the_ends_of_the_scale() {
        assert_eq!(jensen_shannon(&[1.0, 2.0], &[2.0, 1.0]), Some(0.0));
        assert_eq!(jensen_shannon(&[1.0, 2.0], &[7.0, 8.0]), Some(1.0));
        assert_eq!(jensen_shannon(&[3.0], &[3.0, 3.0]), Some(0.0));
    }

    #[test]
    fn nothing_to_compare_is_none() {
        assert_eq!(jensen_shannon(&[], &[1.0]), None);
        assert_eq!(jensen_shannon(&[1.0], &[f64::NAN]), None);
        assert_eq!(jensen_shannon_of_counts(&[1, 2], &[1]), None);
        assert_eq!(jensen_shannon_of_counts(&[0, 0], &[1, 2]), None);
        assert!(jensen_shannon_of_counts(&[u64::MAX, u64::MAX], &[1, 0]).unwrap() < 1.0);
    }

    proptest! {
        #[test]
        fn it_is_a_symmetric_share_of_a_bit(
            first in prop::collection::vec(any::<f64>(), 0..30),
            second in prop::collection::vec(-5.0..5.0, 0..30),
        ) {
            let found = jensen_shannon(&first, &second);
            prop_assert_eq!(found, jensen_shannon(&second, &first));
            prop_assert!(found.is_none_or(|found| (0.0..=1.0).contains(&found)));
        }
    }
}
