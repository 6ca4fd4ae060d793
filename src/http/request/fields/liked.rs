//! Texts that candidates should be like, each with its weight.

use std::borrow::Cow;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::http::request::fields::{CandidateId, NonEmptyText, Text, Weight, described, forms};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LikedText<'b> {
    pub text: Text<'b>,
    /// Its weight; 1 if none.
    pub weight: Option<Weight>,
    pub named: bool,
    /// The id of an item of a collection, instead of a text.
    pub id: Option<CandidateId<'b>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DislikedText<'b>(pub LikedText<'b>);

/// A text and its weight.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct WeightedText<'b> {
    /// The text. Give either this or `id`.
    #[schema(value_type = Option<NonEmptyText>)]
    text: Option<Text<'b>>,
    /// An item of the collection that is ranked, whose text it is; it is no result itself.
    id: Option<CandidateId<'b>>,
    /// The factor of the score; default: 1.
    weight: Option<Weight>,
}

impl AsRef<str> for LikedText<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

impl<'b> LikedText<'b> {
    pub(crate) fn new(text: Text<'b>) -> Self {
        Self { text, weight: None, named: false, id: None }
    }
}

impl AsRef<str> for DislikedText<'_> {
    fn as_ref(&self) -> &str {
        self.0.as_ref()
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for DislikedText<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let liked = LikedText::deserialize(from)?;
        match liked.weight {
            None => Ok(Self(liked)),
            Some(_) => Err(D::Error::unknown_field("weight", &["text", "id"])),
        }
    }
}

impl<'b> WeightedText<'b> {
    fn into_liked<E: Error>(self) -> Result<LikedText<'b>, E> {
        let Self { text, id, weight } = self;
        let text = match (text, &id) {
            (Some(text), None) => text,
            (None, Some(_)) => Text(Cow::Borrowed("")),
            (None, None) => return Err(E::missing_field("text")),
            (Some(_), Some(_)) => {
                let both = Unexpected::Other("both");
                return Err(E::invalid_value(both, &"either `text` or `id`"));
            }
        };
        Ok(LikedText { text, weight, named: true, id })
    }
}

forms!(LikedText<'b>: "a string or an object with `text`";
    text(text) => Ok(LikedText::new(Text(text)));
    object(fields in WeightedText<'de>) => fields.into_liked(););

described!(LikedText<'_> as one of NonEmptyText, WeightedText<'_>;
    "A text, with or without a weight.");

/// A text, or an item of the collection that is ranked.
#[derive(ToSchema)]
#[allow(dead_code)]
pub(crate) struct NamedText<'b> {
    /// The text. Give either this or `id`.
    #[schema(value_type = Option<NonEmptyText>)]
    text: Option<Text<'b>>,
    /// An item of the collection that is ranked, whose text it is; it is no result itself.
    id: Option<CandidateId<'b>>,
}

described!(DislikedText<'_> as one of NonEmptyText, NamedText<'_>;
    "A text, or an item of the collection that is ranked.");
