//! Wilcoxon's signed-rank test, two-sided: are paired differences as large below 0 as above?
//!
//! It takes the choices of SciPy's `wilcoxon` as it comes, so that a figure can be checked there:
//! differences of 0 are dropped (Wilcoxon's own rule), equal sizes share their mean rank, and there
//! is no continuity correction. It does not know what was measured; where only the direction of
//! each difference is known, the sign test of `significance` serves.

use super::correlation::average_ranks;
use super::normal;

/// With at most this many differences, all of different size and none 0, the distribution is
/// counted out.
const EXACT_UNTIED: usize = 50;

/// With at most this many differences it is counted out whatever they are.
const EXACT_TIED: usize = 13;

/// What the test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The smaller of the two rank sums.
    pub statistic: f64,
    /// The chance of a statistic at least as extreme when signs are tossed like coins.
    pub p: f64,
    /// Whether the chance was counted out; otherwise it is from the normal approximation, its
    /// variance corrected for ties.
    pub exact: bool,
}

/// Tests paired differences. Without any difference other than 0 there is nothing against chance:
/// `p` is 1.
///
/// `None` when a difference is not finite.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    if differences.iter().any(|difference| !difference.is_finite()) {
        return None;
    }
    let kept: Vec<f64> =
        differences.iter().copied().filter(|&difference| difference != 0.0).collect();
    let sizes: Vec<f64> = kept.iter().map(|difference| difference.abs()).collect();
    let ranks = average_ranks(&sizes);
    let sum = |positive: bool| {
        let ranked = kept.iter().zip(&ranks);
        ranked
            .filter(|(difference, _)| (**difference > 0.0) == positive)
            .map(|(_, rank)| rank)
            .sum::<f64>()
    };
    let statistic = sum(true).min(sum(false));

    let dropped = kept.len() < differences.len();
    let ties = tie_lengths(sizes);
    let tied = ties.iter().any(|&length| length > 1.0);
    let exact =
        differences.len() <= EXACT_TIED || (differences.len() <= EXACT_UNTIED && !tied && !dropped);
    let p = if exact { counted_out(statistic, &ranks) } else { approximated(statistic, &ties) };
    Some(SignedRank { statistic, p, exact })
}

/// How many differences share each distinct size.
fn tie_lengths(mut sizes: Vec<f64>) -> Vec<f64> {
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64).collect()
}

/// Twice the share of all sign assignments whose rank sum is at most the statistic.
fn counted_out(statistic: f64, ranks: &[f64]) -> f64 {
    // A shared rank may end in a half, so sums are counted in halves.
    let halves = |number: f64| (2.0 * number).round() as usize;
    let mut reached = 0;
    // 2^50 assignments still count exactly in a double.
    let mut ways = vec![1.0];
    for rank in ranks.iter().copied().map(halves) {
        reached += rank;
        ways.resize(reached + 1, 0.0);
        for sum in (rank..=reached).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let as_extreme: f64 = ways.iter().take(halves(statistic) + 1).sum();
    let all: f64 = ways.iter().sum();
    (2.0 * as_extreme / all).min(1.0)
}

/// The two-sided chance under a normal distribution of the same mean and variance.
fn approximated(statistic: f64, ties: &[f64]) -> f64 {
    let count: f64 = ties.iter().sum();
    let tied: f64 = ties.iter().map(|length| length * length * length - length).sum();
    let variance = (count * (count + 1.0) * (2.0 * count + 1.0) - tied / 2.0) / 24.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let deviation = (statistic - count * (count + 1.0) / 4.0) / variance.sqrt();
    (2.0 * normal::cumulative(-deviation.abs())).min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::signed_rank;
    use crate::golden;

    #[test]
    fn agrees_with_scipy() {
        let mut exact = 0;
        let cases = golden::cases("wilcoxon");
        for case in &cases {
            let found = signed_rank(&golden::numbers(&case["differences"])).unwrap();
            golden::check(found.statistic, &case["statistic"]);
            golden::check_digits(found.p, &case["p"]);
            exact += usize::from(found.exact);
        }
        assert!(exact > 0 && exact < cases.len(), "the cases take both ways");
    }

    #[test]
    fn nothing_but_zeros_speaks_for_no_side() {
        assert_eq!(signed_rank(&[]).unwrap().p, 1.0);
        assert_eq!(signed_rank(&[0.0; 100]).unwrap().p, 1.0);
        assert_eq!(signed_rank(&[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn swapping_the_methods_changes_nothing(
            differences in prop::collection::vec((-9..9).prop_map(f64::from), 0..70),
        ) {
            let found = signed_rank(&differences).unwrap();
            let swapped: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            prop_assert_eq!(signed_rank(&swapped), Some(found));
            prop_assert!((0.0..=1.0).contains(&found.p));
        }
    }
}
