//! A text looked up in a model: its words with their rows, and the tokens that were not found.
//!
//! This is the only place where tokens meet the vocabulary, so packing, training, evaluation and
//! serving cannot disagree about what a text consists of. What words weigh and how texts compare
//! is the methods' part.

use crate::kernels::vector;
use crate::kernels::vector::Row;
use crate::model::Model;
use crate::model::Vectors;
use crate::model::Vocabulary;
use crate::model::WordId;
use crate::model::subword;
use crate::model::subword::NGrams;
use crate::model::unknown;
use crate::model::unknown::Fallback;
use crate::model::unlisted::UnlistedWords;
use crate::model::vocabulary::Place;
use crate::text;
use crate::text::Elongations;
use crate::text::Tokens;

/// Tokens longer than this are not looked up by their parts: nobody means them as words.
pub const TOKEN_BYTES: usize = subword::LONGEST_WORD_BYTES;

/// Up to so many words are put in order by counting, for each, those that come before it: more
/// comparisons than a sort makes, but none that the processor has to guess the outcome of.
const COUNTED_WORDS: usize = 32;

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

/// A text looked up. Reading another text into it reuses its memory.
#[derive(Debug)]
pub struct Phrase<'m> {
    model: &'m Model,
    vocabulary: Vocabulary<'m>,
    vectors: Vectors<'m>,
    tokens: Tokens,
    words: Vec<Word>,
    bag: Vec<u32>,
    token_keys: Vec<u64>,
    unknown: Vec<u32>,
    made: Vec<f32>,
    buffer: String,
    pieces: Vec<u32>,
    places: Vec<Place>,
    keys: Vec<u64>,
}

impl<'m> Phrase<'m> {
    /// An empty phrase.
    pub fn new(model: &'m Model) -> Self {
        Self {
            model,
            vocabulary: model.vocabulary(),
            vectors: model.vectors(),
            tokens: Tokens::new(),
            words: Vec::new(),
            bag: Vec::new(),
            token_keys: Vec::new(),
            unknown: Vec::new(),
            made: Vec::new(),
            buffer: String::new(),
            pieces: Vec::new(),
            places: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Replaces the phrase by another text.
    pub fn read(&mut self, text: &str) {
        self.read_up_to(text, usize::MAX);
    }

    /// Replaces the phrase by the first `most` tokens of another text, and gives back how many
    /// tokens there were.
    pub fn read_up_to(&mut self, text: &str, most: usize) -> usize {
        self.words.clear();
        self.token_keys.clear();
        self.unknown.clear();
        self.made.clear();
        let mut tokens = std::mem::take(&mut self.tokens);
        let mut places = std::mem::take(&mut self.places);
        text::tokenise(self.model.normalisation(), text, &mut tokens);
        let vectors = self.vectors;
        let read = tokens.texts().take(most);
        self.vocabulary.lookup_all(read.clone(), &mut places, |id| vectors.prefetch(id));
        for (position, (token, place)) in read.zip(&places).enumerate() {
            let position = position as u32;
            match place.id() {
                Some(id) => {
                    self.token_keys.push(u64::from(id));
                    self.push(position, id, Found::Listed);
                }
                None => {
                    let before = self.words.len();
                    self.resolve_unlisted(position, token);
                    if self.words.len() == before {
                        self.unknown.push(position);
                    }
                }
            }
        }
        (self.tokens, self.places) = (tokens, places);
        self.sort_bag();
        self.tokens.len()
    }

    /// Keeps the first `most` words.
    pub fn cut_words(&mut self, most: usize) {
        if self.words.len() > most {
            self.words.truncate(most);
            self.sort_bag();
        }
    }

    fn sort_bag(&mut self) {
        self.bag.clear();
        self.bag.resize(self.words.len(), 0);
        self.keys.clear();
        self.keys.extend(self.words.iter().map(|word| word.key));
        if self.keys.len() > COUNTED_WORDS {
            self.bag.iter_mut().zip(0..).for_each(|(at, place)| *at = place);
            let keys = &self.keys;
            self.bag.sort_by_key(|&at| keys.get(at as usize).copied().unwrap_or(u64::MAX));
            return;
        }
        for (place, key) in self.keys.iter().enumerate() {
            let before = self.keys.iter().take(place).filter(|&other| other <= key).count();
            let after = self.keys.iter().skip(place + 1).filter(|&other| other < key).count();
            if let Some(at) = self.bag.get_mut(before + after) {
                *at = place as u32;
            }
        }
    }

    /// The tokens of the text.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The words found, in the order of the text.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The words found, sorted by their keys: the same order for every order of the text, so that
    /// sums over it do not depend on where a word stands.
    pub fn bag(&self) -> impl ExactSizeIterator<Item = &Word> + Clone {
        self.bag.iter().map(|&at| &self.words[at as usize])
    }

    /// For each word of the bag, its place in the text.
    pub fn bag_order(&self) -> impl ExactSizeIterator<Item = usize> + Clone {
        self.bag.iter().map(|&at| at as usize)
    }

    /// Whether both texts consist of the same words, each as often.
    pub fn same_bag(&self, other: &Self) -> bool {
        self.bag.len() == other.bag.len()
            && self.bag().zip(other.bag()).all(|(a, b)| a.key == b.key)
    }

    /// What tells the tokens that were read apart, in the order of the text: the id of a listed
    /// one, else its hash with the highest bit set. Unlike words these are not stemmed.
    pub fn token_keys(&self) -> &[u64] {
        &self.token_keys
    }

    /// Tokens that no word was found for.
    pub fn unknown(&self) -> &[u32] {
        &self.unknown
    }

    /// The vector of one of this phrase's words.
    pub fn row(&self, word: &Word) -> Row<'_> {
        let listed = word.id.and_then(|id| self.vectors.row(id));
        listed.unwrap_or_else(|| {
            let start = word.made as usize;
            Row::F32(self.made.get(start..start + self.vectors.dims()).unwrap_or(&[]))
        })
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

    fn resolve_unlisted(&mut self, position: u32, token: &str) {
        self.token_keys.push(key_of_unlisted(token));
        if token.len() > TOKEN_BYTES {
            return;
        }
        if self.model.normalisation().elongations == Elongations::Shorten {
            for run in [2, 1] {
                if text::shortened(token, run, &mut self.buffer)
                    && let Some(id) = self.vocabulary.lookup(&self.buffer)
                {
                    return self.push(position, id, Found::Shortened);
                }
            }
        }
        match self.model.unlisted() {
            UnlistedWords::None => {}
            UnlistedWords::Fallback(rules) => self.fall_back(rules, position, token),
            UnlistedWords::NGrams { rule, dtype, rows, scales } => {
                let (rows, scales) = (self.model.slice(rows), self.model.slice(scales));
                if let Some(table) = Vectors::new(*dtype, rows, scales, self.vectors.dims()) {
                    self.make_from_ngrams(rule, &table, position, token);
                }
            }
            UnlistedWords::WordPiece { prefix } => {
                let vocabulary = self.vocabulary;
                let mut pieces = std::mem::take(&mut self.pieces);
                pieces.clear();
                if subword::wordpieces(token, prefix, |p| vocabulary.lookup(p), &mut pieces) {
                    for &id in &pieces {
                        self.push(position, id, Found::Part);
                    }
                }
                self.pieces = pieces;
            }
        }
    }

    fn fall_back(&mut self, rules: &Fallback, position: u32, token: &str) {
        let vocabulary = self.vocabulary;
        let known = |word: &str| vocabulary.lookup(word);
        if let Some(id) = rules.stem(token, &mut self.buffer, known) {
            return self.push(position, id, Found::Stem);
        }
        if rules.parts && token.contains('\'') {
            let before = self.words.len();
            for id in token.split('\'').filter_map(|part| vocabulary.lookup(part)) {
                self.push(position, id, Found::Part);
            }
            if self.words.len() > before {
                return;
            }
        }
        if let Some(norm) = rules.hash_norm {
            let row = self.make(position, token, Found::Hash);
            unknown::hash_vector(token, norm, row);
        }
    }

    fn make_from_ngrams(&mut self, rule: &NGrams, table: &Vectors<'_>, position: u32, token: &str) {
        let count = rule.ids(token.as_bytes()).count();
        if count == 0 {
            return;
        }
        let row = self.make(position, token, Found::NGrams);
        for bucket in rule.ids(token.as_bytes()) {
            if let Some(bucket) = table.row(bucket as u32) {
                vector::add_scaled(row, 1.0, bucket);
            }
        }
        for value in row {
            *value /= count as f32;
        }
    }

    fn push(&mut self, token: u32, id: WordId, found: Found) {
        self.words.push(Word { token, id: Some(id), found, key: u64::from(id), made: 0 });
    }

    /// Adds a word whose vector is made for this text, and gives back the row to fill.
    fn make(&mut self, position: u32, token: &str, found: Found) -> &mut [f32] {
        let made = self.made.len();
        let key = key_of_unlisted(token);
        self.words.push(Word { token: position, id: None, found, key, made: made as u32 });
        self.made.resize(made + self.vectors.dims(), 0.0);
        self.made.get_mut(made..).unwrap_or_default()
    }
}

fn key_of_unlisted(token: &str) -> u64 {
    unknown::fnv1a(token.as_bytes()) | 1 << 63
}
