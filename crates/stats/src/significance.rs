//! Two tests of whether one method is better than another on the same items: the sign test, which
//! sees only who won, and Fisher's randomisation test, which sees by how much.
//!
//! Both are two-sided and take what was counted or measured per item; they do not know the items.
//! Intervals of a difference of correlations are in `bootstrap`, the test of ranks in
//! `signed_rank`.

use cognate_kernels::random::Random;

/// The two-tailed sign test: the chance that a fair coin splits `wins` + `losses` tosses at least
/// as unevenly. Items on which the methods agree are left out before. It is exact, and 1 when there
/// was no toss.
#[must_use]
pub fn sign_test(wins: u32, losses: u32) -> f64 {
    let tosses = f64::from(wins) + f64::from(losses);
    let fewer = wins.min(losses);
    let mode = ((u64::from(wins) + u64::from(losses)) / 2) as u32;
    // The weight of each split relative to the most even one, walking outwards: C(n, i - 1) = C(n,
    // i) * i / (n - i + 1). Only ratios are needed, so no factorial and no logarithm costs digits.
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
    // `all` is one side. For an even number of tosses the middle split belongs to both sides and
    // must not count twice.
    let middle = if wins.abs_diff(losses).is_multiple_of(2) { 1.0 } else { 0.0 };
    (2.0 * as_uneven / (2.0 * all - middle)).min(1.0)
}

/// With at most this many differences other than 0 every assignment of signs is tried.
const EXACT: usize = 20;

/// Fisher's paired randomisation test, two-sided: if the methods were the same, each item's
/// difference could as well have had the other sign.
#[derive(Debug, Clone, PartialEq)]
pub struct Randomisation {
    /// How many random assignments of signs stand for all of them when there are too many to try.
    pub rounds: u32,
    /// Fixes the random assignments.
    pub seed: u64,
}

impl Default for Randomisation {
    /// 100,000 assignments: near p = 0.05 the standard error is 0.0007.
    fn default() -> Self {
        Self { rounds: 100_000, seed: 1935 }
    }
}

impl Randomisation {
    /// The chance of a mean difference at least as far from 0 when signs are tossed.
    ///
    /// Differences of 0 change no sum and are left out. Up to 20 others, all assignments are tried
    /// and the chance is exact. Beyond, it is (extreme + 1) / (rounds + 1): what was observed is
    /// itself one of the assignments, so the chance is never reported as 0. Sums that differ by
    /// rounding alone count as equal.
    ///
    /// `None` when a difference is not finite. Without any difference other than 0 the chance is 1.
    #[must_use]
    pub fn p_value(&self, differences: &[f64]) -> Option<f64> {
        if differences.iter().any(|difference| !difference.is_finite()) {
            return None;
        }
        // In units of the largest, so that no sum overflows.
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
                // The sign of the first is held: turning all signs at once changes no size.
                let all = f64::from(1_u32 << rest.len());
                Some(f64::from(count_extreme(*first, rest, extreme)) / all)
            }
            Some(_) => Some(self.sampled(&kept, extreme)),
        }
    }

    /// The chance from random assignments.
    fn sampled(&self, differences: &[f64], extreme: f64) -> f64 {
        let mut random = Random::seeded(self.seed);
        let mut found = 0_u32;
        for _ in 0..self.rounds {
            let mut sum = 0.0;
            for block in differences.chunks(64) {
                let mut signs = random.word();
                for difference in block {
                    // A random bit goes straight into the sign; a branch on it would be guessed
                    // wrong half the time.
                    sum += f64::from_bits(difference.to_bits() ^ (signs << 63));
                    signs >>= 1;
                }
            }
            found += u32::from(sum.abs() >= extreme);
        }
        (f64::from(found) + 1.0) / (f64::from(self.rounds) + 1.0)
    }
}

/// How many sign assignments of the rest bring the sum at least as far from 0 as `extreme`.
fn count_extreme(sum: f64, rest: &[f64], extreme: f64) -> u32 {
    match rest.split_first() {
        None => u32::from(sum.abs() >= extreme),
        Some((next, rest)) => {
            count_extreme(sum + next, rest, extreme) + count_extreme(sum - next, rest, extreme)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Randomisation, sign_test};
    use crate::golden;

    #[test]
    fn the_sign_test_agrees_with_scipy() {
        for case in golden::cases("sign") {
            let [wins, losses] = ["wins", "losses"].map(|key| case[key].as_u64().unwrap() as u32);
            let (found, expected) = (sign_test(wins, losses), golden::number(&case["p"]));
            // Walking ten thousand ratios out to 1e-271 costs some digits.
            assert!(
                (found - expected).abs() <= 1e-10 * expected,
                "{wins}:{losses} {found:e}, not {expected:e}"
            );
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
    fn sampling_comes_near_what_counting_out_finds() {
        let differences: Vec<f64> =
            (1..=20).map(|item| (f64::from(item) * 0.7).sin() + 0.3).collect();
        let test = Randomisation::default();
        let extreme = differences.iter().sum::<f64>().abs() - 1e-9;
        let exact = test.p_value(&differences).unwrap();
        golden::check_within(test.sampled(&differences, extreme), exact, 0.006);
    }

    #[test]
    fn a_clear_winner_is_never_impossible() {
        let test = Randomisation { rounds: 999, seed: 1 };
        assert_eq!(test.p_value(&[1.0; 200]), Some(0.001));
        assert_eq!(test.p_value(&[f64::MAX; 3]), Some(0.25));
        assert_eq!(test.p_value(&[0.0; 5]), Some(1.0));
        assert_eq!(test.p_value(&[f64::INFINITY]), None);
    }

    proptest! {
        #[test]
        fn chances_are_chances_and_know_no_order(
            differences in prop::collection::vec(-3.0..3.0, 0..14),
            wins in any::<u16>(),
            losses in any::<u16>(),
        ) {
            let p = sign_test(wins.into(), losses.into());
            prop_assert_eq!(p, sign_test(losses.into(), wins.into()));
            prop_assert!((0.0..=1.0).contains(&p));

            let test = Randomisation::default();
            let p = test.p_value(&differences).unwrap();
            let turned = differences.iter().rev().map(|difference: &f64| -2.0 * difference);
            let turned: Vec<f64> = turned.collect();
            prop_assert_eq!(test.p_value(&turned), Some(p));
            prop_assert!(p > 0.0 && p <= 1.0);
        }
    }
}
