//! The engine: one model, every method, and the questions that can be asked of them.
//!
//! Synchronous, shared by `&self`, without logging and without I/O after opening. It turns a text
//! without a known word, an empty or an overlong one into a named case **before** scoring, so
//! methods and kernels cannot fail.

mod answers;
pub mod calibration;
mod error;
mod explain;
mod parts;
mod questions;
mod ranking;
mod workspace;

pub use answers::Embeddings;
pub use answers::Ranked;
pub use answers::Ranking;
pub use answers::Scores;
pub use calibration::Calibration;
pub use calibration::Calibrations;
pub use error::Place;
pub use error::QueryError;
pub use explain::ExplainedWord;
pub use explain::Explanation;
pub use explain::UnknownToken;
pub use parts::Counts;
pub use parts::Parts;
pub use questions::Query;
pub use questions::RankOptions;
pub use questions::TextLimits;
pub use ranking::RankSession;

pub use crate::methods::Measure;

use std::path::Path;

use crate::engine::workspace::Workspace;
use crate::methods::Info;
use crate::methods::Kind;
use crate::methods::Method;
use crate::methods::Reads;
use crate::methods::Scorer;
use crate::methods::Unavailable;
use crate::model::Frequency;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::OpenOptions;
use crate::model::Phrase;

/// A model with every method it can serve.
pub struct Engine {
    model: Model,
    scorers: Vec<Result<Scorer, Unavailable>>,
    auto: Method,
    limits: TextLimits,
    calibrations: Calibrations,
}

impl Engine {
    /// Opens a model file and loads every method.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, ModelError> {
        Self::new(Model::open(path, options)?)
    }

    /// Loads every method for an opened model. A method whose section is missing stays listed, as
    /// unavailable; one whose section is broken is an error.
    pub fn new(model: Model) -> Result<Self, ModelError> {
        let loaded = Method::ALL.iter().map(|method| method.load(&model));
        let scorers = loaded.collect::<Result<Vec<_>, _>>()?;
        let named = model.metadata().get("auto_method").and_then(|name| Method::named(name));
        // It has to answer every kind of question.
        let named = named.filter(|method| method.info().kind == Kind::Similarity);
        let auto = named.unwrap_or(match model.frequency() {
            Frequency::None if model.vocabulary().counts.is_some() => Method::DynamaxSif,
            Frequency::None | Frequency::InNorm => Method::DynamaxJaccard,
        });
        let calibrations = Calibrations::read(&model)?;
        Ok(Self { model, scorers, auto, limits: TextLimits::DEFAULT, calibrations })
    }

    /// The same engine under other limits for texts.
    pub fn with_limits(self, limits: TextLimits) -> Self {
        Self { limits, ..self }
    }

    /// The limits for texts.
    pub fn limits(&self) -> &TextLimits {
        &self.limits
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The method that `auto` stands for.
    pub fn auto(&self) -> Method {
        self.auto
    }

    /// The method that `auto` stands for where vectors are wanted: the model's choice if that has
    /// vectors, else the mean that suits what its vectors' lengths say.
    pub fn auto_embedding(&self) -> Method {
        if self.embeds(self.auto) {
            return self.auto;
        }
        match self.model.frequency() {
            Frequency::None if self.embeds(Method::Sif) => Method::Sif,
            Frequency::None | Frequency::InNorm => Method::AvgCos,
        }
    }

    /// The method of that name, alias, or `auto`.
    pub fn method(&self, name: &str) -> Result<Method, QueryError> {
        if name.trim().eq_ignore_ascii_case("auto") {
            return Ok(self.auto);
        }
        Method::named(name)
            .ok_or_else(|| QueryError::UnknownMethod { nearest: Method::nearest(name) })
    }

    /// Why a method cannot be used with this model, if it cannot.
    pub fn unavailable(&self, method: Method) -> Option<&Unavailable> {
        self.scorers.get(method as usize).and_then(|scorer| scorer.as_ref().err())
    }

    /// The scorer of a method, if the model can serve it.
    fn scorer(&self, method: Method) -> Result<&Scorer, QueryError> {
        match self.scorers.get(method as usize) {
            Some(Ok(scorer)) => Ok(scorer),
            Some(Err(reason)) => {
                Err(QueryError::MethodUnavailable { method: method.name(), reason: reason.clone() })
            }
            None => Err(QueryError::UnknownMethod { nearest: Method::nearest(method.name()) }),
        }
    }

    /// The measure used when a query names none.
    pub fn default_measure(&self, method: Method) -> Measure {
        match self.scorer(method) {
            Ok(Scorer::Embed(embedder)) => embedder.measure(),
            _ => Measure::Cosine,
        }
    }

    /// Whether a method has a vector of one text alone, as far as this model can tell.
    pub fn embeds(&self, method: Method) -> bool {
        matches!(self.scorer(method), Ok(Scorer::Embed(_)))
    }

    /// Dimensions of a method's vectors, if it has them.
    pub fn embedding_dims(&self, method: Method) -> Result<usize, QueryError> {
        match self.scorer(method)? {
            Scorer::Embed(embedder) => Ok(embedder.dims(self.model.vectors().dims())),
            _ => Err(QueryError::CannotEmbed { method: method.name() }),
        }
    }

    /// The vectors of texts.
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: &[T],
        query: &Query,
    ) -> Result<Embeddings, QueryError> {
        let info = query.method.info();
        let scorer = self.scorer(query.method)?;
        let Scorer::Embed(embedder) = scorer else {
            return Err(QueryError::CannotEmbed { method: info.name });
        };
        let mut workspace = Workspace::of(&self.model);
        let mut phrase = workspace.phrase();
        let dims = embedder.dims(self.model.vectors().dims());
        let mut answer = Embeddings { dims, ..Embeddings::default() };
        for (index, text) in texts.iter().enumerate() {
            let truncated = self.read(&mut phrase, text.as_ref(), query, Place::Text(index))?;
            if truncated {
                answer.truncated.push(index);
            }
            answer.counts.saw(&phrase);
            answer.tokens.push(phrase.tokens().len());
            // Of a text that was cut only the tokens that were read can be known.
            answer.known.push(phrase.token_keys().len() - phrase.unknown().len());
            if !scorable(&phrase, info) {
                query.accepts_unknown(Place::Text(index))?;
                answer.vectors.push(None);
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

    /// The scores of pairs of texts.
    pub fn similarity<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: &[(A, B)],
        query: &Query,
    ) -> Result<Scores, QueryError> {
        let info = query.method.info();
        if info.kind == Kind::Ranker {
            return Err(QueryError::OnlyRanks { method: info.name });
        }
        let scorer = self.scorer(query.method)?;
        self.similarity_by(scorer, info, pairs, query)
    }

    /// [`Engine::similarity`] by a scorer that need not be one of the methods, for ablations.
    pub fn similarity_by<A: AsRef<str>, B: AsRef<str>>(
        &self,
        scorer: &Scorer,
        info: &Info,
        pairs: &[(A, B)],
        query: &Query,
    ) -> Result<Scores, QueryError> {
        let measure = self.measure(scorer, info, query)?;
        let mut workspace = Workspace::of(&self.model);
        let mut one = workspace.phrase();
        let mut other = workspace.phrase();
        let mut answer = Scores { measure, ..Scores::default() };
        answer.scores.reserve(pairs.len());
        for (index, (a, b)) in pairs.iter().enumerate() {
            let truncated = self.read(&mut one, a.as_ref(), query, Place::Pair(index, 0))?
                | self.read(&mut other, b.as_ref(), query, Place::Pair(index, 1))?;
            if truncated {
                answer.truncated.push(index);
            }
            answer.counts.saw(&one);
            answer.counts.saw(&other);
            if !scorable(&one, info) {
                query.accepts_unknown(Place::Pair(index, 0))?;
            }
            let known = scorable(&one, info) && scorable(&other, info);
            if !known {
                query.accepts_unknown(Place::Pair(index, 1))?;
                answer.unscored.push(index);
                answer.scores.push(0.0);
                continue;
            }
            let score = scorer.pair(measure, &one, &other, workspace.scratch());
            answer.scores.push(finite(score, info)?);
        }
        workspace.take_back([one, other]);
        Ok(answer)
    }

    /// Reads a text into `phrase`, or says what is wrong with it. `true` if it was cut short.
    fn read(
        &self,
        phrase: &mut Phrase<'_>,
        text: &str,
        query: &Query,
        place: Place,
    ) -> Result<bool, QueryError> {
        self.limits.check_text(text, place)?;
        let most = self.limits.tokens;
        let tokens = phrase.read_up_to(text, most);
        // A token can become several words; kernels are sized for the limit.
        let cut = tokens > most || phrase.words().len() > most;
        if cut && !query.truncate {
            let actual = tokens.max(phrase.words().len());
            return Err(QueryError::TooManyTokens { place, limit: most, actual });
        }
        phrase.cut_words(most);
        let info = query.method.info();
        if info.reads == Reads::Words && !phrase.has_sound_rows() {
            return Err(QueryError::NonFinite { method: info.name });
        }
        Ok(cut)
    }

    fn measure(&self, scorer: &Scorer, info: &Info, query: &Query) -> Result<Measure, QueryError> {
        match (scorer, query.measure) {
            (Scorer::Embed(embedder), None) => Ok(embedder.measure()),
            (_, None) => Ok(Measure::Cosine),
            (Scorer::Embed(_), Some(measure)) => Ok(measure),
            (_, Some(Measure::Cosine)) => Ok(Measure::Cosine),
            (_, Some(measure)) => {
                Err(QueryError::MeasureNotSupported { method: info.name, measure })
            }
        }
    }
}

/// Whether a text has what the method needs.
fn scorable(phrase: &Phrase<'_>, info: &Info) -> bool {
    match info.reads {
        Reads::Words => !phrase.words().is_empty(),
        Reads::Tokens => !phrase.tokens().is_empty(),
    }
}

fn finite(score: f32, info: &Info) -> Result<f32, QueryError> {
    if score.is_finite() { Ok(score) } else { Err(QueryError::NonFinite { method: info.name }) }
}
