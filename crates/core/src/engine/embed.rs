//! The vectors of texts.

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
    /// The vectors of texts.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.auto_embedding());
    /// let answer = engine.embed(&["quake hits city", "???"], &query)?;
    /// assert_eq!(answer.vectors[0].as_ref().map(Vec::len), Some(answer.dims));
    /// assert_eq!(answer.vectors[1], None, "a text without a known word has no vector");
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

    /// Whether a method can embed a single text, as far as this model can tell.
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
        let dims = embedder.dims(self.model.dims());
        let mut answer = Embeddings { dims, ..Embeddings::default() };
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
            if let Some(reason) = item.reason(scorable(&phrase, info)) {
                query.accepts_unknown(Place::Text(index))?;
                answer.vectors.push(None);
                answer.unscored.push(index);
                answer.reasons.push(reason);
                continue;
            }
            let mut vector = vec![0.0; dims];
            embedder.embed(&phrase, &mut vector);
            if vector.iter().any(|value| !value.is_finite()) {
                return Err(QueryError::NonFinite { method: info.name });
            }
            answer.vectors.push(Some(vector));
        }
        workspace.take_back([phrase]);
        Ok(answer)
    }
}
