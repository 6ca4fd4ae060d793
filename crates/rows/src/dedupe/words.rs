//! The different words of a text as bits, by which pairs are passed over that cannot share enough of
//! them (Sandes et al. 2017, "bitmap filter").

use cognate::model::Phrase;
use cognate_kernels::random::SplitMix64;

/// Number of `u64`s in a [`WordBits`]: two of bits, one of the number of words.
pub(super) const BITS_LENGTH: usize = 3;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WordBits([u64; BITS_LENGTH]);

impl WordBits {
    pub(super) fn new(words: &[u64]) -> Self {
        let bit = |&word: &u64| 1_u128 << (mixed(word) >> 57);
        let bits = words.iter().map(bit).fold(0, std::ops::BitOr::bitor);
        Self([bits as u64, (bits >> 64) as u64, words.len() as u64])
    }

    pub(super) fn numbers(&self) -> [u64; BITS_LENGTH] {
        self.0
    }

    pub(super) fn from_numbers(numbers: [u64; BITS_LENGTH]) -> Self {
        Self(numbers)
    }

    /// The share of the words of both texts that both may have in common, if that is `least` or more: no less
    /// than they have. Each bit that one text sets alone is that of a word which the other lacks.
    #[inline]
    pub(super) fn may_share(&self, other: &Self, least: f32) -> Option<f32> {
        let ([low, high, count], [other_low, other_high, other_count]) = (&self.0, &other.0);
        let (fewer, more) = (*count.min(other_count), *count.max(other_count));
        // Most pairs are passed over here.
        if (fewer as f32) < least * more as f32 * 0.999_99 {
            return None;
        }
        let both = fewer + more;
        let apart = (low ^ other_low).count_ones() + (high ^ other_high).count_ones();
        let shared = (both.saturating_sub(apart.into()) / 2).min(fewer);
        // As the method divides, so that no rounding makes it less.
        let share = (shared as f64 / (both - shared).max(1) as f64) as f32;
        (share >= least).then_some(share)
    }
}

/// The distinct words of a text, in a fixed order.
pub(super) fn different_words(phrase: &Phrase<'_>) -> Vec<u64> {
    let mut words: Vec<u64> = phrase.token_keys().collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// A pseudo-random number that depends only on `number`.
pub(super) fn mixed(number: u64) -> u64 {
    SplitMix64::seeded(number).word()
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
