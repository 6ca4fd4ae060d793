//! What a text has already learnt of the words of other texts while it is compared with many: a
//! word that many of them share is multiplied with it once, not once for every text.
//!
//! Only listed words are kept, by their ids, which stand for one vector whatever the text.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use cognate_kernels::vector;

use crate::methods::Unavailable;
use crate::model::phrase::Word;
use crate::model::{Model, Phrase, WordId};

/// Most numbers stored, 4 MiB of them; then the table starts anew.
const MAX_NUMBERS: usize = 1 << 20;
/// A text of more words is not worth remembering words for: their products fill the memory faster
/// than they come back.
pub(crate) const MAX_WORDS: usize = 64;

#[derive(Default)]
pub(crate) struct WordsMet {
    /// Words of the text that met them.
    words: usize,
    places: HashMap<WordId, u32, BuildHasherDefault<Spread>>,
    /// For each stored word, its product with every word of the text.
    products: Vec<f32>,
    /// For each stored word, its membership in the text.
    memberships: Vec<f32>,
}

impl WordsMet {
    pub(crate) fn by(words: usize) -> Self {
        Self { words, ..Self::default() }
    }

    /// Makes room if too much is known.
    pub(crate) fn tidy(&mut self) {
        if self.products.len() > MAX_NUMBERS {
            self.places.clear();
            self.products.clear();
            self.memberships.clear();
        }
    }

    /// Returns the place of a word, and whether the word is new; the next [`WordsMet::learn`] must then
    /// learn it.
    pub(crate) fn place(&mut self, id: WordId) -> (u32, bool) {
        let next = self.places.len() as u32;
        let place = *self.places.entry(id).or_insert(next);
        (place, place == next)
    }

    /// Takes the products of new words with the text's words: for each a row that begins with them,
    /// `stride` numbers after the row before.
    pub(crate) fn learn(&mut self, products: &[f32], stride: usize) {
        let rows = products.chunks_exact(stride.max(1));
        for row in rows.filter_map(|row| row.get(..self.words)) {
            self.products.extend_from_slice(row);
            self.memberships.push(vector::most(row));
        }
    }

    /// Memberships between the text and another, whose words have these places: those of the text's
    /// words in the other, and those of the other's words in the text.
    pub(crate) fn memberships(&self, places: &[u32], [of_one, of_other]: [&mut Vec<f32>; 2]) {
        let words = self.words;
        of_one.clear();
        of_one.resize(words, 0.0);
        of_other.clear();
        for &place in places {
            let start = (place as usize).saturating_mul(words);
            let products = self.products.get(start..start.saturating_add(words));
            vector::raise(of_one, products.unwrap_or_default());
            of_other.push(self.memberships.get(place as usize).copied().unwrap_or_default());
        }
    }
}

/// Spreads ids over a table by one multiplication. The multiplier is fixed and clients choose the
/// words, so they can choose ids that fall together, but only among those of the vocabulary. A table
/// with room for `n` ids has as many places, of which each is that of about `V / n` ids of a
/// vocabulary of `V`: no more than about `√V` can be made to collide, 600 of 341,000. To pass over
/// these, 16 at a time, takes about as long as to look the word up. What clients make themselves must
/// not be spread by this.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The table reads the low bits as a slot and the high bits as a tag.
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// For methods that weight words by their share of the corpus.
pub(crate) fn need_counts(model: &Model) -> Result<(), Unavailable> {
    let vocabulary = model.vocabulary();
    let counted = vocabulary.counts.is_some() && vocabulary.corpus.tokens.is_some();
    if counted { Ok(()) } else { Err(missing("the model has no word counts")) }
}

/// Checks that the model has the idf of listed and of unlisted words.
pub(crate) fn need_idf(model: &Model) -> Result<(), Unavailable> {
    let vocabulary = model.vocabulary();
    let known = vocabulary.idf.is_some() && vocabulary.corpus.idf_unknown.is_some();
    if known { Ok(()) } else { Err(missing("the model has no idf")) }
}

fn missing(what: &str) -> Unavailable {
    let remedy = "pack the model again with --counts or --corpus".to_owned();
    Unavailable { missing: what.to_owned(), remedy }
}

/// The idf of a word of a model that passed [`need_idf`].
pub(crate) fn idf(phrase: &Phrase<'_>, word: Word) -> f32 {
    phrase.idf(word).unwrap_or(0.0)
}

/// The positions of a text's words, the highest idf first. Words of equal idf are ordered by their
/// keys, so that word order cannot change a score.
pub(crate) fn places_by_idf(phrase: &Phrase<'_>) -> Vec<usize> {
    let words = phrase.words();
    let mut places = phrase.bag_order();
    let order = |a: &usize, b: &usize| match (words.get(*a), words.get(*b)) {
        (Some(&a), Some(&b)) => idf(phrase, b).total_cmp(&idf(phrase, a)),
        _ => Ordering::Equal,
    };
    // The bag is in the order of keys already, and the sort is stable.
    places.sort_by(order);
    places
}

/// The different words in the order of their keys, which is the same for every order of the text.
pub(crate) fn distinct(phrase: &Phrase<'_>) -> impl Iterator<Item = (Word, usize)> {
    let mut bag = phrase.bag().iter().copied().peekable();
    std::iter::from_fn(move || {
        let word = bag.next()?;
        let mut times = 1;
        while bag.next_if(|&next| phrase.key(next) == phrase.key(word)).is_some() {
            times += 1;
        }
        Some((word, times))
    })
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn no_more_ids_collide_than_the_root_of_the_vocabulary() {
        let words: u32 = 1 << 20;
        for bits in 4..=16 {
            let places = 1_usize << bits;
            let mut ids = vec![0_usize; places];
            for id in 0..words {
                let hash = BuildHasherDefault::<Spread>::default().hash_one(id);
                ids[hash as usize % places] += 1;
            }
            let most = ids.into_iter().max().unwrap();
            // A table with this many slots does not hold more.
            assert!(most.min(places) <= 1280, "{most} ids in one of {places} places");
        }
    }
}
