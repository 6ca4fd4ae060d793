//! Tests of whether one method is better than another on the same items, all two-sided: the sign
//! test (which item was won), Fisher's randomisation test (by how much), and Wilcoxon's signed-rank
//! test (by which rank of size).
//!
//! They receive counts or differences; the items are not known here. Intervals of a difference of
//! correlations are in `bootstrap`.

use cognate_kernels::random::Random;
use serde::Serialize;

use super::correlation::average_ranks;
use super::normal;

/// The two-tailed sign test: the probability that a fair coin splits `wins` + `losses` tosses at
/// least as unevenly. Items on which the methods agree must be left out. It is exact, and 1 without
/// tosses.
#[must_use]
pub fn sign_test(wins: u32, losses: u32) -> f64 {
    let tosses = f64::from(wins) + f64::from(losses);
    let fewer = wins.min(losses);
    let mode = ((u64::from(wins) + u64::from(losses)) / 2) as u32;
    // The weight of each split relative to the most even one, walking outwards: C(n, i - 1) = C(n,
    // i) * i / (n - i + 1). Only ratios are needed, so factorials or logarithms cost no precision.
    // The walk ends where weights vanish, after some twenty square roots of the number of tosses.
    let (mut weight, mut all, mut as_uneven) = (1.0_f64, 0.0, 0.0);
    for split in (0..=mode).rev() {
        all += weight;
        if split <= fewer {
            as_uneven += weight;
        }
        weight *= f64::from(split) / (tosses - f64::from(split) + 1.0);
        if weight < f64::MIN_POSITIVE {
            break;
        }
    }
    // `all` covers one side. For an even number of tosses the middle split belongs to both sides
    // and must not count twice.
    let middle = if wins.abs_diff(losses).is_multiple_of(2) { 1.0 } else { 0.0 };
    (2.0 * as_uneven / (2.0 * all - middle)).min(1.0)
}

/// With at most this many nonzero differences all assignments of signs are tried.
const EXACT: usize = 20;

/// Fisher's paired randomisation test, two-sided: if the methods were equal, each difference could
/// as well have the opposite sign.
#[derive(Debug, Clone, PartialEq)]
pub struct Randomisation {
    pub rounds: u32,
    pub seed: u64,
}

impl Default for Randomisation {
    /// 100,000 assignments: near p = 0.05 the standard error is 0.0007.
    fn default() -> Self {
        Self { rounds: 100_000, seed: 1935 }
    }
}

impl Randomisation {
    /// The probability of a mean difference at least as far from 0 under random signs.
    ///
    /// Differences of 0 change no sum and are left out. With up to 20 others, all assignments are
    /// tried and the probability is exact. Otherwise it is (extreme + 1) / (rounds + 1): the
    /// observed assignment counts as one, so the probability is never 0. Sums that differ only by
    /// rounding count as equal.
    ///
    /// `None` if a difference is not finite. Without nonzero differences the probability is 1.
    #[must_use]
    pub fn p_value(&self, differences: &[f64]) -> Option<f64> {
        if differences.iter().any(|difference| !difference.is_finite()) {
            return None;
        }
        // Relative to the largest, so that no sum overflows.
        let largest = differences.iter().fold(0.0_f64, |largest, size| largest.max(size.abs()));
        let kept: Vec<f64> = differences
            .iter()
            .filter(|&&difference| difference != 0.0)
            .map(|difference| difference / largest)
            .collect();
        let sizes: f64 = kept.iter().map(|difference| difference.abs()).sum();
        let extreme = kept.iter().sum::<f64>().abs() - 1e-12 * sizes;
        match kept.split_first() {
            None => Some(1.0),
            Some((first, rest)) if kept.len() <= EXACT => {
                // The first sign is fixed: flipping all signs changes no absolute value.
                let all = f64::from(1_u32 << rest.len());
                Some(f64::from(count_extreme(*first, rest, extreme)) / all)
            }
            Some(_) => Some(self.sampled(&kept, extreme)),
        }
    }

    fn sampled(&self, differences: &[f64], extreme: f64) -> f64 {
        let mut random = Random::seeded(self.seed);
        let mut found = 0_u32;
        for _ in 0..self.rounds {
            let mut sum = 0.0;
            for block in differences.chunks(64) {
                let mut signs = random.word();
                for difference in block {
                    // A random bit is written directly into the sign; a branch on it would be
                    // mispredicted half the time.
                    sum += f64::from_bits(difference.to_bits() ^ (signs << 63));
                    signs >>= 1;
                }
            }
            found += u32::from(sum.abs() >= extreme);
        }
        (f64::from(found) + 1.0) / (f64::from(self.rounds) + 1.0)
    }
}

/// Number of sign assignments of the rest with a sum at least `extreme` from 0.
fn count_extreme(sum: f64, rest: &[f64], extreme: f64) -> u32 {
    match rest.split_first() {
        None => u32::from(sum.abs() >= extreme),
        Some((next, rest)) => {
            count_extreme(sum + next, rest, extreme) + count_extreme(sum - next, rest, extreme)
        }
    }
}

/// With at most this many differences, all of distinct nonzero size, the distribution is computed
/// exactly.
const EXACT_UNTIED: usize = 50;

/// With at most this many differences it is computed exactly in any case.
const EXACT_TIED: usize = 13;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SignedRank {
    pub statistic: f64,
    /// The probability of a statistic at least as extreme under random signs.
    pub p: f64,
    /// Whether the probability is exact; otherwise it is a normal approximation with a variance
    /// corrected for ties.
    pub exact: bool,
}

/// Wilcoxon's signed-rank test, two-sided: are paired differences as large below 0 as above? The
/// choices are the defaults of SciPy's `wilcoxon`: differences of 0 are dropped, equal sizes share
/// their mean rank, no continuity correction. Without nonzero differences `p` is 1.
///
/// `None` if a difference is not finite.
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

/// For each distinct size the number of differences that have it.
fn tie_lengths(mut sizes: Vec<f64>) -> Vec<f64> {
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64).collect()
}

/// Twice the share of sign assignments with a rank sum of at most the statistic.
fn counted_out(statistic: f64, ranks: &[f64]) -> f64 {
    // A shared rank may end in a half, so sums are counted in halves.
    let halves = |number: f64| (2.0 * number).round() as usize;
    let mut reached = 0;
    // Counts up to 2^50 are exact in a double.
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

/// The two-sided probability of a normal distribution with the same mean and variance.
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
    use super::*;
    use crate::golden;

    #[test]
    fn the_sign_test_agrees_with_scipy() {
        for case in golden::cases("sign") {
            let [wins, losses] = ["wins", "losses"].map(|key| case[key].as_u64().unwrap() as u32);
            // The product of ten thousand ratios down to 1e-271 loses some digits.
            golden::check_digits(sign_test(wins, losses), &case["p"]);
        }
    }

    #[test]
    fn no_number_of_tosses_is_too_small_or_too_large() {
        assert_eq!(sign_test(0, 0), 1.0);
        assert_eq!(sign_test(u32::MAX, u32::MAX), 1.0);
        assert_eq!(sign_test(0, u32::MAX), 0.0);
    }

    #[test]
    fn the_randomisation_test_agrees_with_scipy() {
        let golden = golden::topic("randomisation");
        let test = Randomisation::default();
        for case in golden["exact"].as_array().unwrap() {
            golden::check(
                test.p_value(&golden::numbers(&case["differences"])).unwrap(),
                &case["p"],
            );
        }
        let sampled = &golden["sampled"];
        let differences = golden::numbers(&sampled["differences"]);
        let found = test.p_value(&differences).unwrap();
        // Near a half, 100,000 rounds have a standard error of 0.0016.
        golden::check_within(found, golden::number(&sampled["p"]), 0.008);
        assert_eq!(test.p_value(&differences), Some(found), "the same seed gives the same bits");
    }

    #[test]
    fn a_clear_winner_is_never_impossible() {
        let test = Randomisation { rounds: 999, seed: 1 };
        assert_eq!(test.p_value(&[1.0; 200]), Some(0.001));
        assert_eq!(test.p_value(&[f64::MAX; 3]), Some(0.25));
        assert_eq!(test.p_value(&[0.0; 5]), Some(1.0));
        assert_eq!(test.p_value(&[f64::INFINITY]), None);
    }

    #[test]
    fn the_signed_rank_test_agrees_with_scipy() {
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
}
