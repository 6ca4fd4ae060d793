//! How a question is asked: method, measure, what to do with unknown and overlong texts.

use crate::engine::error::Place;
use crate::engine::error::QueryError;
use crate::methods::Measure;
use crate::methods::Method;

/// A question's settings.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    /// The method.
    pub method: Method,
    /// The measure; none means the method's own.
    pub measure: Option<Measure>,
    /// Whether a text without a known word is an error.
    pub refuse_unknown: bool,
    /// Whether a text with too many tokens is cut, not refused.
    pub truncate: bool,
}

impl Query {
    /// A method with the usual settings.
    pub fn new(method: Method) -> Self {
        Self { method, measure: None, refuse_unknown: false, truncate: false }
    }

    /// Refuses a text without a known word, if that is wanted.
    pub(crate) fn accepts_unknown(&self, place: Place) -> Result<(), QueryError> {
        if self.refuse_unknown { Err(QueryError::AllUnknown { place }) } else { Ok(()) }
    }
}

/// How a ranking is asked for.
#[derive(Debug, Clone, Copy)]
pub struct RankOptions {
    /// Method, measure, and what to do with unknown and overlong texts.
    pub query: Query,
    /// Most results wanted; none means all.
    pub top_k: Option<usize>,
    /// The least score wanted; none means any.
    pub min_score: Option<f32>,
}

impl RankOptions {
    /// Everything, in order.
    pub fn all(query: Query) -> Self {
        Self { query, top_k: None, min_score: None }
    }

    /// Whether a score is high enough to be wanted.
    pub(crate) fn wants(&self, score: f32) -> bool {
        self.min_score.is_none_or(|least| score >= least)
    }
}

/// How long texts may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// Most bytes, looked at before anything else.
    pub bytes: usize,
    /// Most characters.
    pub chars: usize,
    /// Most tokens, and most words these become.
    pub tokens: usize,
}

impl TextLimits {
    /// The limits in force unless others are set.
    pub const DEFAULT: Self = Self { bytes: 32 << 10, chars: 8192, tokens: 512 };

    /// Refuses an empty or overlong text.
    pub(crate) fn check_text(&self, text: &str, place: Place) -> Result<(), QueryError> {
        if text.len() > self.bytes {
            let (limit, actual) = (self.bytes, text.len());
            return Err(QueryError::TextTooLong { place, unit: "bytes", limit, actual });
        }
        // Only a text of more bytes than the limit can have more characters.
        if text.len() > self.chars {
            let (limit, actual) = (self.chars, text.chars().count());
            if actual > limit {
                return Err(QueryError::TextTooLong { place, unit: "characters", limit, actual });
            }
        }
        if text.chars().all(is_space) {
            return Err(QueryError::EmptyText { place });
        }
        Ok(())
    }
}

/// White space as the contract has it: Unicode's, and the four separators that Python counts too.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}
