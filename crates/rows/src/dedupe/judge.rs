//! How two texts are compared: the method that decides, the vectors that select the pairs to score,
//! and the thresholds of both.

use cognate::engine::{Engine, Measure, Query, QueryError};
use cognate::methods::{Counted, Method, Reads};
use cognate::model::Phrase;
use cognate_kernels::scan::Probe;

use crate::dedupe::buckets::to_length_one;
use crate::dedupe::words::{WordBits, dice, different_words, least_jaccard};
use crate::dedupe::{DedupeError, Search};

/// How far the cosine of two vectors as bytes may be from the method's own: the usual difference is a
/// tenth of that.
const ROUNDING: f32 = 0.01;
/// Minimum of the floor: texts without a vector have a product of 0 with all others.
const MIN: f32 = 1e-3;
/// How far below the threshold the cosine of a pair may be if another method scores the pair: in 1
/// of 400 pairs of tweets with a `coverage-blend` score of 0.8 or more it is still lower.
const MARGIN: f32 = 0.1;
/// The margin if words are compared as well, which find copies of a lower cosine: 35,196 of the 35,197 pairs
/// are still found among recombined tweets at 0.08, and 35,177 at 0.06.
const MARGIN_BESIDE_WORDS: f32 = 0.07;

pub struct Judge<'e> {
    pub(super) engine: &'e Engine,
    pub(super) query: Query,
    /// The query by which words are compared in addition to vectors, if they are.
    copies: Option<Query>,
    /// The query for vectors; `None` if only words are compared.
    vectors: Option<Query>,
    /// Dimensions of the vectors; 0 if only words are compared.
    pub(super) dims: usize,
    pub(super) threshold: f32,
    /// Minimum share of common words (Jaccard) for which a pair is scored; infinite if words are not
    /// compared.
    pub(super) least_shared: f32,
    /// Minimum cosine of two vectors, computed from their bytes, for which the pair is scored.
    pub(super) floor: f32,
    /// Texts below this number belong to the other file: only pairs across both files are compared.
    pub(super) known: Option<u32>,
    pub(super) explain: bool,
}

/// What is compared first, to rule out most pairs before their words are compared.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    pub(super) vector: Probe,
    pub(super) words: WordBits,
}

impl<'e> Judge<'e> {
    /// Prepares the comparison by the chosen method; refuses an unsuitable method.
    pub fn new(engine: &'e Engine, search: &Search) -> Result<Self, DedupeError> {
        let query = search.query;
        let info = query.method.info();
        // Validates the query that every pair will use.
        engine.similarity(&[("a", "a")], &query).map_err(DedupeError::Query)?;
        let words = query.method.counted() == Some(Counted::Kinds);
        if info.reads == Reads::Tokens && !words {
            return Err(DedupeError::OnlyTokens { method: info.name });
        }
        let by_words = Query { method: Method::Jaccard, opposes: false, ..query };
        let copies = (search.copies && !words).then_some(by_words);
        let least_shared = match (words, &copies) {
            (true, _) => search.threshold,
            (_, Some(_)) => least_jaccard(search.threshold),
            _ => f32::INFINITY,
        };
        let embeds =
            engine.embeds(query.method) && engine.default_measure(query.method) == Measure::Cosine;
        let method = if embeds { query.method } else { engine.auto_embedding() };
        let vectors = (!words).then(|| Query { truncate: true, ..Query::new(method) });
        let dims = vectors.map_or(Ok(0), |vectors| engine.embedding_dims(vectors.method));
        let dims = dims.map_err(DedupeError::Query)?;
        let below = match (embeds, &copies) {
            (true, _) => ROUNDING,
            (_, Some(_)) => MARGIN_BESIDE_WORDS,
            _ => MARGIN,
        };
        Ok(Self {
            engine,
            query,
            copies,
            vectors,
            dims,
            threshold: search.threshold,
            least_shared,
            floor: search.floor.unwrap_or(search.threshold - below).max(MIN),
            known: None,
            explain: search.explain,
        })
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    pub(super) fn phrase(&self) -> Phrase<'e> {
        Phrase::new(self.engine.model())
    }

    /// Reads a text into words; an overlong text is truncated.
    pub(super) fn read(&self, phrase: &mut Phrase<'e>, text: &str) {
        phrase.read_up_to(text, self.engine.limits().tokens);
    }

    /// The normalised vectors of texts, one after another; zeros for a text without a vector.
    pub fn vectors_of<T: AsRef<str>>(&self, texts: &[T]) -> Result<Vec<f32>, QueryError> {
        self.vectors_seen(texts, |_| {})
    }

    fn vectors_seen<T: AsRef<str>>(
        &self,
        texts: &[T],
        mut look: impl FnMut(&Phrase<'_>),
    ) -> Result<Vec<f32>, QueryError> {
        let Some(vectors) = &self.vectors else {
            let mut phrase = self.phrase();
            for text in texts {
                self.read(&mut phrase, text.as_ref());
                look(&phrase);
            }
            return Ok(Vec::new());
        };
        let mut rows = self.engine.embed_seen(texts, vectors, look)?.or_zeros();
        rows.chunks_exact_mut(self.dims).for_each(to_length_one);
        Ok(rows)
    }

    /// What is compared of each text, and its different words.
    pub(super) fn marks_of<T: AsRef<str>>(
        &self,
        texts: &[T],
    ) -> Result<(Vec<Mark>, Vec<Vec<u64>>), QueryError> {
        let mut words = Vec::with_capacity(texts.len());
        let rows = self.vectors_seen(texts, |phrase| words.push(different_words(phrase)))?;
        let mut vectors = rows.chunks_exact(self.dims.max(1)).map(Probe::new);
        let mark = |words: &Vec<u64>| Mark {
            vector: vectors.next().unwrap_or_default(),
            words: WordBits::new(words),
        };
        Ok((words.iter().map(mark).collect(), words))
    }

    pub(super) fn has_vectors(&self) -> bool {
        self.vectors.is_some()
    }

    pub(super) fn finds_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// The queries for pairs, each with what makes a score of the answer; the highest counts.
    pub(super) fn asked(&self) -> impl Iterator<Item = (&Query, fn(f32) -> f32)> {
        let own: (_, fn(f32) -> f32) = (&self.query, |score| score);
        let copies = self.copies.iter().map(|query| (query, dice as fn(f32) -> f32));
        std::iter::once(own).chain(copies)
    }

    /// The scores of pairs among some texts, named by their indices; none if they cannot be scored. A score
    /// below the threshold may be any number below it.
    pub(super) fn scores<T: AsRef<str>>(
        &self,
        texts: &[T],
        pairs: &[(usize, usize)],
    ) -> Result<Vec<Option<f32>>, QueryError> {
        let queries: Vec<_> = self.asked().map(|(&query, _)| (query, self.threshold)).collect();
        let scores = self.engine.similarity_among(texts, pairs, &queries)?;
        let mut highest = vec![None; pairs.len()];
        for ((_, score_of), scores) in self.asked().zip(scores) {
            for (highest, score) in highest.iter_mut().zip(scores) {
                let score = score.map(score_of);
                *highest =
                    highest.map_or(score, |known| Some(score.map_or(known, |new| new.max(known))));
            }
        }
        Ok(highest)
    }

    /// Returns the words of `one` that `other` contains, too, in the order of `one`.
    pub(super) fn shared(&self, one: &str, other: &str) -> String {
        let [mut known, mut phrase] = [(); 2].map(|()| self.phrase());
        self.read(&mut known, one);
        self.read(&mut phrase, other);
        let known: Vec<u64> = known.token_keys().collect();
        let mut shared: Vec<&str> = Vec::new();
        for (token, key) in phrase.tokens().texts().zip(phrase.token_keys()) {
            if known.contains(&key) && !shared.contains(&token) {
                shared.push(token);
            }
        }
        shared.join(" ")
    }
}

/// The places that stand in pairs, in rising order, and the pairs by the indices of these.
pub(super) fn places_of(pairs: &[(usize, usize)]) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut places: Vec<usize> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    places.sort_unstable();
    places.dedup();
    let at = |place| places.binary_search(&place).unwrap_or_default();
    let pairs = pairs.iter().map(|&(one, other)| (at(one), at(other))).collect();
    (places, pairs)
}
