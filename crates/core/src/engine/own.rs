//! Questions answered by a caller's own method.

use crate::engine::{
    Embeddings, Engine, Explanation, Query, QueryError, RankOptions, Ranking, Scores, TextPair,
};
use crate::methods::{Info, Method, Reads, Scorer};

/// A method of your own, asked by an engine: see [`Engine::by`].
#[derive(Clone, Copy)]
pub struct OwnMethod<'e> {
    engine: &'e Engine,
    scorer: &'e Scorer,
    info: &'e Info,
    /// The measure, and what to do with unknown and overlong texts. Its method answers nothing.
    pub query: Query,
}

/// # Methods of your own
impl Engine {
    /// Asks a method of your own: an [`Embed`](crate::methods::Embed), a
    /// [`Compare`](crate::methods::Compare) or a [`RankList`](crate::methods::RankList).
    ///
    /// ```
    /// use cognate::Engine;
    /// use cognate::methods::{Embed, Info, Scorer};
    /// use cognate::model::Phrase;
    ///
    /// /// The vector of the first word.
    /// struct FirstWord;
    ///
    /// impl Embed for FirstWord {
    ///     fn embed(&self, text: &Phrase<'_>, out: &mut [f32]) {
    ///         if let Some(&word) = text.words().first() {
    ///             text.row(word).copy_to(out);
    ///         }
    ///     }
    /// }
    ///
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let (scorer, info) = (Scorer::Embed(Box::new(FirstWord)), Info::new("first-word"));
    /// let first_word = engine.by(&scorer, &info);
    /// let scores = first_word.similarity(&[("quake in Lima", "quake in Rome")])?.scores;
    /// assert!(scores[0] > 0.999);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by<'e>(&'e self, scorer: &'e Scorer, info: &'e Info) -> OwnMethod<'e> {
        // Texts are read as for a library method of the same [`Reads`](crate::methods::Reads).
        let method = match info.reads {
            Reads::Words => Method::AvgCos,
            Reads::Tokens => Method::Jaccard,
        };
        OwnMethod { engine: self, scorer, info, query: Query::new(method) }
    }
}

impl OwnMethod<'_> {
    /// Does what [`Engine::similarity`] does, with this method.
    pub fn similarity<P: TextPair>(&self, pairs: &[P]) -> Result<Scores, QueryError> {
        self.engine.score_pairs_by((self.scorer, self.info), pairs, &self.query)
    }

    /// Ranks candidates as [`Engine::rank`] does.
    pub fn rank<T: AsRef<str>>(&self, text: &str, candidates: &[T]) -> Result<Ranking, QueryError> {
        let options = RankOptions::all(self.query);
        let by = (self.scorer, self.info);
        self.engine.rank_by(by, text, &options, |session| session.rank(candidates))?
    }

    /// Does what [`Engine::embed`] does; only an [`Embed`](crate::methods::Embed) has vectors.
    pub fn embed<T: AsRef<str>>(&self, texts: &[T]) -> Result<Embeddings, QueryError> {
        self.engine.embed_by((self.scorer, self.info), texts, &self.query, |_| {})
    }

    /// Does what [`Engine::explain`] does, with this method.
    pub fn explain(&self, a: &str, b: &str) -> Result<Explanation, QueryError> {
        self.engine.explain_by((self.scorer, self.info), (a, b), &self.query)
    }
}
