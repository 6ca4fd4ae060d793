//! How texts are compared: the method that decides, the vectors that say which pairs it is asked, and
//! the least score.

use cognate::engine::{Engine, Measure, Query, QueryError};
use cognate::methods::Reads;
use cognate::model::Phrase;

use crate::dedupe::buckets::to_length_one;
use crate::dedupe::{DedupeError, Search};

/// By how much a cosine may be rounded otherwise than the method's own.
const ROUNDING: f32 = 1e-4;
/// How far below the threshold the cosine of a pair may lie that another method scores as high: so far
/// it does in 1 of 400 pairs of tweets that `coverage-blend` scores 0.8 or more.
const MARGIN: f32 = 0.1;

/// How texts are compared.
pub struct Judge<'e> {
    pub(super) engine: &'e Engine,
    pub(super) query: Query,
    /// That of the vectors.
    vectors: Query,
    pub(super) dims: usize,
    /// The least score of a match.
    pub(super) threshold: f32,
    /// The least cosine of vectors at which a pair is scored.
    pub(super) floor: f32,
    /// Texts below this are of the other file: only pairs across are looked for.
    pub(super) known: Option<u32>,
    /// Whether the words that matches share are wanted.
    pub(super) explain: bool,
}

impl<'e> Judge<'e> {
    /// How texts are compared by the wanted method.
    pub fn new(engine: &'e Engine, search: &Search) -> Result<Self, DedupeError> {
        let query = search.query;
        let info = query.method.info();
        // Asks of the method what every pair will ask.
        engine.similarity(&[("a", "a")], &query).map_err(DedupeError::Query)?;
        if info.reads == Reads::Tokens {
            return Err(DedupeError::OnlyTokens { method: info.name });
        }
        let embeds =
            engine.embeds(query.method) && engine.default_measure(query.method) == Measure::Cosine;
        let method = if embeds { query.method } else { engine.auto_embedding() };
        let vectors = Query { truncate: true, ..Query::new(method) };
        let dims = engine.embedding_dims(method).map_err(DedupeError::Query)?;
        let below = if embeds { ROUNDING } else { MARGIN };
        Ok(Self {
            engine,
            query,
            vectors,
            dims,
            threshold: search.threshold,
            // A text without a vector has a product of 0 with all others.
            floor: search.floor.unwrap_or(search.threshold - below).max(ROUNDING),
            known: None,
            explain: search.explain,
        })
    }

    /// Dimensions of the vectors.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Room for a text as it is read for its words.
    pub(super) fn phrase(&self) -> Phrase<'e> {
        Phrase::new(self.engine.model())
    }

    /// Reads a text for its words; of one with too many tokens the first.
    pub(super) fn read(&self, phrase: &mut Phrase<'e>, text: &str) {
        phrase.read_up_to(text, self.engine.limits().tokens);
    }

    /// The vectors of texts at length 1, one after the other; zeros for a text without.
    pub fn vectors_of<T: AsRef<str>>(&self, texts: &[T]) -> Result<Vec<f32>, QueryError> {
        let embedded = self.engine.embed(texts, &self.vectors)?;
        let mut rows = Vec::with_capacity(texts.len() * self.dims);
        for vector in embedded.vectors {
            match vector {
                Some(vector) => rows.extend(vector),
                None => rows.resize(rows.len() + self.dims, 0.0),
            }
        }
        rows.chunks_exact_mut(self.dims).for_each(to_length_one);
        Ok(rows)
    }

    /// The words of a text that stand in another, too, in its order.
    pub(super) fn shared(&self, one: &str, other: &str) -> String {
        let [mut known, mut phrase] = [(); 2].map(|()| self.phrase());
        self.read(&mut known, one);
        self.read(&mut phrase, other);
        let mut shared: Vec<&str> = Vec::new();
        for (token, key) in phrase.tokens().iter().zip(phrase.token_keys()) {
            if known.token_keys().contains(key) && !shared.contains(&token.0) {
                shared.push(token.0);
            }
        }
        shared.join(" ")
    }
}
