//! The distribution of a list of numbers (quantiles and histograms), and the divergence of two
//! distributions.
//!
//! Quantiles and histograms follow numpy's `quantile` (linear) and `histogram` exactly, so that
//! figures can be reproduced there.

/// The quantile `at` (0 to 1, clamped), interpolated linearly between neighbours. `None` without
/// numbers, or if a number or `at` is not finite.
#[must_use]
pub fn quantile(numbers: &[f64], at: f64) -> Option<f64> {
    at.is_finite().then_some(())?;
    Some(quantile_of_sorted(&sorted(numbers)?, at))
}

#[must_use]
pub fn percentiles(numbers: &[f64]) -> Option<Vec<f64>> {
    let sorted = sorted(numbers)?;
    Some((0..=100).map(|percent| quantile_of_sorted(&sorted, f64::from(percent) / 100.0)).collect())
}

/// The `bins` + 1 edges of equal bins from `low` to `high`. Empty when `bins` is 0 or the range is
/// not finite and rising.
#[must_use]
pub fn equal_edges(low: f64, high: f64, bins: usize) -> Vec<f64> {
    if bins == 0 || !low.is_finite() || !high.is_finite() || low >= high {
        return Vec::new();
    }
    // Half steps, doubled at the end: the width of the widest finite range overflows.
    let half_step = (high / 2.0 - low / 2.0) / bins as f64;
    let mut edges: Vec<f64> =
        (0..bins).map(|bin| 2.0 * (low / 2.0 + bin as f64 * half_step)).collect();
    edges.push(high);
    edges
}

/// The number of values in each bin between adjacent edges. A bin includes its lower edge but not
/// its upper one, except the last bin, which includes both; values outside all bins are not
/// counted. Fewer than two edges make no bins.
///
/// `None` if the edges are not rising or a number is NaN.
#[must_use]
pub fn histogram(numbers: &[f64], edges: &[f64]) -> Option<Vec<u64>> {
    // is_sorted also refuses NaN among several edges.
    if !edges.is_sorted() || numbers.iter().any(|number| number.is_nan()) {
        return None;
    }
    let bins = edges.len().saturating_sub(1);
    let mut counts = vec![0; bins];
    for &number in numbers {
        let edges_passed = edges.partition_point(|&edge| edge <= number);
        let at_the_top = edges_passed == edges.len() && edges.last() == Some(&number);
        let bin = if at_the_top { bins.checked_sub(1) } else { edges_passed.checked_sub(1) };
        if let Some(count) = bin.and_then(|bin| counts.get_mut(bin)) {
            *count += 1;
        }
    }
    Some(counts)
}

pub(super) fn quantile_of_sorted(sorted: &[f64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = at.clamp(0.0, 1.0) * last as f64;
    let below = (place as usize).min(last);
    let above = (below + 1).min(last);
    let share = place - below as f64;
    let gap = sorted[above] - sorted[below];
    // The difference of two huge numbers may overflow, but their weighted sum does not.
    if gap.is_finite() {
        sorted[below] + gap * share
    } else {
        sorted[below] * (1.0 - share) + sorted[above] * share
    }
}

fn sorted(numbers: &[f64]) -> Option<Vec<f64>> {
    if numbers.is_empty() || numbers.iter().any(|number| !number.is_finite()) {
        return None;
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// Number of equal bins in the joint range. The divergence depends on it, so reports must state it.
pub const BINS: usize = 100;

/// The Jensen-Shannon divergence (base 2: 0 for equal distributions, 1 for disjoint ones) between
/// the histograms of two lists over [`BINS`] equal bins from the smallest to the largest number of
/// both. De Boom et al. (2016) compare the distances of related and of non-related pairs by it.
///
/// `None` if a list is empty or has a number that is not finite. If all numbers of both are equal,
/// the divergence is 0.
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
    let (of_first, of_second) = (histogram(first, &edges)?, histogram(second, &edges)?);
    let divergence: f64 = of_first
        .into_iter()
        .zip(of_second)
        .map(|(a, b)| {
            let (a, b) = (a as f64 / first.len() as f64, b as f64 / second.len() as f64);
            let middle = f64::midpoint(a, b);
            // The two halves are added to each other first, so that swapping the histograms changes
            // no bit.
            0.5 * (bits(a, middle) + bits(b, middle))
        })
        .sum();
    Some(divergence.clamp(0.0, 1.0))
}

/// The contribution of a bin to a Kullback-Leibler divergence; 0 for an empty bin.
fn bits(share: f64, reference: f64) -> f64 {
    if share > 0.0 { share * (share / reference).log2() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::golden;

    #[test]
    fn agrees_with_numpy_and_scipy() {
        for case in golden::cases("distribution") {
            let numbers = golden::numbers(&case["first"]);
            let quantiles = golden::numbers(&case["quantiles"]);
            for (found, expected) in percentiles(&numbers).unwrap().into_iter().zip(quantiles) {
                golden::check_within(found, expected, golden::TOLERANCE);
            }
            let edges = golden::numbers(&case["edges"]);
            let counts = histogram(&numbers, &edges).unwrap();
            assert_eq!(serde_json::json!(counts), case["first_counts"]);
            assert_eq!(equal_edges(edges[0], edges[100], 100), edges);
            let second = golden::numbers(&case["second"]);
            golden::check(jensen_shannon(&numbers, &second).unwrap(), &case["jensen_shannon"]);
        }
    }

    #[test]
    fn an_edge_belongs_to_the_bin_above_it_and_the_last_to_the_last() {
        let counts = histogram(&[-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5], &[0.0, 1.0, 2.0]);
        assert_eq!(counts, Some(vec![2, 3]));
    }

    #[test]
    fn bins_that_cannot_be_made_are_none() {
        assert_eq!(histogram(&[1.0], &[]), Some(vec![]));
        assert_eq!(histogram(&[1.0], &[1.0]), Some(vec![]));
        assert_eq!(histogram(&[1.0], &[2.0, 1.0]), None);
        assert_eq!(histogram(&[1.0], &[f64::NAN, 1.0]), None);
        assert_eq!(histogram(&[f64::NAN], &[0.0, 1.0]), None);
        assert!(equal_edges(1.0, 1.0, 5).is_empty());
        assert!(equal_edges(0.0, f64::INFINITY, 5).is_empty());
    }

    #[test]
    fn the_widest_range_stays_finite() {
        let edges = equal_edges(f64::MIN, f64::MAX, 100);
        assert!(edges.iter().all(|edge| edge.is_finite()) && edges.is_sorted());
        assert_eq!(quantile(&[f64::MIN, f64::MAX], 0.5), Some(0.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
    }

    #[test]
    fn the_ends_of_the_scale() {
        assert_eq!(jensen_shannon(&[1.0, 2.0], &[2.0, 1.0]), Some(0.0));
        assert_eq!(jensen_shannon(&[1.0, 2.0], &[7.0, 8.0]), Some(1.0));
        assert_eq!(jensen_shannon(&[3.0], &[3.0, 3.0]), Some(0.0));
        assert_eq!(jensen_shannon(&[], &[1.0]), None);
        assert_eq!(jensen_shannon(&[1.0], &[f64::NAN]), None);
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
