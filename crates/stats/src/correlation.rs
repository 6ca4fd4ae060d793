//! Correlation of two lists of numbers: Pearson's, and Spearman's of their ranks.
//!
//! Gold values and scores are not distinguished here, and unscored pairs are not known: the
//! evaluation replaces them by 0 before.

/// Pearson's correlation, within -1 to 1.
///
/// `None` if the lengths differ, there are fewer than two pairs, a number is not finite, or one
/// side is constant: then there is no correlation, and tables count it as 0.
#[must_use]
pub fn pearson(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.len() != second.len() {
        return None;
    }
    let (first, second) = (standardised(first)?, standardised(second)?);
    let product: f64 = first.iter().zip(&second).map(|(a, b)| a * b).sum();
    Some(product.clamp(-1.0, 1.0))
}

/// Spearman's correlation: Pearson's of the [average ranks](average_ranks). `None` as for
/// [`pearson`].
#[must_use]
pub fn spearman(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.iter().chain(second).any(|number| !number.is_finite()) {
        return None;
    }
    pearson(&average_ranks(first), &average_ranks(second))
}

/// The rank of each number, counted from 1 for the smallest; equal numbers share the mean of their
/// ranks.
///
/// A NaN ranks after the infinities and shares its rank with nothing; the measures of this crate
/// refuse it before.
#[must_use]
pub fn average_ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_unstable_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut before = 0;
    for tied in order.chunk_by(|&a, &b| numbers[a] == numbers[b]) {
        let shared = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for &item in tied {
            ranks[item] = shared;
        }
        before += tied.len();
    }
    ranks
}

/// The numbers moved to mean 0 and scaled to a sum of squares of 1, so that a correlation is a
/// plain dot product. `None` when that cannot be: fewer than two numbers, one that is not finite,
/// or all of them equal.
pub(super) fn standardised(numbers: &[f64]) -> Option<Vec<f64>> {
    let largest = numbers.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    // max() ignores NaN, so finiteness is checked separately.
    if numbers.len() < 2 || numbers.iter().any(|number| !number.is_finite()) {
        return None;
    }
    if numbers.iter().all(|&number| number == numbers[0]) {
        return None;
    }
    // The largest number without its mantissa: dividing by a power of two keeps the squares of huge
    // and tiny numbers in range and rounds nothing, which matters for close numbers far from 0.
    let unit = f64::from_bits(largest.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE);
    let mut centred: Vec<f64> = numbers.iter().map(|number| number / unit).collect();
    for _ in 0..2 {
        let mean = centred.iter().sum::<f64>() / centred.len() as f64;
        centred.iter_mut().for_each(|number| *number -= mean);
    }
    let norm = centred.iter().map(|number| number * number).sum::<f64>().sqrt();
    if norm == 0.0 {
        return None;
    }
    centred.iter_mut().for_each(|number| *number /= norm);
    Some(centred)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{average_ranks, pearson, spearman};
    use crate::golden;

    #[test]
    fn agrees_with_scipy() {
        for case in golden::cases("correlation") {
            let (x, y) = (golden::numbers(&case["x"]), golden::numbers(&case["y"]));
            assert_eq!(average_ranks(&x), golden::numbers(&case["ranks"]));
            golden::check(pearson(&x, &y).unwrap(), &case["pearson"]);
            golden::check(spearman(&x, &y).unwrap(), &case["spearman"]);
        }
    }

    #[test]
    fn what_has_no_correlation_says_so() {
        let rising = [1.0, 2.0, 3.0];
        for other in [&[2.0, 2.0, 2.0][..], &[0.1, 0.1, 0.1], &[1.0, 2.0], &[1.0, f64::NAN, 2.0]] {
            assert_eq!(pearson(&rising, other), None);
            assert_eq!(pearson(other, &rising), None);
            assert_eq!(spearman(&rising, other), None);
        }
        assert_eq!(pearson(&rising, &[1.0, f64::INFINITY, 2.0]), None);
        assert_eq!(pearson(&[1.0], &[1.0]), None);
        assert_eq!(pearson(&[], &[]), None);
        assert_eq!(average_ranks(&[0.0, -0.0, -1.0]), [2.5, 2.5, 1.0], "zeros are equal");
    }

    #[test]
    fn neither_huge_nor_tiny_numbers_leave_the_range() {
        let huge = [f64::MAX, -f64::MAX, f64::MAX, 0.0];
        let tiny = [5e-324, -5e-324, 5e-324, 0.0];
        assert!((pearson(&huge, &tiny).unwrap() - 1.0).abs() < 1e-15);
        let close = [1.0, 1.0 + f64::EPSILON, 1.0, 1.0];
        assert!((pearson(&close, &[0.0, 1.0, 0.0, 0.0]).unwrap() - 1.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn no_answer_is_outside_the_range(
            x in prop::collection::vec(any::<f64>(), 0..6),
            y in prop::collection::vec(any::<f64>(), 0..6),
        ) {
            for answer in [pearson(&x, &y), spearman(&x, &y)].into_iter().flatten() {
                prop_assert!((-1.0..=1.0).contains(&answer));
            }
        }
    }
}
