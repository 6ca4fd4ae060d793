//! Texts that candidates should be like, each with the weight that it has among them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;
use utoipa::PartialSchema;
use utoipa::ToSchema;
use utoipa::openapi::OneOfBuilder;
use utoipa::openapi::Ref;
use utoipa::openapi::RefOr;
use utoipa::openapi::Schema;

use crate::http::request::fields::NonEmptyText;
use crate::http::request::fields::Text;
use crate::http::request::fields::Weight;

/// A text that candidates should be like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LikedText<'b> {
    /// The text.
    pub text: Text<'b>,
    /// What it weighs; nothing for 1.
    pub weight: Option<Weight>,
    /// Whether it came as an object.
    pub named: bool,
}

/// A text and its weight.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightedText<'b> {
    #[serde(borrow)]
    #[schema(value_type = NonEmptyText)]
    text: Text<'b>,
    /// What its score is multiplied by; 1 where it has none.
    weight: Option<Weight>,
}

impl AsRef<str> for LikedText<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
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
                Ok(LikedText { text: Text(Cow::Borrowed(text)), weight: None, named: false })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let text = Text(Cow::Owned(text.to_owned()));
                Ok(LikedText { text, weight: None, named: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let from = MapAccessDeserializer::new(map);
                let WeightedText { text, weight } = Deserialize::deserialize(from)?;
                Ok(LikedText { text, weight, named: true })
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
