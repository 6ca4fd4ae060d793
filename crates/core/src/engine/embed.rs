//! The vectors of texts.

use ndarray::Array2;

use crate::engine::workspace::Workspace;
use crate::engine::{Embeddings, Engine, Place, Query, QueryError, scorable};
use crate::methods::{Info, Method, Scorer};
use crate::model::{Frequency, Phrase};

/// Scales a vector to length 1, unless it is zero.
pub fn set_length_1(vector: &mut [f32]) {
    let square: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    let length = square.sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
}

/// # Embed
impl Engine {
    /// The vectors of texts. A text without a vector has a row of NaN, which [`Embeddings::iter`] and
    /// [`Embeddings::get`] answer by `None`.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.auto_embedding());
    /// let answer = engine.embed(&["quake hits city", "???"], &query)?;
    /// assert_eq!(answer.vectors.dim(), (2, engine.embedding_dims(query.method)?));
    /// assert!(answer.get(0).is_some());
    /// assert_eq!(answer.get(1), None, "a text without a known word has no vector");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: &[T],
        query: &Query,
    ) -> Result<Embeddings, QueryError> {
        self.embed_seen(texts, query, |_| {})
    }

    /// [`Engine::embed`]; `look` sees each text as it was read.
    pub fn embed_seen<T: AsRef<str>>(
        &self,
        texts: &[T],
        query: &Query,
        look: impl FnMut(&Phrase<'_>),
    ) -> Result<Embeddings, QueryError> {
        self.embed_by((self.scorer_of(query)?, query.method.info()), texts, query, look)
    }

    /// The method that `auto` stands for in requests for vectors: the model's choice if it has
    /// vectors, else a mean of word vectors, chosen by how informative the vectors' lengths are.
    pub fn auto_embedding(&self) -> Method {
        if self.embeds(self.auto) {
            return self.auto;
        }
        match self.model.frequency() {
            Frequency::None if self.embeds(Method::Sif) => Method::Sif,
            Frequency::None | Frequency::InNorm => Method::AvgCos,
        }
    }

    /// [`Engine::method`] for vectors, where `auto` is [`Engine::auto_embedding`].
    pub fn embedding_method(&self, name: &str) -> Result<Method, QueryError> {
        if Method::is_auto(name) { Ok(self.auto_embedding()) } else { self.method(name) }
    }

    /// Whether a method can embed a single text with this model.
    pub fn embeds(&self, method: Method) -> bool {
        matches!(self.scorer(method), Ok(Scorer::Embed(_)))
    }

    /// Dimensions of a method's vectors, if it has them.
    pub fn embedding_dims(&self, method: Method) -> Result<usize, QueryError> {
        match self.scorer(method)? {
            Scorer::Embed(embedder) => Ok(embedder.dims(self.model.dims())),
            _ => Err(QueryError::CannotEmbed { method: method.name() }),
        }
    }

    /// [`Engine::embed`] by a scorer that need not be one of the methods.
    pub(super) fn embed_by<T: AsRef<str>>(
        &self,
        (scorer, info): (&Scorer, &Info),
        texts: &[T],
        query: &Query,
        mut look: impl FnMut(&Phrase<'_>),
    ) -> Result<Embeddings, QueryError> {
        let Scorer::Embed(embedder) = scorer else {
            return Err(QueryError::CannotEmbed { method: info.name });
        };
        let mut workspace = Workspace::with_memory(&self.model);
        let mut phrase = workspace.phrase();
        let shape = (texts.len(), embedder.dims(self.model.dims()));
        let mut answer = Embeddings { vectors: Array2::zeros(shape), ..Embeddings::default() };
        for (index, text) in texts.iter().enumerate() {
            let item = self.read_item(&mut phrase, text.as_ref(), query, Place::Text(index))?;
            if item.is_cut() {
                answer.truncated.push(index);
            }
            look(&phrase);
            answer.counts.saw(&phrase);
            answer.tokens.push(phrase.tokens().len());
            // Of a cut text only the tokens that were read can be known.
            answer.known.push(phrase.tokens_read() - phrase.unknown().len());
            let vector = answer.vectors.row_mut(index).into_slice().unwrap_or_default();
            if let Some(reason) = item.reason(scorable(&phrase, info)) {
                query.accepts_unknown(Place::Text(index))?;
                vector.fill(f32::NAN);
                answer.unscored.push(index);
                answer.reasons.push(reason);
                continue;
            }
            embedder.embed(&phrase, vector);
            if vector.iter().any(|value| !value.is_finite()) {
                return Err(QueryError::NonFinite { method: info.name });
            }
        }
        workspace.take_back([phrase]);
        Ok(answer)
    }
}
