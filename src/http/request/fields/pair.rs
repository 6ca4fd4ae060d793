//! Two texts as a list.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error;
use serde::de::IgnoredAny;
use serde::de::SeqAccess;
use serde::de::Visitor;
use utoipa::PartialSchema;
use utoipa::ToSchema;
use utoipa::openapi::ArrayBuilder;
use utoipa::openapi::Ref;
use utoipa::openapi::RefOr;
use utoipa::openapi::Schema;

use crate::http::request::fields::Text;

/// A list of exactly two texts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair<'b>(pub Text<'b>, pub Text<'b>);

impl<'de: 'b, 'b> Deserialize<'de> for Pair<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(PairVisitor)
    }
}

/// Reads a [`Pair`]. The parser's own tuples take a third item for a fault of the JSON.
pub(crate) struct PairVisitor;

impl<'de> Visitor<'de> for PairVisitor {
    type Value = Pair<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of two strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let a = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let b = list.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Pair(a, b)),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }
}

impl PartialSchema for Pair<'_> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(Ref::from_schema_name(Text::name()))
            .min_items(Some(2))
            .max_items(Some(2))
            .description(Some("Two texts."))
            .into()
    }
}

impl ToSchema for Pair<'_> {
    fn name() -> Cow<'static, str> {
        "Pair".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Text::name().into(), Text::schema()));
    }
}
