//! The settings of a question: method, measure, and what happens with unknown and overlong texts.

use crate::choice::choice;
use crate::engine::error::{Place, QueryError};
use crate::engine::scorable;
use crate::methods::{Info, Measure, Method};
use crate::model::Phrase;

/// Whether opposed meaning lowers the score of two texts. Default: as the method does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = OppositesRule))]
#[serde(rename_all = "snake_case")]
pub enum Opposites {
    /// Opposites count: a method that does not count opposites is refused.
    Count,
    /// Opposites count, except that different [names](crate::engine::OppositionKind::Name) alone do not
    /// oppose texts. Answers then do not list different names either.
    WithoutNames,
    /// Opposites do not count: the answer is that of the method without opposites, `coverage-blend`
    /// for `polarity-blend`, and with a `threshold` texts are related by their score alone.
    Ignore,
}

choice!(Opposites { Count = "count", WithoutNames = "without_names", Ignore = "ignore" });

/// A question's settings.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    /// The method.
    pub method: Method,
    /// The measure; none means the method's own.
    pub measure: Option<Measure>,
    /// The effect of opposites on a score; `None` means the method's own.
    pub opposites: Option<Opposites>,
    /// Whether answers say how texts are opposed, where the model knows opposites.
    pub opposes: bool,
    /// Texts whose score reaches this are related; `None` if answers have no verdicts.
    pub threshold: Option<f32>,
    /// Whether a text that cannot be scored (without a known word, empty, or too long) is an error.
    /// Otherwise it is listed, with the reason. The query of a ranking must be neither empty nor too
    /// long in any case.
    pub refuse_unscored: bool,
    /// Whether a text that is too long is cut at the limit that it reaches first, not refused.
    pub truncate: bool,
    /// Whether the share of known words of each text is returned.
    pub coverage: bool,
    /// The least share of known words that a query text must have; a text with a smaller share is treated
    /// as a text without a known word.
    pub min_known: f32,
}

impl Query {
    /// A method with the default settings.
    pub fn new(method: Method) -> Self {
        Self {
            method,
            measure: None,
            opposites: None,
            opposes: false,
            threshold: None,
            refuse_unscored: false,
            truncate: false,
            coverage: false,
            min_known: 0.0,
        }
    }

    /// The method that scores: where opposites are ignored, a method that does not count them.
    pub(super) fn scored_by(&self) -> Method {
        let plain = self.method.info().ignoring_opposites;
        plain.filter(|_| self.opposites == Some(Opposites::Ignore)).unwrap_or(self.method)
    }

    /// Sets how opposites count, and exchanges the method if another scores then, whose name, cost
    /// and thresholds apply.
    pub fn with_opposites(self, opposites: Option<Opposites>) -> Self {
        let query = Self { opposites, ..self };
        Self { method: query.scored_by(), ..query }
    }

    /// Whether candidates can be ranked for this text by a method.
    pub(crate) fn ranks_for(&self, text: &Phrase<'_>, info: &Info) -> bool {
        scorable(text, info) && (self.min_known <= 0.0 || text.known_share() >= self.min_known)
    }

    /// Returns the share of the query's words that are known, if it is requested or less than 1.
    pub(crate) fn told_share(&self, text: &Phrase<'_>) -> Option<f32> {
        Some(text.known_share()).filter(|share| self.coverage || *share < 1.0)
    }

    /// Refuses a text without a known word if the query says so.
    pub(crate) fn accepts_unknown(&self, place: Place) -> Result<(), QueryError> {
        if self.refuse_unscored { Err(QueryError::AllUnknown { place }) } else { Ok(()) }
    }
}

/// Options of a ranking.
#[derive(Debug, Clone, Copy)]
pub struct RankOptions {
    /// Method, measure, and what to do with unknown and overlong texts.
    pub query: Query,
    /// Most results; none for all.
    pub top_k: Option<usize>,
    /// The lowest score of a result; `None` for any.
    pub min_score: Option<f32>,
}

impl RankOptions {
    /// All candidates, best first.
    pub fn all(query: Query) -> Self {
        Self { query, top_k: None, min_score: None }
    }

    /// Whether a score reaches `min_score`.
    pub(crate) fn wants(&self, score: f32) -> bool {
        self.min_score.is_none_or(|least| score >= least)
    }
}
