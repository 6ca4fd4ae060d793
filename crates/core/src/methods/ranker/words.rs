//! What words become under a network's kernels: numbers that depend on the word alone are worth
//! keeping, those that depend on the query too are worth it while that query is asked.
//!
//! Every number is one product in the canonical order, so it is the same wherever it comes from.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

use crate::methods::common::words_met::Spread;
use crate::model::{Phrase, WordId};

/// Bytes of numbers that a network keeps for as long as it is served: 16,000 words for kernels of
/// the paper's size, 33,000 where there is no second set of kernels. They are filled as words are
/// met.
const KEPT_BYTES: usize = 64 << 20;

/// Numbers that one query remembers of words at most, 16 MiB of them; after that it starts anew.
const MET_NUMBERS: usize = 1 << 22;

/// The numbers of the first words of the vocabulary, which are the most frequent.
pub(super) struct Kept {
    words: Vec<OnceLock<Box<[f32]>>>,
}

impl Kept {
    /// A table for the frequent words, with `numbers` numbers each.
    pub(super) fn new(words: usize, numbers: usize) -> Self {
        let most = KEPT_BYTES / (numbers * size_of::<f32>()).max(1);
        Self::of_first(words.min(most))
    }

    pub(super) fn of_first(words: usize) -> Self {
        Self { words: (0..words).map(|_| OnceLock::new()).collect() }
    }

    pub(super) fn get(&self, id: WordId) -> Option<&[f32]> {
        self.words.get(id as usize)?.get().map(AsRef::as_ref)
    }

    /// Stores the numbers of a word; returns `false` if there is no room for the word. If another thread
    /// stored the word first, its numbers are the same.
    pub(super) fn put(&self, id: WordId, numbers: &[f32]) -> bool {
        let Some(word) = self.words.get(id as usize) else { return false };
        word.get_or_init(|| numbers.into());
        true
    }
}

#[derive(Default)]
pub(super) struct Met {
    places: HashMap<WordId, u32, BuildHasherDefault<Spread>>,
    numbers: Vec<f32>,
    each: usize,
}

impl Met {
    /// Forgets everything, and takes words of `each` numbers from now on.
    pub(super) fn begin(&mut self, each: usize) {
        self.places.clear();
        self.numbers.clear();
        self.each = each;
    }

    /// Makes room if too much is known.
    pub(super) fn tidy(&mut self) {
        if self.numbers.len() > MET_NUMBERS {
            self.begin(self.each);
        }
    }

    pub(super) fn get(&self, id: WordId) -> Option<&[f32]> {
        let start = (*self.places.get(&id)? as usize).checked_mul(self.each)?;
        self.numbers.get(start..start + self.each)
    }

    /// Takes the numbers of a word that is not known yet.
    pub(super) fn put(&mut self, id: WordId, numbers: &[f32]) {
        self.places.insert(id, self.places.len() as u32);
        self.numbers.extend_from_slice(numbers);
    }
}

const KEPT_NUMBERS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct RankerBuffers {
    pub(super) query: Query,
    /// Words that the network does not keep.
    pub(super) met: Met,
    /// Words times each word of the query, under the kernels of `qatt`.
    pub(super) crossed: Met,
    pub(super) work: Work,
}

#[derive(Default)]
pub(super) struct Query {
    pub(super) ids: Vec<WordId>,
    /// Vectors of its words, and their lengths.
    pub(super) rows: Vec<f32>,
    pub(super) norms: Vec<f32>,
    /// The joint layer's input, with that layer's offset.
    pub(super) joint: Vec<f32>,
}

/// Numbers on the way from one layer to the next.
#[derive(Default)]
pub(crate) struct Work {
    pub(super) ids: Vec<WordId>,
    pub(super) rows: Vec<f32>,
    pub(super) scaled: Vec<f32>,
    pub(super) products: Vec<f32>,
    pub(super) cosines: Vec<f32>,
    pub(super) norms: Vec<f32>,
    pub(super) ones: Vec<f32>,
    pub(super) pooled: Vec<f32>,
    pub(super) attended: Vec<f32>,
    pub(super) encoded: Vec<f32>,
    pub(super) joint: Vec<f32>,
}

impl Work {
    /// Frees memory that only a long question needed.
    pub(super) fn trim(&mut self) {
        let lists = [&self.rows, &self.scaled, &self.products, &self.pooled, &self.attended];
        if lists.iter().map(|list| list.capacity()).sum::<usize>() > KEPT_NUMBERS {
            *self = Self::default();
        }
    }

    /// Reads the vectors of a text's words into `rows`.
    pub(super) fn read(&mut self, text: &Phrase<'_>, dims: usize) {
        self.ids.clear();
        self.ids.extend(known(text));
        read_rows(text, &self.ids, dims, &mut self.rows);
    }

    /// Collects the ids of the texts' words that are missing, each once.
    pub(super) fn gather(&mut self, texts: &[Phrase<'_>], wanted: impl Fn(WordId) -> bool) {
        self.ids.clear();
        self.ids.extend(texts.iter().flat_map(known).filter(|id| wanted(*id)));
        self.ids.sort_unstable();
        self.ids.dedup();
    }
}

/// The words of a text that were trained: those whose vectors were made for it are left out.
pub(super) fn known(phrase: &Phrase<'_>) -> impl Iterator<Item = WordId> {
    phrase.words().iter().filter_map(|&word| phrase.id(word))
}

/// Replaces `out` by the vectors of words, in their order.
pub(super) fn read_rows(phrase: &Phrase<'_>, ids: &[WordId], dims: usize, out: &mut Vec<f32>) {
    let vectors = phrase.model().vectors();
    out.clear();
    out.resize(ids.len() * dims, 0.0);
    for (&id, out) in ids.iter().zip(out.chunks_exact_mut(dims)) {
        if let Some(row) = vectors.row(id) {
            row.copy_to(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_words_are_the_first_and_stay_within_the_budget() {
        assert_eq!(Kept::new(3, 8).words.len(), 3);
        let kept = Kept::new(usize::MAX, 1024);
        assert_eq!(kept.words.len() * 1024 * size_of::<f32>(), KEPT_BYTES);
        assert!(kept.get(5).is_none() && kept.put(5, &[1.0, 2.0]) && kept.put(5, &[3.0]));
        assert_eq!(kept.get(5), Some(&[1.0, 2.0][..]), "the first to come stays");
        assert!(!kept.put(u32::MAX, &[1.0]) && kept.get(u32::MAX).is_none());
    }

    #[test]
    fn a_query_forgets_when_it_knows_too_much() {
        let mut met = Met::default();
        met.begin(1 << 20);
        let numbers = vec![0.5; 1 << 20];
        for id in [9, 4, 7, 2, 8] {
            met.tidy();
            assert!(met.get(id).is_none());
            met.put(id, &numbers);
            assert_eq!(met.get(id), Some(&numbers[..]));
        }
        assert!(met.get(9).is_some());
        met.tidy();
        assert!(met.get(9).is_none() && met.numbers.is_empty());
    }
}
