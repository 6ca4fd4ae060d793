//! The different words of a text as bits, by which pairs are passed over that cannot share enough of
//! them (Sandes et al. 2017, "bitmap filter"). Which words they are is not known here.

use crate::dedupe::steps::mixed;

/// Numbers that the bits and the count are written as.
pub(super) const NUMBERS: usize = 2;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WordBits([u64; NUMBERS]);

impl WordBits {
    pub(super) fn new(words: &[u64]) -> Self {
        let bits = words.iter().fold(0, |bits, &word| bits | 1 << (mixed(word) >> 58));
        Self([bits, words.len() as u64])
    }

    pub(super) fn numbers(&self) -> [u64; NUMBERS] {
        self.0
    }

    pub(super) fn from_numbers(numbers: [u64; NUMBERS]) -> Self {
        Self(numbers)
    }

    /// The share of the words of both texts that both may have in common, if that is `least` or more: no less
    /// than they have. Each bit that one text sets alone is that of a word which the other lacks.
    #[inline]
    pub(super) fn may_share(&self, other: &Self, least: f32) -> Option<f32> {
        let ([bits, count], [other_bits, other_count]) = (&self.0, &other.0);
        let (fewer, more) = (*count.min(other_count), *count.max(other_count));
        // Most pairs are passed over here.
        if (fewer as f32) < least * more as f32 * 0.999_99 {
            return None;
        }
        let both = fewer + more;
        let apart = u64::from((bits ^ other_bits).count_ones());
        let shared = (both.saturating_sub(apart) / 2).min(fewer);
        // As the method divides, so that no rounding makes it less.
        let share = (shared as f64 / (both - shared).max(1) as f64) as f32;
        (share >= least).then_some(share)
    }
}

/// The share of the words of both texts that are the same (Dice), of that of all their words (Jaccard).
pub(super) fn dice(jaccard: f32) -> f32 {
    let jaccard = f64::from(jaccard);
    (2.0 * jaccard / (1.0 + jaccard)) as f32
}

/// The Jaccard share from which Dice's may reach a number: a little less, because of rounding.
pub(super) fn least_jaccard(dice: f32) -> f32 {
    dice / (2.0 - dice) * 0.999_99
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;

    use super::*;

    #[test]
    fn no_pair_shares_more_than_its_bits_allow() {
        let mut random = Random::seeded(5);
        let mut passed = 0;
        for _ in 0..2000 {
            let mut words = |most: usize| {
                let count = random.below(most);
                let mut words: Vec<u64> = (0..count).map(|_| random.below(60) as u64).collect();
                words.sort_unstable();
                words.dedup();
                words
            };
            let [one, other] = [words(20), words(12)];
            let shared = one.iter().filter(|word| other.contains(word)).count();
            let share = shared as f32 / (one.len() + other.len() - shared).max(1) as f32;
            let [one, other] = [one, other].map(|words| WordBits::new(&words));
            let most = one.may_share(&other, share);
            assert!(most.is_some_and(|most| most <= 1.0), "{most:?} {share}");
            passed += usize::from(one.may_share(&other, 0.6).is_some());
        }
        assert!(passed < 200, "{passed} of 2000 may share so much");
    }
}
