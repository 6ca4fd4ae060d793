//! Two texts, as a list or by name.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{ArrayBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::Text;

/// Two texts: a list of exactly two, or an object with `a` and `b`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair<'b> {
    pub a: Text<'b>,
    pub b: Text<'b>,
    /// Whether they came by name.
    pub named: bool,
}

/// Two texts by name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedPair<'b> {
    #[serde(borrow)]
    a: Text<'b>,
    #[serde(borrow)]
    b: Text<'b>,
}

impl<'de: 'b, 'b> Deserialize<'de> for Pair<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PairVisitor)
    }
}

/// Reads a [`Pair`]. The parser's own tuples take a third item for a fault of the JSON.
pub(crate) struct PairVisitor;

impl<'de> Visitor<'de> for PairVisitor {
    type Value = Pair<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of two strings or an object with `a` and `b`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let a = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let b = list.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Pair { a, b, named: false }),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let NamedPair { a, b } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Pair { a, b, named: true })
    }
}

impl PartialSchema for Pair<'_> {
    fn schema() -> RefOr<Schema> {
        let list = ArrayBuilder::new()
            .items(Ref::from_schema_name(Text::name()))
            .min_items(Some(2))
            .max_items(Some(2))
            .description(Some("Two texts."));
        OneOfBuilder::new()
            .item(list)
            .item(Ref::from_schema_name(NamedPair::name()))
            .description(Some("Two texts, as a list or by name."))
            .into()
    }
}

impl ToSchema for Pair<'_> {
    fn name() -> Cow<'static, str> {
        "Pair".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Text::name().into(), Text::schema()));
        schemas.push((NamedPair::name().into(), NamedPair::schema()));
    }
}
