//! How many items of a collection are scored.

use std::borrow::Cow;

use cognate_collections::LONGEST_SHORTLIST;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::{forms, only, within};

const ALL: &str = "all";
const EXPECTED: &str = "\"all\" or a whole number from 1 to 100000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortlistLength {
    All,
    Items(usize),
}

impl ShortlistLength {
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

forms!(ShortlistLength: EXPECTED;
    whole(number) => {
        within(number, 1..=LONGEST_SHORTLIST, &EXPECTED).map(ShortlistLength::Items)
    };
    text(word) => only(&word, ALL, &EXPECTED).map(|()| ShortlistLength::All););

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
