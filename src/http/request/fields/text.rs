//! Strings, borrowed from the body where they stand there as they are.

use std::borrow::Cow;

use serde::Deserialize;
use utoipa::ToSchema;

/// A text: one that is empty, or has more than 8192 characters (setting `text_chars`) or 512 tokens
/// (setting `tokens_per_text`), cannot be scored and is listed under `unscored`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub(crate) struct Text<'b>(#[serde(borrow)] pub Cow<'b, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// What the document says of a text that must not be empty: at most 8192 characters (setting
/// `text_chars`) and 512 tokens (setting `tokens_per_text`).
#[derive(ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 8192, pattern = r"\S")]
#[allow(dead_code)]
pub(crate) struct NonEmptyText(String);

/// A model's name; without one the first is used.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub(crate) struct ModelName<'b>(#[serde(borrow)] pub Cow<'b, str>);

impl AsRef<str> for ModelName<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
