//! A text looked up in a model: its words with their rows, and the tokens that were not found.
//!
//! This is the only place where tokens meet the vocabulary, so packing, training, evaluation and
//! serving cannot disagree about what a text consists of. What words weigh and how texts compare
//! is the methods' part.

mod unlisted;

use cognate_kernels::simd::bytes;
use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};

use crate::model::unlisted::UnlistedWords;
use crate::model::{
    LONGEST, Model, Vectors, Verify, Vocabulary, WordId, subword, unknown, vocabulary,
};
use crate::text;
use crate::text::Tokens;

/// Tokens longer than this are not looked up by their parts: nobody means them as words.
pub const TOKEN_BYTES: usize = subword::LONGEST_WORD_BYTES;

/// Up to so many listed words are put in order by counting, for each, those that come before it:
/// more comparisons than a sort makes, but many at once and none whose outcome has to be guessed.
const COUNTED_WORDS: usize = 32;
/// Ids below this leave room for a place beside them in 31 bits, and for unlisted words behind them.
const COUNTED_IDS: u64 = (1 << 31) / COUNTED_WORDS as u64 - 1;
/// Keys of words that are not listed have this bit.
const UNLISTED: u64 = 1 << 63;

/// How a word of a phrase was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// It is listed.
    Listed,
    /// It is listed with its drawn-out letters shortened.
    Shortened,
    /// Its stem is listed.
    Stem,
    /// It is a listed part of the token.
    Part,
    /// Its vector was made from its n-grams.
    NGrams,
    /// Its vector was made from those of its pieces.
    Pieces,
    /// Its vector was made from its hash.
    Hash,
}

/// One word of a phrase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Word {
    /// Which token it comes from.
    pub token: u32,
    /// Its id, unless its vector was made for this text.
    pub id: Option<WordId>,
    /// How it was found.
    pub found: Found,
    /// What tells words apart whatever the text: the id, or the hash of an unlisted word with the
    /// highest bit set. Sorting by it gives the same order for the same bag of words.
    pub key: u64,
    made: u32,
}

/// What a phrase is made of, apart from the model it was looked up in: memory that one phrase can
/// hand to the next.
#[derive(Debug, Default)]
pub struct PhraseMemory {
    tokens: Tokens,
    words: Vec<Word>,
    bag: Vec<u32>,
    token_keys: Vec<u64>,
    unknown: Vec<u32>,
    /// Rows made for this text, one after another.
    made: Vec<f32>,
    /// The same as bytes with their scales, where the model's rows are bytes.
    made_bytes: Vec<i8>,
    made_scales: Vec<f32>,
    buffer: String,
    pieces: Vec<u32>,
    /// Of the tokens that are looked up, their hashes and the words that they are.
    hashes: Vec<u64>,
    found: Vec<Option<WordId>>,
}

/// A text looked up. Reading another text into it reuses its memory.
#[derive(Debug)]
pub struct Phrase<'m> {
    model: &'m Model,
    vocabulary: Vocabulary<'m>,
    vectors: Vectors<'m>,
    memory: PhraseMemory,
}

impl<'m> Phrase<'m> {
    /// An empty phrase.
    pub fn new(model: &'m Model) -> Self {
        Self::with(model, PhraseMemory::default())
    }

    /// A phrase in memory that another one left; it holds nothing that makes sense before a text
    /// is read into it.
    pub fn with(model: &'m Model, memory: PhraseMemory) -> Self {
        Self { model, vocabulary: model.vocabulary(), vectors: model.vectors(), memory }
    }

    /// The memory, for another phrase.
    pub fn into_memory(self) -> PhraseMemory {
        self.memory
    }

    /// Replaces the phrase by another text.
    pub fn read(&mut self, text: &str) {
        self.read_up_to(text, usize::MAX);
    }

    /// Replaces the phrase by the first `most` tokens of another text, and gives back how many
    /// tokens there were.
    pub fn read_up_to(&mut self, text: &str, most: usize) -> usize {
        self.memory.words.clear();
        self.memory.token_keys.clear();
        self.memory.unknown.clear();
        self.memory.made.clear();
        text::tokenise(self.model.normalisation(), text, &mut self.memory.tokens);
        // The tokens are read while words are written, so they leave the memory for that time.
        let tokens = std::mem::take(&mut self.memory.tokens);
        self.look_up(&tokens, most);
        self.memory.tokens = tokens;
        if self.vectors.are_bytes() {
            self.quantise_made();
        }
        self.sort_bag();
        self.memory.tokens.len()
    }

    /// Brings the rows that were made to the type of those that are listed, so that every product is
    /// one of bytes.
    fn quantise_made(&mut self) {
        let PhraseMemory { made, made_bytes, made_scales, .. } = &mut self.memory;
        made_scales.clear();
        made_bytes.resize(made.len(), 0);
        let dims = self.vectors.dims();
        for (row, of_row) in made.chunks_exact(dims).zip(made_bytes.chunks_exact_mut(dims)) {
            made_scales.push(bytes::quantise(row, of_row));
        }
    }

    /// Finds the words of the first `most` tokens. Each step is taken for all tokens before the next:
    /// the memory that a later step of one token reads comes near while the others are looked at.
    fn look_up(&mut self, tokens: &Tokens, most: usize) {
        let (vocabulary, vectors) = (self.vocabulary, self.vectors);
        let (text, places) = tokens.places();
        let places = places.take(most);
        let memory = &mut self.memory;
        memory.hashes.clear();
        memory.hashes.extend(places.clone().map(|[start, end]| {
            let hash = vocabulary::hash(text.get(start..end).unwrap_or_default());
            vocabulary.prefetch_slot(hash);
            hash
        }));
        memory.found.clear();
        memory.found.extend(memory.hashes.iter().map(|&hash| {
            let candidate = vocabulary.candidates(hash).next();
            if let Some(id) = candidate {
                vocabulary.prefetch_ends(id);
                // The row will be read when all words are known.
                vectors.prefetch(id);
            }
            candidate
        }));
        memory.found.iter().flatten().for_each(|&id| vocabulary.prefetch_bytes(id));
        for ((found, &hash), place) in memory.found.iter_mut().zip(&memory.hashes).zip(places) {
            if found.is_some_and(|id| !vocabulary.is_word(id, text, place)) {
                // Another word has the same tag.
                *found =
                    vocabulary.candidates(hash).find(|&id| vocabulary.is_word(id, text, place));
            }
        }
        memory.words.reserve(memory.hashes.len());
        memory.token_keys.reserve(memory.hashes.len());
        let found = std::mem::take(&mut memory.found);
        for (position, &id) in (0..).zip(&found) {
            match id {
                Some(id) => {
                    self.memory.token_keys.push(u64::from(id));
                    self.push(position, id, Found::Listed);
                }
                None => self.read_unlisted(position, tokens.text(position as usize)),
            }
        }
        self.memory.found = found;
    }

    fn read_unlisted(&mut self, position: u32, token: &str) {
        let before = self.memory.words.len();
        self.resolve_unlisted(position, token);
        if self.memory.words.len() == before {
            self.memory.unknown.push(position);
        }
    }

    /// Keeps the first `most` words.
    pub fn cut_words(&mut self, most: usize) {
        if self.memory.words.len() > most {
            self.memory.words.truncate(most);
            self.sort_bag();
        }
    }

    /// Gives back the words with the memory of their vectors; the tokens stay.
    pub fn keep_tokens_alone(&mut self) {
        self.memory.words.clear();
        self.memory.bag.clear();
        self.memory.made = Vec::new();
        self.memory.made_bytes = Vec::new();
    }

    fn sort_bag(&mut self) {
        let memory = &mut self.memory;
        memory.bag.clear();
        let few = memory.words.len() <= COUNTED_WORDS;
        let counted = |word: &Word| word.key < COUNTED_IDS || word.key >= UNLISTED;
        if few && memory.words.iter().all(counted) {
            memory.bag.resize(memory.words.len(), 0);
            if memory.words.len() <= COUNTED_WORDS / 2 {
                count_into::<{ COUNTED_WORDS / 2 }>(&memory.words, &mut memory.bag);
            } else {
                count_into::<COUNTED_WORDS>(&memory.words, &mut memory.bag);
            }
            return;
        }
        memory.bag.extend(0..memory.words.len() as u32);
        let words = &memory.words;
        memory.bag.sort_by_key(|&at| words.get(at as usize).map_or(u64::MAX, |word| word.key));
    }

    /// The tokens of the text.
    pub fn tokens(&self) -> &Tokens {
        &self.memory.tokens
    }

    /// The words found, in the order of the text.
    pub fn words(&self) -> &[Word] {
        &self.memory.words
    }

    /// The words found, sorted by their keys: the same order for every order of the text, so that
    /// sums over it do not depend on where a word stands.
    pub fn bag(&self) -> impl ExactSizeIterator<Item = &Word> + Clone {
        self.memory.bag.iter().map(|&at| &self.memory.words[at as usize])
    }

    /// For each word of the bag, its place in the text.
    pub fn bag_order(&self) -> impl ExactSizeIterator<Item = usize> + Clone {
        self.memory.bag.iter().map(|&at| at as usize)
    }

    /// Whether both texts consist of the same words, each as often.
    pub fn same_bag(&self, other: &Self) -> bool {
        self.memory.bag.len() == other.memory.bag.len()
            && self.bag().zip(other.bag()).all(|(a, b)| a.key == b.key)
    }

    /// What tells the tokens that were read apart, in the order of the text: the id of a listed
    /// one, else its hash with the highest bit set. Unlike words these are not stemmed.
    pub fn token_keys(&self) -> &[u64] {
        &self.memory.token_keys
    }

    /// The share of the tokens that were read that the vocabulary lists, by their stem or a part at
    /// least; 0 for a text without tokens. A vector made for this text is no listed word.
    pub fn known_share(&self) -> f32 {
        let mut listed = self.memory.words.iter().filter(|word| word.id.is_some()).peekable();
        let mut known = 0_u32;
        while let Some(word) = listed.next() {
            // A token can have become several words.
            known += u32::from(listed.peek().is_none_or(|next| next.token != word.token));
        }
        known as f32 / self.memory.token_keys.len().max(1) as f32
    }

    /// Tokens that no word was found for.
    pub fn unknown(&self) -> &[u32] {
        &self.memory.unknown
    }

    /// The pieces that the vector of a word was made from, in their order; none where it was not
    /// [`Found::Pieces`].
    pub fn pieces(&self, word: &Word) -> Vec<&'m str> {
        let UnlistedWords::Fallback(_, Some(table)) = self.model.unlisted() else {
            return Vec::new();
        };
        if word.found != Found::Pieces {
            return Vec::new();
        }
        let (pieces, mut cut) = (table.pieces(self.model), Vec::new());
        pieces.cut(self.tokens().text(word.token as usize), &mut cut);
        cut.into_iter().map(|piece| pieces.name(piece)).collect()
    }

    /// The vector of one of this phrase's words. Where the model's rows are bytes, one that was made for
    /// the text is of bytes, too.
    #[inline]
    pub fn row(&self, word: &Word) -> Row<'_> {
        let listed = word.id.and_then(|id| self.vectors.row(id));
        listed.unwrap_or_else(|| self.made_row(word.made as usize))
    }

    /// The row that was made for this text and begins at `start`.
    #[cold]
    fn made_row(&self, start: usize) -> Row<'_> {
        let (memory, dims) = (&self.memory, self.vectors.dims());
        let scale = memory.made_scales.get(start / dims).filter(|_| self.vectors.are_bytes());
        match scale.zip(memory.made_bytes.get(start..start + dims)) {
            Some((&scale, bytes)) => Row::I8(bytes, scale),
            None => Row::F32(memory.made.get(start..start + dims).unwrap_or(&[])),
        }
    }

    /// Whether no vector of these words is longer than [`LONGEST`] or holds what is no number, as is
    /// certain of a model of which every byte was checked.
    pub fn has_sound_rows(&self) -> bool {
        let sound = |word: &Word| vector::norm(self.row(word)) <= LONGEST;
        self.model.verified() == Verify::Full || self.words().iter().all(sound)
    }

    /// The idf of one of this phrase's words, where the model has one.
    pub fn idf(&self, word: &Word) -> Option<f32> {
        self.vocabulary.idf(word.id)
    }

    /// The share of the counted corpus that this word is.
    pub fn probability(&self, word: &Word) -> f64 {
        word.id.map_or(0.0, |id| self.vocabulary.probability(id))
    }

    /// The model this phrase was looked up in.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    fn push(&mut self, token: u32, id: WordId, found: Found) {
        self.memory.words.push(Word { token, id: Some(id), found, key: u64::from(id), made: 0 });
    }

    /// Adds a word whose vector is made for this text, and gives back the row to fill.
    fn make(&mut self, position: u32, token: &str, found: Found) -> &mut [f32] {
        let made = self.memory.made.len();
        let key = key_of_unlisted(token);
        self.memory.words.push(Word { token: position, id: None, found, key, made: made as u32 });
        self.memory.made.resize(made + self.vectors.dims(), 0.0);
        self.memory.made.get_mut(made..).unwrap_or_default()
    }
}

/// Writes the places of at most `N` words into `bag` in the order of their keys: each word's rank
/// is the number of words before it.
fn count_into<const N: usize>(words: &[Word], bag: &mut [u32]) {
    let mut keys = [i32::MAX; N];
    for (place, (key, word)) in keys.iter_mut().zip(words).enumerate() {
        *key = if word.key < UNLISTED {
            word.key as i32 * COUNTED_WORDS as i32 + place as i32
        } else {
            i32::MAX - COUNTED_WORDS as i32 + unlisted_before(words, place)
        };
    }
    let ranks = simd::ranks(&keys, words.len());
    for ((place, _), rank) in (0..).zip(words).zip(ranks) {
        if let Some(at) = bag.get_mut(rank as usize) {
            *at = place;
        }
    }
}

/// How many unlisted words come before the unlisted one at `place` in the order of keys. There are few.
#[cold]
fn unlisted_before(words: &[Word], place: usize) -> i32 {
    let key = words.get(place).map_or(u64::MAX, |word| word.key);
    let before = |(at, word): &(usize, &Word)| (word.key, *at) < (key, place);
    let unlisted = words.iter().enumerate().filter(|(_, word)| word.key >= UNLISTED);
    unlisted.filter(before).count() as i32
}

fn key_of_unlisted(token: &str) -> u64 {
    unknown::fnv1a(token.as_bytes()) | UNLISTED
}
