//! How two texts are compared: the method that decides, the vectors that select the pairs to score,
//! and the thresholds of both.

use cognate::engine::{Engine, Measure, Query, QueryError};
use cognate::methods::Reads;
use cognate::model::Phrase;
use cognate_kernels::scan::Probe;

use crate::dedupe::buckets::to_length_one;
use crate::dedupe::{DedupeError, Search};

/// How far the cosine of two vectors as bytes may be from the method's own: the usual difference is a
/// tenth of that.
const ROUNDING: f32 = 0.01;
/// Minimum of the floor: texts without a vector have a product of 0 with all others.
const LEAST: f32 = 1e-3;
/// How far below the threshold the cosine of a pair may be if another method scores the pair: in 1
/// of 400 pairs of tweets with a `coverage-blend` score of 0.8 or more it is still lower.
const MARGIN: f32 = 0.1;

pub struct Judge<'e> {
    pub(super) engine: &'e Engine,
    pub(super) query: Query,
    vectors: Query,
    pub(super) dims: usize,
    pub(super) threshold: f32,
    /// Minimum cosine of two vectors, as their bytes have it, for their pair to be scored.
    pub(super) floor: f32,
    /// Texts below this number belong to the other file: only pairs across both files are compared.
    pub(super) known: Option<u32>,
    pub(super) explain: bool,
}

impl<'e> Judge<'e> {
    /// Prepares the comparison by the chosen method; refuses an unsuitable one.
    pub fn new(engine: &'e Engine, search: &Search) -> Result<Self, DedupeError> {
        let query = search.query;
        let info = query.method.info();
        // Validates the query that every pair will use.
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
            floor: search.floor.unwrap_or(search.threshold - below).max(LEAST),
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
        look: impl FnMut(&Phrase<'_>),
    ) -> Result<Vec<f32>, QueryError> {
        let embedded = self.engine.embed_seen(texts, &self.vectors, look)?;
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

    /// The same as bytes; `look` sees each text as it was read.
    pub(super) fn rows_of<T: AsRef<str>>(
        &self,
        texts: &[T],
        look: impl FnMut(&Phrase<'_>),
    ) -> Result<Vec<Probe>, QueryError> {
        Ok(self.vectors_seen(texts, look)?.chunks_exact(self.dims).map(Probe::new).collect())
    }

    /// The words of one text that the other contains as well, in the order of the first.
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
