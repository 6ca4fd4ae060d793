//! A text looked up in a model: its words as the numbers of their rows, and the tokens that were not
//! found.
//!
//! This is the only place where tokens meet the vocabulary, so packing, training, evaluation and
//! serving cannot disagree about what a text consists of. What words weigh and how texts compare
//! is the methods' part.

mod met;
mod unlisted;

use cognate_kernels::simd::bytes;
use cognate_kernels::simd::sums;
use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};

use crate::choice::choice;
use crate::model::phrase::unlisted::Unlisted;
use crate::model::unlisted::UnlistedWords;
use crate::model::vocabulary::EMPTY;
use crate::model::{
    LONGEST, Model, Vectors, Verify, Vocabulary, WordId, subword, unknown, vocabulary,
};
use crate::text;
use crate::text::Tokens;

/// Tokens longer than this are not looked up by their parts: nobody means them as words.
pub const TOKEN_BYTES: usize = subword::LONGEST_WORD_BYTES;

/// Keys of words that are not listed have this bit.
const UNLISTED: u64 = 1 << 63;

/// A word of a phrase: the number of its row. Rows of the vocabulary's words have their ids; those
/// that were made for the text come behind them.
pub type Word = u32;

/// The rule that found a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The token is listed.
    Listed,
    /// The token is listed with its drawn-out letters shortened.
    Shortened,
    /// The word's stem is listed.
    Stem,
    /// The word is a listed part of the token.
    Part,
    /// The vector was made from the word's n-grams.
    NGrams,
    /// The vector was made from the vectors of the word's pieces.
    Pieces,
    /// The vector was made from the word's hash.
    Hash,
}

choice!(Found {
    Listed = "listed",
    Shortened = "shortened",
    Stem = "stem",
    Part = "part",
    NGrams = "n_grams",
    Pieces = "pieces",
    Hash = "hash"
});

/// Where a word of a phrase comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The token.
    pub token: u32,
    /// The rule that found it.
    pub found: Found,
}

/// What a phrase is made of, apart from the model it was looked up in: memory that one phrase can
/// hand to the next.
#[derive(Debug, Default)]
pub struct PhraseMemory {
    tokens: Tokens,
    /// For each token that was read its id, or [`EMPTY`].
    ids: Vec<u32>,
    /// Whether every token is a listed word: the ids are then the words.
    all_listed: bool,
    /// The words in the order of the text unless the ids are, and in the order of their keys.
    words: Vec<Word>,
    bag: Vec<Word>,
    /// A word a token that is not listed, or several.
    resolved: Vec<Origin>,
    unknown: Vec<u32>,
    made: Made,
    buffer: String,
    pieces: Vec<u32>,
    look_up: vocabulary::Work,
}

/// The words whose rows were made for the text.
#[derive(Debug, Default)]
struct Made {
    keys: Vec<u64>,
    /// The rows of the words, one after another.
    rows: Vec<f32>,
    /// The rows as bytes with scales, if the model's rows are bytes.
    bytes: Vec<i8>,
    scales: Vec<f32>,
}

/// A text looked up. Reading another text into it reuses its memory.
#[derive(Debug)]
pub struct Phrase<'m> {
    model: &'m Model,
    vocabulary: Vocabulary<'m>,
    vectors: Vectors<'m>,
    /// Boxed, because a phrase is moved more often than it is read.
    memory: Box<PhraseMemory>,
}

impl<'m> Phrase<'m> {
    /// An empty phrase.
    pub fn new(model: &'m Model) -> Self {
        Self::with(model, Box::default())
    }

    /// A phrase in memory that another one left; it holds nothing that makes sense before a text
    /// is read into it.
    pub fn with(model: &'m Model, memory: Box<PhraseMemory>) -> Self {
        Self { model, vocabulary: model.vocabulary(), vectors: model.vectors(), memory }
    }

    /// The memory, for another phrase.
    pub fn into_memory(self) -> Box<PhraseMemory> {
        self.memory
    }

    /// Replaces the phrase by another text.
    pub fn read(&mut self, text: &str) {
        self.read_up_to(text, usize::MAX);
    }

    /// Replaces the phrase by the first `most` tokens of another text, and gives back how many
    /// tokens there were.
    pub fn read_up_to(&mut self, text: &str, most: usize) -> usize {
        self.begin(text, most);
        self.finish()
    }

    /// Does the first half of [`Phrase::read_up_to`]; call only [`Phrase::finish`] after it. Beginning other
    /// texts between the two calls saves time: meanwhile the processor loads the index entries of the words.
    pub(crate) fn begin(&mut self, text: &str, most: usize) {
        let PhraseMemory { tokens, look_up, .. } = &mut *self.memory;
        text::tokenise(self.model.normalisation(), text, tokens);
        let (text, places) = tokens.places();
        self.vocabulary.ask(text, places.take(most), look_up);
    }

    /// The second half.
    pub(crate) fn finish(&mut self) -> usize {
        let PhraseMemory { tokens, ids, words, resolved, unknown, made, look_up, .. } =
            &mut *self.memory;
        resolved.clear();
        unknown.clear();
        made.clear();
        ids.clear();
        words.clear();
        let (text, places) = tokens.places();
        let vectors = self.vectors;
        // The row will be read when all words are known.
        let seen = |id| vectors.prefetch(id);
        self.vocabulary.find_all(text, places, look_up, ids, seen);
        self.memory.all_listed = !ids.contains(&EMPTY);
        if !self.memory.all_listed {
            self.read_words();
        }
        self.sort_bag();
        self.memory.tokens.len()
    }

    fn read_words(&mut self) {
        // The tokens are read while words are written, so they leave the memory for that time.
        let tokens = std::mem::take(&mut self.memory.tokens);
        let ids = std::mem::take(&mut self.memory.ids);
        met::with(self.model.number(), self.vectors.dims(), |met| {
            for (token, &id) in (0..).zip(&ids) {
                if id != EMPTY {
                    self.memory.words.push(id);
                    continue;
                }
                let before = self.memory.words.len();
                let text = tokens.text(token as usize);
                self.read_unlisted(Unlisted { token, text, key: Self::key_of_unlisted(text) }, met);
                if self.memory.words.len() == before {
                    self.memory.unknown.push(token);
                }
            }
        });
        self.memory.tokens = tokens;
        self.memory.ids = ids;
    }

    /// Keeps the first `most` words.
    pub fn cut_words(&mut self, most: usize) {
        if self.words().len() > most {
            if std::mem::take(&mut self.memory.all_listed) {
                self.memory.words.extend_from_slice(&self.memory.ids);
            }
            self.memory.words.truncate(most);
            self.sort_bag();
        }
    }

    /// Gives back the words with the memory of their vectors; the tokens stay.
    pub fn keep_tokens_alone(&mut self) {
        self.memory.all_listed = false;
        self.memory.words.clear();
        self.memory.bag.clear();
        self.memory.made = Made::default();
    }

    fn sort_bag(&mut self) {
        let PhraseMemory { all_listed, ids, words, bag, made, .. } = &mut *self.memory;
        bag.clear();
        bag.extend_from_slice(if *all_listed { ids } else { words });
        simd::sort(bag);
        if made.keys.len() > 1 {
            // Rows that were made are the last, but their order is that of their keys.
            let listed = self.vectors.len() as Word;
            let first = bag.partition_point(|&word| word < listed);
            let key = |word: &Word| made.keys.get((word - listed) as usize).copied();
            bag.get_mut(first..).unwrap_or_default().sort_by_key(key);
        }
    }

    /// The tokens of the text.
    pub fn tokens(&self) -> &Tokens {
        &self.memory.tokens
    }

    /// Number of tokens that were read.
    pub fn tokens_read(&self) -> usize {
        self.memory.ids.len()
    }

    /// For each token that was read, in the order of the text, its id, or [`EMPTY`].
    pub(crate) fn ids(&self) -> &[WordId] {
        &self.memory.ids
    }

    /// For each token that was read, in the order of the text, its id where it is listed.
    pub(crate) fn token_ids(&self) -> impl ExactSizeIterator<Item = Option<WordId>> {
        self.memory.ids.iter().map(|&id| if id == EMPTY { None } else { Some(id) })
    }

    /// The listed word that a token which is not listed was found as, by its stem or with its drawn-out
    /// letters shortened.
    pub(crate) fn stem_of(&self, token: u32) -> Option<WordId> {
        let stem = |origin: &Origin| {
            origin.token == token && matches!(origin.found, Found::Stem | Found::Shortened)
        };
        // Most such tokens are names, made of pieces.
        if !self.memory.resolved.iter().any(stem) {
            return None;
        }
        let mut words = self.origins().zip(self.words());
        words.find(|(origin, _)| stem(origin)).map(|(_, &word)| word)
    }

    /// The words found, in the order of the text.
    #[inline]
    pub fn words(&self) -> &[Word] {
        if self.memory.all_listed { &self.memory.ids } else { &self.memory.words }
    }

    /// The origin of each word, in the order of the text.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        let listed = (0..).zip(&self.memory.ids).filter(|(_, id)| **id != EMPTY);
        let listed = listed.map(|(token, _)| Origin { token, found: Found::Listed });
        let mut listed = listed.peekable();
        let mut resolved = self.memory.resolved.iter().copied().peekable();
        let next = move || match (listed.peek(), resolved.peek()) {
            (Some(one), Some(other)) if one.token > other.token => resolved.next(),
            (None, _) => resolved.next(),
            _ => listed.next(),
        };
        std::iter::from_fn(next).take(self.words().len())
    }

    /// The words found, sorted by their keys: the same order for every order of the text, so that
    /// sums over it do not depend on where a word stands.
    pub fn bag(&self) -> &[Word] {
        &self.memory.bag
    }

    /// The words of the bag that are listed, which are its first.
    pub fn listed_in_bag(&self) -> &[Word] {
        let (bag, made) = (&self.memory.bag, &self.memory.made.keys);
        let listed = self.vectors.len() as Word;
        let words = match made.is_empty() {
            true => bag.len(),
            false => bag.partition_point(|&word| word < listed),
        };
        bag.get(..words).unwrap_or_default()
    }

    /// Returns for each word of the bag its place in the text.
    pub fn bag_order(&self) -> Vec<usize> {
        let words = self.words();
        let mut places: Vec<usize> = (0..words.len()).collect();
        places.sort_by_key(|&place| words.get(place).map(|&word| self.key(word)));
        places
    }

    /// Whether both texts consist of the same words, each as often.
    pub fn same_bag(&self, other: &Self) -> bool {
        let (one, other_made) = (&self.memory, &other.memory.made.keys);
        if one.made.keys.is_empty() && other_made.is_empty() {
            return one.bag == other.memory.bag;
        }
        one.bag.len() == other.memory.bag.len()
            && one.bag.iter().zip(&other.memory.bag).all(|(&a, &b)| self.key(a) == other.key(b))
    }

    /// A key of a word in any text: the id, or the hash of an unlisted word with the highest bit
    /// set.
    pub fn key(&self, word: Word) -> u64 {
        match self.made_at(word) {
            None => u64::from(word),
            Some(at) => self.memory.made.keys.get(at).copied().unwrap_or(u64::MAX),
        }
    }

    /// The id of a word, unless its row was made for this text.
    #[inline]
    pub fn id(&self, word: Word) -> Option<WordId> {
        self.made_at(word).is_none().then_some(word)
    }

    /// The place of a word among those whose rows were made, if it is one of them.
    #[inline]
    fn made_at(&self, word: Word) -> Option<usize> {
        (word as usize).checked_sub(self.vectors.len())
    }

    /// Keys of the tokens that were read, in the order of the text: the id of a listed token, else
    /// its hash with the highest bit set. Unlike words these are not stemmed.
    pub fn token_keys(&self) -> impl ExactSizeIterator<Item = u64> {
        self.memory.ids.iter().enumerate().map(|(token, &id)| match id {
            EMPTY => Self::key_of_unlisted(self.memory.tokens.text(token)),
            id => u64::from(id),
        })
    }

    /// A key that tells an unlisted token from all other tokens.
    pub(crate) fn key_of_unlisted(token: &str) -> u64 {
        unknown::fnv1a(token.as_bytes()) | UNLISTED
    }

    /// The share of the tokens that were read that the vocabulary lists, by their stem or a part at
    /// least; 0 for a text without tokens. A vector made for this text is no listed word.
    pub fn known_share(&self) -> f32 {
        let words = self.origins().zip(self.words());
        let listed = words.filter(|(_, word)| self.id(**word).is_some());
        // A token can have become several words.
        let mut tokens: Vec<u32> = listed.map(|(origin, _)| origin.token).collect();
        tokens.dedup();
        tokens.len() as f32 / self.tokens_read().max(1) as f32
    }

    /// Tokens that no word was found for.
    pub fn unknown(&self) -> &[u32] {
        &self.memory.unknown
    }

    /// The pieces that the vector of a word of this origin was made from, in their order; none for an
    /// origin other than [`Found::Pieces`].
    pub fn pieces(&self, origin: Origin) -> Vec<&'m str> {
        let UnlistedWords::Fallback(_, Some(table)) = self.model.unlisted() else {
            return Vec::new();
        };
        if origin.found != Found::Pieces {
            return Vec::new();
        }
        let (pieces, mut cut) = (table.pieces(self.model), Vec::new());
        pieces.cut(self.tokens().text(origin.token as usize), &mut cut);
        cut.into_iter().map(|piece| pieces.name(piece)).collect()
    }

    /// The vector of one of this phrase's words. Where the model's rows are bytes, one that was made for
    /// the text is of bytes, too.
    #[inline]
    pub fn row(&self, word: Word) -> Row<'_> {
        self.vectors.row(word).unwrap_or_else(|| self.made_row(word))
    }

    #[cold]
    fn made_row(&self, word: Word) -> Row<'_> {
        let (made, dims) = (&self.memory.made, self.vectors.dims());
        let at = self.made_at(word).unwrap_or(usize::MAX);
        let range = at.saturating_mul(dims)..at.saturating_add(1).saturating_mul(dims);
        match made.scales.get(at).zip(made.bytes.get(range.clone())) {
            Some((&scale, bytes)) => Row::I8(bytes, scale),
            None => Row::F32(made.rows.get(range).unwrap_or(&[])),
        }
    }

    /// The rows of the bag where they lie, if all are of one type.
    pub fn bag_rows(&self) -> Option<sums::Rows<'_>> {
        let PhraseMemory { bag, made, .. } = &*self.memory;
        self.vectors.pick(bag, &made.rows, &made.bytes)
    }

    /// Multiplies a weight for each word of the bag by the scale of its row, if rows have scales.
    pub fn scale(&self, weights: &mut [f32]) {
        self.vectors.scale(&self.memory.bag, &self.memory.made.scales, weights);
    }

    /// Whether every vector of these words is finite and at most [`LONGEST`], which is certain if
    /// every byte of the model was checked.
    pub fn has_sound_rows(&self) -> bool {
        let sound = |word: &Word| vector::norm(self.row(*word)) <= LONGEST;
        self.model.verified() == Verify::Full || self.words().iter().all(sound)
    }

    /// The idf of one of this phrase's words, where the model has one.
    pub fn idf(&self, word: Word) -> Option<f32> {
        self.vocabulary.idf(self.id(word))
    }

    /// The share of the counted corpus that this word is.
    pub fn probability(&self, word: Word) -> f64 {
        self.id(word).map_or(0.0, |id| self.vocabulary.probability(id))
    }

    /// The model this phrase was looked up in.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    fn push(&mut self, origin: Origin, id: WordId) {
        self.memory.words.push(id);
        self.memory.resolved.push(origin);
    }

    fn push_made(&mut self, origin: Origin, key: u64) {
        let word = self.vectors.len() + self.memory.made.keys.len();
        self.memory.made.keys.push(key);
        self.push(origin, word as Word);
    }

    /// Adds a word whose vector `fill` makes for this text from a row of zeros; `false`, and nothing
    /// added, if it makes none.
    fn make(&mut self, origin: Origin, key: u64, fill: impl FnOnce(&mut [f32]) -> bool) -> bool {
        let (made, dims) = (&mut self.memory.made, self.vectors.dims());
        let (are_bytes, start) = (self.vectors.are_bytes(), made.keys.len() * dims);
        // Rows that are brought to bytes need not stay.
        let from = if are_bytes { 0 } else { start };
        made.rows.truncate(from);
        made.rows.resize(from + dims, 0.0);
        let row = made.rows.get_mut(from..).unwrap_or_default();
        if !fill(row) {
            made.rows.truncate(from);
            return false;
        }
        if are_bytes {
            // A row made here is quantised as stored rows are, so that every product is one of bytes.
            made.bytes.resize(start + dims, 0);
            let bytes = made.bytes.get_mut(start..).unwrap_or_default();
            made.scales.push(bytes::quantise(row, bytes));
        }
        self.push_made(origin, key);
        true
    }
}

impl Made {
    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.bytes.clear();
        self.scales.clear();
    }
}
