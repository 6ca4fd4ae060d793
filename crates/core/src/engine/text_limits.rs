//! How long texts may be.

use crate::engine::error::{Place, QueryError};

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
    pub fn check_text(&self, text: &str, place: Place) -> Result<(), QueryError> {
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
