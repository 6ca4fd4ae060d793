//! What texts must share to be compared at all: one of their rare words, two of their less rare
//! ones, or a bucket of vectors. How alike they are is not known here.

use std::sync::atomic::{AtomicU32, Ordering};

use cognate::model::Phrase;
use cognate_kernels::random::SplitMix64;

/// Counters of words. Words that share one count together and seem less rare than they are; the
/// number is fixed, so that what is found depends on the texts alone.
const COUNTERS: usize = 1 << 23;
/// Most texts that share a word by which texts are compared.
const RARE: u32 = 96;
/// Rare words of a text by which it is compared.
const RARE_WORDS: usize = 3;
/// Of the words that are not rare, the rarest so many are taken two at a time.
const PAIRED_WORDS: usize = 3;
/// The bit that tells buckets from words.
const BUCKET: u64 = 1 << 63;

/// In how many texts words occur.
pub struct WordCounts {
    counters: Vec<AtomicU32>,
}

impl Default for WordCounts {
    fn default() -> Self {
        let mut counters = Vec::new();
        counters.resize_with(COUNTERS, AtomicU32::default);
        Self { counters }
    }
}

impl WordCounts {
    /// The counters that counted anything, each with its number.
    pub fn counted(&self) -> impl Iterator<Item = (u32, u32)> {
        let counts = self.counters.iter().map(|counter| counter.load(Ordering::Relaxed));
        (0..).zip(counts).filter(|&(_, count)| count > 0)
    }

    /// Adds what a counter of this number counted elsewhere.
    pub fn add(&self, counter: u32, count: u32) {
        if let Some(counter) = self.counters.get(counter as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Counts the different words of one text.
    pub(super) fn see(&self, words: &[u64]) {
        for &word in words {
            // A count is only ever asked whether it is small.
            self.counter(word).fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counter(&self, word: u64) -> &AtomicU32 {
        // There are as many counters as the mask lets through.
        &self.counters[mixed(word) as usize & (COUNTERS - 1)]
    }

    fn of(&self, word: u64) -> u32 {
        self.counter(word).load(Ordering::Relaxed)
    }

    /// Adds the keys of a text that has these different words.
    pub(super) fn keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        let mut counted: Vec<(u32, u64)> =
            words.iter().map(|&word| (self.of(word), word)).collect();
        // Nobody shares a word that occurs once.
        counted.retain(|&(count, _)| count > 1);
        counted.sort_unstable();
        let rare = counted.partition_point(|&(count, _)| count <= RARE);
        let (rare, others) = counted.split_at(rare);
        keys.extend(rare.iter().take(RARE_WORDS).map(|&(_, word)| mixed(word) & !BUCKET));
        if rare.len() < RARE_WORDS {
            let paired = others.get(..PAIRED_WORDS).unwrap_or(others);
            for (at, &(_, one)) in paired.iter().enumerate() {
                for &(_, other) in paired.iter().skip(at + 1) {
                    let (low, high) = (one.min(other), one.max(other));
                    keys.push(mixed(mixed(low) ^ high.rotate_left(32)) & !BUCKET);
                }
            }
        }
    }
}

/// The key of a bucket.
pub(super) fn of_bucket(bucket: u64) -> u64 {
    bucket | BUCKET
}

/// The different words of a text, in an order that is theirs.
pub(super) fn different_words(phrase: &Phrase<'_>) -> Vec<u64> {
    let mut words = phrase.token_keys().to_vec();
    words.sort_unstable();
    words.dedup();
    words
}

/// A number that looks drawn at random, always the same for the same number.
pub(super) fn mixed(number: u64) -> u64 {
    SplitMix64::seeded(number).word()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_by_its_rarest_words() {
        let counts = WordCounts::default();
        // Word n stands in n texts, 100 and above in too many to be rare.
        let all = [1, 2, 3, 4, 100, 101, 102, 103];
        for text in 0..103 {
            let words: Vec<u64> = all.into_iter().filter(|&word| word > text).collect();
            counts.see(&words);
        }
        let keys = |words: &[u64]| {
            let mut keys = Vec::new();
            counts.keys(words, &mut keys);
            assert!(keys.iter().all(|&key| key & BUCKET == 0));
            keys
        };
        assert_eq!(keys(&[1, 2, 3, 4, 100]), [2, 3, 4].map(|word| mixed(word) & !BUCKET));
        let few = keys(&[1, 3, 100, 101]);
        assert_eq!(few.len(), 2, "a rare word, and the two others together");
        assert_eq!(few[1], keys(&[100, 101])[0]);
        assert_eq!(keys(&[100, 101, 102, 103]).len(), 3, "two at a time of the rarest three");
        assert!(keys(&[1]).is_empty());
    }
}
