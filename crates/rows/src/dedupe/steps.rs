//! The steps of a search before texts are compared, each for texts in memory: digests of tokens,
//! word counts, the sample, and keys. The keys of a text are three of its rare words, pairs of less
//! rare words, and its buckets of vectors; where words alone are compared, as many of its rarest words as two
//! texts that match cannot both be without (the prefix filter of Chaudhuri et al. 2006). [`run`](crate::dedupe::run) does these steps over files
//! on one machine; programs on several machines do the same steps.

use std::sync::atomic::{AtomicU32, Ordering};

use cognate::engine::QueryError;
use xxhash_rust::xxh3::xxh3_128;

use crate::dedupe::buckets;
use crate::dedupe::buckets::Buckets;
use crate::dedupe::judge::{Judge, Mark};
use crate::dedupe::words::{different_words, mixed};

/// Whether the text with this number is in the sample of `distinct` texts.
pub fn drawn(id: u32, distinct: u64) -> bool {
    let share = (buckets::SAMPLE as f64 / distinct.max(1) as f64).min(1.0);
    (mixed(id.into()) >> 11) as f64 <= share * (1_u64 << 53) as f64
}

impl Judge<'_> {
    /// For each text a digest of its tokens; `None` for a text without tokens.
    pub fn digests<T: AsRef<str>>(&self, texts: &[T]) -> Vec<Option<u128>> {
        let (mut phrase, mut joined) = (self.phrase(), Vec::new());
        let digest = |text: &T| {
            self.read(&mut phrase, text.as_ref());
            joined.clear();
            for token in phrase.tokens().texts() {
                joined.extend_from_slice(token.as_bytes());
                joined.push(0);
            }
            (!joined.is_empty()).then(|| xxh3_128(&joined))
        };
        texts.iter().map(digest).collect()
    }

    pub fn count<T: AsRef<str>>(&self, texts: &[T], counts: &WordCounts) {
        let mut phrase = self.phrase();
        for text in texts {
            self.read(&mut phrase, text.as_ref());
            counts.see(&different_words(&phrase));
        }
    }

    /// The keys of each text, in rising order; none for a text that matches nothing.
    pub fn keys<T: AsRef<str>>(
        &self,
        texts: &[T],
        counts: &WordCounts,
        buckets: &Buckets,
    ) -> Result<Vec<Vec<u64>>, QueryError> {
        Ok(self.keyed(texts, counts, buckets)?.into_iter().map(|(keys, _)| keys).collect())
    }

    /// As [`Self::keys`], with what is compared of each text.
    pub(super) fn keyed<T: AsRef<str>>(
        &self,
        texts: &[T],
        counts: &WordCounts,
        buckets: &Buckets,
    ) -> Result<Vec<(Vec<u64>, Mark)>, QueryError> {
        let (marks, words) = self.marks_of(texts)?;
        let vectors: Vec<_> = marks.iter().map(|mark| &mark.vector).collect();
        let nearest = buckets.nearest(&vectors);
        let of_text = |((words, nearest), mark): ((Vec<u64>, _), &Mark)| {
            let (mut own, has_vector) = (Vec::new(), !mark.vector.is_zero());
            if !self.has_vectors() {
                counts.prefix(&words, self.threshold, &mut own);
            } else if has_vector || self.finds_copies() {
                counts.keys(&words, &mut own);
            }
            own.extend(Iterator::map(nearest, of_bucket).filter(|_| has_vector));
            own.sort_unstable();
            own.dedup();
            own
        };
        let keys: Vec<_> = words.into_iter().zip(nearest).zip(&marks).map(of_text).collect();
        Ok(keys.into_iter().zip(marks).collect())
    }

    /// Maximum keys of a text.
    pub(super) fn most_keys(&self) -> usize {
        if self.has_vectors() { MAX_KEYS } else { PREFIX }
    }
}

/// Number of word counters. Words that share a counter are counted together and seem less rare; the
/// number is fixed, so that results depend only on the texts.
const COUNTERS: usize = 1 << 23;
/// Maximum texts with a word for it to be a key.
const RARE: u32 = 96;
/// Maximum rare words of a text that are keys.
const RARE_WORDS: usize = 3;
/// Number of the rarest other words of a text that are combined in pairs.
const PAIRED_WORDS: usize = 3;
/// Maximum keys of a text: those of words are most where all but one of its rare words are missing.
const MAX_KEYS: usize = RARE_WORDS - 1 + PAIRED_WORDS * (PAIRED_WORDS - 1) / 2 + buckets::NEAR;
/// Maximum words of a text that are keys where words alone are compared: a text of more than 77 different
/// words may have a match at .6 without one of them.
const PREFIX: usize = 32;
/// Marks the keys of buckets, as opposed to those of words.
const BUCKET: u64 = 1 << 63;

/// In how many texts each word occurs.
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
    /// The counters that are not zero, with their indices.
    pub fn counted(&self) -> impl Iterator<Item = (u32, u32)> {
        let counts = self.counters.iter().map(|counter| counter.load(Ordering::Relaxed));
        (0..).zip(counts).filter(|&(_, count)| count > 0)
    }

    /// Adds a count from another machine to a counter.
    pub fn add(&self, counter: u32, count: u32) {
        if let Some(counter) = self.counters.get(counter as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(super) fn see(&self, words: &[u64]) {
        for &word in words {
            // Counting ends before counters are read, so no ordering is needed.
            self.counter(word).fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counter(&self, word: u64) -> &AtomicU32 {
        // The mask keeps the index below the number of counters.
        &self.counters[mixed(word) as usize & (COUNTERS - 1)]
    }

    fn of(&self, word: u64) -> u32 {
        self.counter(word).load(Ordering::Relaxed)
    }

    /// Words with their counts, the rarest first.
    fn ordered(&self, words: &[u64]) -> Vec<(u32, u64)> {
        let mut counted: Vec<(u32, u64)> =
            words.iter().map(|&word| (self.of(word), word)).collect();
        counted.sort_unstable();
        counted
    }

    /// Appends the keys of a text with these distinct words: two texts that have at least the share `least`
    /// of their words in common share a key.
    fn prefix(&self, words: &[u64], least: f32, keys: &mut Vec<u64>) {
        let least = (f64::from(least) * words.len() as f64 - 1e-6).ceil() as usize;
        let counted = self.ordered(words);
        let prefix = counted.iter().take((words.len() + 1).saturating_sub(least.max(1)));
        // A word that occurs in one text connects it with no other.
        let shared = prefix.filter(|&&(count, _)| count > 1).take(PREFIX);
        keys.extend(shared.map(|&(_, word)| mixed(word) & !BUCKET));
    }

    /// Appends the keys of a text with these distinct words.
    pub(super) fn keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        let mut counted = self.ordered(words);
        counted.retain(|&(count, _)| count > 1);
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

pub(super) fn of_bucket(bucket: u64) -> u64 {
    bucket | BUCKET
}

pub(super) fn is_of_bucket(key: u64) -> bool {
    key & BUCKET != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_by_its_rarest_words() {
        let counts = WordCounts::default();
        // Word n is in n texts; words from 100 on are in too many to be rare.
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
