//! The steps of a search before texts are compared, each over texts that are at hand: digests of
//! tokens, words counted and a sample drawn, keys. [`run`](crate::dedupe) does them over files on one
//! machine; what spreads texts over many machines does the same steps there.

use cognate::engine::QueryError;
use xxhash_rust::xxh3::xxh3_128;

use crate::dedupe::buckets::{Buckets, Room};
use crate::dedupe::judge::Judge;
use crate::dedupe::keys::{WordCounts, mixed};
use crate::dedupe::{buckets, keys};

/// Whether the text of this number is in the sample of so many different texts.
pub fn drawn(id: u32, distinct: u64) -> bool {
    let share = (buckets::SAMPLE as f64 / distinct.max(1) as f64).min(1.0);
    (mixed(id.into()) >> 11) as f64 <= share * (1_u64 << 53) as f64
}

impl Judge<'_> {
    /// For each text a digest that those of the same tokens share; nothing for one without tokens.
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

    /// Counts the words of different texts.
    pub fn count<T: AsRef<str>>(&self, texts: &[T], counts: &WordCounts) {
        let mut phrase = self.phrase();
        for text in texts {
            self.read(&mut phrase, text.as_ref());
            counts.see(&keys::different_words(&phrase));
        }
    }

    /// The keys that each text is compared by, in rising order; none for a text without a vector, of
    /// which no pair would be near enough.
    pub fn keys<T: AsRef<str>>(
        &self,
        texts: &[T],
        counts: &WordCounts,
        buckets: &Buckets,
    ) -> Result<Vec<Vec<u64>>, QueryError> {
        let (mut phrase, mut room) = (self.phrase(), Room::default());
        let rows = self.vectors_of(texts)?;
        let of_text = |(text, row): (&T, &[f32])| {
            let mut own = Vec::new();
            if row.iter().any(|&x| x != 0.0) {
                self.read(&mut phrase, text.as_ref());
                counts.keys(&keys::different_words(&phrase), &mut own);
                own.extend(buckets.nearest(row, &mut room).map(keys::of_bucket));
                own.sort_unstable();
                own.dedup();
            }
            own
        };
        Ok(texts.iter().zip(rows.chunks_exact(self.dims)).map(of_text).collect())
    }
}
