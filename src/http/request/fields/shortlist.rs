//! How many items of a collection are scored.

use std::borrow::Cow;
use std::fmt;

use cognate_collections::LONGEST_SHORTLIST;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::number::WholeVisitor;

/// The word that asks for all of them.
const ALL: &str = "all";
/// What may be asked for, in words.
const EXPECTED: &str = "\"all\" or a whole number from 1 to 100000";

/// How many items of a collection are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortlistLength {
    All,
    /// So many for each text that is asked about.
    Items(usize),
}

const NUMBER: WholeVisitor = WholeVisitor { least: 1, most: LONGEST_SHORTLIST, expected: EXPECTED };

impl ShortlistLength {
    /// A length as it is written on the command line.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let fits = |number: &usize| (1..=LONGEST_SHORTLIST).contains(number);
        match written {
            ALL => Ok(Self::All),
            _ => {
                let number = written.parse().ok().filter(fits);
                number
                    .map(Self::Items)
                    .ok_or_else(|| format!("expected {}", EXPECTED.replace('"', "`")))
            }
        }
    }

    /// The length, where not all are scored.
    pub(crate) fn length(self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::Items(length) => Some(length),
        }
    }
}

impl From<Option<usize>> for ShortlistLength {
    fn from(length: Option<usize>) -> Self {
        length.map_or(Self::All, Self::Items)
    }
}

impl<'de> Deserialize<'de> for ShortlistLength {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = ShortlistLength;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<ShortlistLength, E> {
                NUMBER.visit_u64(number).map(ShortlistLength::Items)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<ShortlistLength, E> {
                NUMBER.visit_i64(number).map(ShortlistLength::Items)
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<ShortlistLength, E> {
                NUMBER.visit_f64(number).map(ShortlistLength::Items)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ShortlistLength, E> {
                match text {
                    ALL => Ok(ShortlistLength::All),
                    _ => Err(E::invalid_value(Unexpected::Other("another string"), &self)),
                }
            }
        }
        from.deserialize_any(Either)
    }
}

impl PartialSchema for ShortlistLength {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(1))
            .maximum(Some(LONGEST_SHORTLIST))
            .description(Some("So many for each text that is asked about."));
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some([ALL]))
            .description(Some("Each of them."));
        OneOfBuilder::new()
            .item(number)
            .item(word)
            .description(Some("How many items of a collection are scored."))
            .into()
    }
}

impl ToSchema for ShortlistLength {
    fn name() -> Cow<'static, str> {
        "ShortlistLength".into()
    }
}
