//! How long texts may be.

use crate::engine::{Engine, Place, Query, QueryError, scorable};
use crate::methods::{Method, Scorer};
use crate::model::Phrase;

/// Limits of the length of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// Most bytes, checked before anything else.
    pub bytes: usize,
    /// Most characters.
    pub chars: usize,
    /// Maximum number of tokens, and maximum number of the words that tokens become.
    pub tokens: usize,
}

impl TextLimits {
    /// The default limits.
    pub const DEFAULT: Self = Self { bytes: 32 << 10, chars: 8192, tokens: 512 };

    /// The beginning of a text that has no more bytes and characters than these.
    pub(super) fn cut<'t>(&self, text: &'t str) -> &'t str {
        if text.len() <= self.bytes.min(self.chars) {
            return text;
        }
        let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
        let end = ends.take(self.chars).take_while(|&end| end <= self.bytes).last();
        text.get(..end.unwrap_or(0)).unwrap_or(text)
    }

    /// Refuses an empty or overlong text.
    pub fn check_text(&self, text: &str, place: Place) -> Result<(), QueryError> {
        if text.len() > self.bytes {
            let (limit, actual) = (self.bytes, text.len());
            return Err(QueryError::TextTooLong { place, unit: "bytes", limit, actual });
        }
        // Only a text with more bytes than the limit can have more characters.
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

fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

impl Engine {
    /// Whether a ranking by this method may be computed in parts: not where a candidate's score
    /// depends on the other candidates.
    pub fn ranks_in_parts(&self, method: Method) -> bool {
        !matches!(self.scorer(method), Ok(Scorer::RankList(_)))
    }

    /// Whether a method supports the query.
    pub fn check(&self, query: &Query) -> Result<(), QueryError> {
        let scorer = self.scorer_of(query)?;
        self.measure(scorer, query.method.info(), query).map(|_| ())
    }

    /// Whether a method can explain the score of two texts: a method that ranks can, unless its
    /// scores depend on the whole list.
    pub fn check_explain(&self, query: &Query) -> Result<(), QueryError> {
        match self.scorer_of(query)? {
            Scorer::RankList(_) => Err(QueryError::OnlyRanks { method: query.method.name() }),
            Scorer::Embed(_) | Scorer::Compare(_) => self.check(query),
        }
    }

    /// Checks a text as scoring would: the error, or the number of tokens.
    pub fn check_text(&self, text: &str, query: &Query, place: Place) -> Result<usize, QueryError> {
        let mut phrase = Phrase::new(&self.model);
        self.read(&mut phrase, text, query, place)?;
        if !scorable(&phrase, query.method.info()) {
            query.accepts_unknown(place)?;
        }
        Ok(phrase.tokens_read())
    }
}
