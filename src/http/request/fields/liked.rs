//! Texts that candidates should be like, each with the weight that it has among them.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::{CandidateId, NonEmptyText, Text, Weight};

/// A text that candidates should be like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LikedText<'b> {
    pub text: Text<'b>,
    /// What it weighs; nothing for 1.
    pub weight: Option<Weight>,
    /// Whether it came as an object.
    pub named: bool,
    /// The item of a collection whose text it is, in the place of a text.
    pub id: Option<CandidateId<'b>>,
}

/// A text that candidates should not be like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DislikedText<'b>(pub LikedText<'b>);

/// A text and its weight.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightedText<'b> {
    /// The text. Give either this or `id`.
    #[serde(borrow)]
    #[schema(value_type = Option<NonEmptyText>)]
    text: Option<Text<'b>>,
    /// An item of the collection that is ranked, whose text it is; it is no result itself.
    #[serde(borrow)]
    id: Option<CandidateId<'b>>,
    /// What its score is multiplied by; 1 where it has none.
    weight: Option<Weight>,
}

impl AsRef<str> for LikedText<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

impl<'b> LikedText<'b> {
    pub(crate) fn of(text: Text<'b>) -> Self {
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

impl<'de: 'b, 'b> Deserialize<'de> for LikedText<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = LikedText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(LikedText::of(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(LikedText::of(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let from = MapAccessDeserializer::new(map);
                let WeightedText { text, id, weight } = Deserialize::deserialize(from)?;
                let text = match (text, &id) {
                    (Some(text), None) => text,
                    (None, Some(_)) => Text(Cow::Borrowed("")),
                    (None, None) => return Err(A::Error::missing_field("text")),
                    (Some(_), Some(_)) => {
                        let one = Unexpected::Other("both");
                        return Err(A::Error::invalid_value(one, &"either `text` or `id`"));
                    }
                };
                Ok(LikedText { text, weight, named: true, id })
            }
        }
        from.deserialize_any(Either)
    }
}

impl PartialSchema for LikedText<'_> {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name(NonEmptyText::name()))
            .item(Ref::from_schema_name(WeightedText::name()))
            .description(Some("A text, with or without a weight."))
            .into()
    }
}

impl ToSchema for LikedText<'_> {
    fn name() -> Cow<'static, str> {
        "LikedText".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NonEmptyText::name().into(), NonEmptyText::schema()));
        schemas.push((WeightedText::name().into(), WeightedText::schema()));
        WeightedText::schemas(schemas);
    }
}

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

impl PartialSchema for DislikedText<'_> {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name(NonEmptyText::name()))
            .item(Ref::from_schema_name(NamedText::name()))
            .description(Some("A text, or an item of the collection that is ranked."))
            .into()
    }
}

impl ToSchema for DislikedText<'_> {
    fn name() -> Cow<'static, str> {
        "DislikedText".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NonEmptyText::name().into(), NonEmptyText::schema()));
        schemas.push((NamedText::name().into(), NamedText::schema()));
        NamedText::schemas(schemas);
    }
}
