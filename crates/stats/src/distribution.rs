//! How one list of numbers is spread: quantiles, and counts in given bins.
//!
//! It follows numpy's `quantile` (linear) and `histogram` to the edge, so that a figure here can be
//! drawn again there. It does not compare two spreads; that is `divergence`.

/// The value below which a share `at` (0 to 1, clamped) of the numbers lies, with a straight line
/// between neighbours. `None` without numbers, or when one of them or the share is not a finite
/// number.
#[must_use]
pub fn quantile(numbers: &[f64], at: f64) -> Option<f64> {
    at.is_finite().then_some(())?;
    Some(quantile_of_sorted(&sorted(numbers)?, at))
}

/// The 101 quantiles at 0 %, 1 % ... 100 %. `None` without numbers or when one is not finite.
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
    // Halves, doubled at the end: the width of the widest finite range is not itself finite.
    let half_step = (high / 2.0 - low / 2.0) / bins as f64;
    let mut edges: Vec<f64> =
        (0..bins).map(|bin| 2.0 * (low / 2.0 + bin as f64 * half_step)).collect();
    edges.push(high);
    edges
}

/// How many numbers fall in each bin between neighbouring edges. A bin holds its lower edge and not
/// its upper one, but the last bin holds both; a number outside all bins is in none. Fewer than two
/// edges make no bins.
///
/// `None` when the edges do not rise or a number is NaN.
#[must_use]
pub fn histogram(numbers: &[f64], edges: &[f64]) -> Option<Vec<u64>> {
    // is_sorted also refuses a NaN among several edges.
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

/// The quantile of numbers already sorted, of which there must be one; 0 by definition if there is
/// none.
pub(super) fn quantile_of_sorted(sorted: &[f64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = at.clamp(0.0, 1.0) * last as f64;
    let below = (place as usize).min(last);
    let above = (below + 1).min(last);
    let share = place - below as f64;
    let gap = sorted[above] - sorted[below];
    // The gap between two opposite huge numbers may not be finite, but their weighted sum is.
    if gap.is_finite() {
        sorted[below] + gap * share
    } else {
        sorted[below] * (1.0 - share) + sorted[above] * share
    }
}

/// A sorted copy, unless there is nothing to sort or something that is not finite.
fn sorted(numbers: &[f64]) -> Option<Vec<f64>> {
    if numbers.is_empty() || numbers.iter().any(|number| !number.is_finite()) {
        return None;
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::{equal_edges, histogram, percentiles, quantile};
    use crate::golden;

    #[test]
    fn agrees_with_numpy() {
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
}
