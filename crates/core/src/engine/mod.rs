//! The engine: one model, every method, and the questions that can be asked of them.
//!
//! Synchronous, shared by `&self`, without logging and without I/O after opening. It turns a text
//! without a known word, an empty or an overlong one into a named case **before** scoring, so
//! methods and kernels cannot fail.

// rustdoc lists the methods of an engine in this order: it is opened, then asked.
mod open;

mod similarity;

pub mod rank;

mod embed;

mod explain;

mod own;

mod answers;
pub mod calibration;
mod error;
pub mod event_rules;
pub mod fuse;
mod opposes;
mod query;
mod related;
mod sentence;
mod served;
mod text_limits;
mod tokens;
mod workspace;

pub use answers::{Counts, Embeddings, Parts, Ranked, Ranking, Reason, Scores, is_vector};
pub use calibration::{Calibration, Calibrations, Cutoff, Least, Probability, least_score};
pub use embed::set_length_1;
pub use error::{Place, QueryError};
pub use event_rules::EventRules;
pub use explain::{ExplainedWord, Explanation, UnknownToken};
pub use opposes::{OpposedWord, Opposition};
pub use own::OwnMethod;
pub use query::{Opposites, Query, RankOptions};
pub use rank::{
    BoostBy, Candidates, Diversify, Duplicate, KeptText, Liked, Likes, Matrix, Page, PageOptions,
    PageResult, PreparedText, ResultReason, Side, Strategy, UnscoredLikes, Weight, WordShare,
};
pub use served::{Missing, Served, auto_method};
pub use similarity::TextPair;
pub use text_limits::TextLimits;

use crate::engine::fuse::{FusedProblem, Fusions};
pub use crate::methods::Measure;
pub use crate::methods::polarity::{OppositionKind, Oppositions};
use crate::methods::{Info, Method, Reads, Scorer, Unavailable};
use crate::model::{Model, Phrase};

/// A model with every method it can serve.
pub struct Engine {
    model: Model,
    scorers: Vec<Result<Scorer, Unavailable>>,
    /// The scorer that knows opposites, without names.
    without_names: Option<Scorer>,
    auto: Method,
    limits: TextLimits,
    calibrations: Calibrations,
    event_rules: EventRules,
    fusions: Fusions,
}

/// # What an engine can do
impl Engine {
    /// The limits for texts.
    pub fn limits(&self) -> &TextLimits {
        &self.limits
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The method that `auto` chooses.
    pub fn auto(&self) -> Method {
        self.auto
    }

    /// The method of that name, alias, or `auto`. A fused method is refused: it only ranks, and is
    /// found by [`Engine::ranker`].
    pub fn method(&self, name: &str) -> Result<Method, QueryError> {
        if let Some(fused) = self.fused(name) {
            let name = fused?.name().to_string();
            return Err(QueryError::Fused { name, problem: FusedProblem::OnlyRanks });
        }
        if Method::is_auto(name) {
            return Ok(self.auto);
        }
        Method::named(name).ok_or_else(|| QueryError::unknown_method(name))
    }

    /// Why a method cannot be used with this model, if it cannot.
    pub fn unavailable(&self, method: Method) -> Option<&Unavailable> {
        self.scorers.get(method as usize).and_then(|scorer| scorer.as_ref().err())
    }

    /// The scorer of a method, if the model can serve it: for callers that look texts up once and
    /// score them often.
    pub fn scorer(&self, method: Method) -> Result<&Scorer, QueryError> {
        match self.scorers.get(method as usize) {
            Some(Ok(scorer)) => Ok(scorer),
            Some(Err(reason)) => {
                Err(QueryError::MethodUnavailable { method: method.name(), reason: reason.clone() })
            }
            None => Err(QueryError::unknown_method(method.name())),
        }
    }

    pub(crate) fn scorer_of(&self, query: &Query) -> Result<&Scorer, QueryError> {
        let counts = query.method.info().ignoring_opposites.is_some();
        if query.opposites == Some(Opposites::Count) && !counts {
            return Err(QueryError::OppositesNotCounted { method: query.method.name() });
        }
        match &self.without_names {
            Some(scorer) if counts && query.opposites == Some(Opposites::WithoutNames) => {
                Ok(scorer)
            }
            _ => self.scorer(query.scored_by()),
        }
    }

    /// The measure used when a query names none.
    pub fn default_measure(&self, method: Method) -> Measure {
        match self.scorer(method) {
            Ok(Scorer::Embed(embedder)) => embedder.measure(),
            _ => Measure::Cosine,
        }
    }

    /// The measure by which a query is answered: the one it names, or the method's own.
    pub fn measure_of(&self, query: &Query) -> Measure {
        query.measure.unwrap_or_else(|| self.default_measure(query.method))
    }

    /// Reads a text into `phrase`, or returns why it cannot be scored. `true` if the text was cut.
    fn read(
        &self,
        phrase: &mut Phrase<'_>,
        text: &str,
        query: &Query,
        place: Place,
    ) -> Result<bool, QueryError> {
        self.begin(phrase, text, query);
        self.finish(phrase, text, query, place)
    }

    /// The part of a text that is read if long texts are cut.
    pub fn cut<'t>(&self, text: &'t str, query: &Query) -> &'t str {
        if query.truncate { self.limits.cut(text) } else { text }
    }

    /// Begins to read a text, before others and then this one are [finished](Self::finish).
    fn begin(&self, phrase: &mut Phrase<'_>, text: &str, query: &Query) {
        let text = self.cut(text, query);
        // A longer text is refused before it is looked at.
        if text.len() <= self.limits.bytes {
            phrase.begin(text, self.limits.tokens);
        }
    }

    /// Finishes a text that was begun, as [`Engine::read`] does.
    fn finish(
        &self,
        phrase: &mut Phrase<'_>,
        text: &str,
        query: &Query,
        place: Place,
    ) -> Result<bool, QueryError> {
        let read = self.cut(text, query);
        self.limits.check_text(read, place)?;
        let most = self.limits.tokens;
        let tokens = phrase.finish();
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
        Ok(cut || read.len() < text.len())
    }

    /// Finishes a text of a list that was begun; a text that cannot be scored is left out unless
    /// the query wants that refused.
    fn finish_item(
        &self,
        phrase: &mut Phrase<'_>,
        text: &str,
        query: &Query,
        place: Place,
    ) -> Result<Item, QueryError> {
        let error = match self.finish(phrase, text, query, place) {
            Ok(cut) => return Ok(Item::Read { cut }),
            Err(error) => error,
        };
        match error.reason().filter(|_| !query.refuse_unscored) {
            Some(reason) => {
                phrase.read("");
                Ok(Item::Left(reason))
            }
            None => Err(error),
        }
    }

    /// Counts of these texts, as far as they are read.
    pub fn counts<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Counts {
        let mut workspace = workspace::Workspace::with_memory(&self.model);
        let (mut phrase, mut counts) = (workspace.phrase(), Counts::default());
        for text in texts {
            phrase.read_up_to(text, self.limits.tokens);
            counts.saw(&phrase);
        }
        workspace.take_back([phrase]);
        counts
    }

    fn read_item(
        &self,
        phrase: &mut Phrase<'_>,
        text: &str,
        query: &Query,
        place: Place,
    ) -> Result<Item, QueryError> {
        self.begin(phrase, text, query);
        self.finish_item(phrase, text, query, place)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    /// The text was read, whole or cut.
    Read { cut: bool },
    /// The text is listed as unscored.
    Left(Reason),
}

impl Item {
    fn is_cut(self) -> bool {
        self == Self::Read { cut: true }
    }

    /// Why it has no score: it was left out, or it is not `scorable`.
    fn reason(self, scorable: bool) -> Option<Reason> {
        match self {
            Self::Left(reason) => Some(reason),
            Self::Read { .. } => (!scorable).then_some(Reason::Unknown),
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
