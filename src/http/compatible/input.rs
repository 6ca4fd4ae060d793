//! Texts as other dialects send them: alone or in a list, as strings or as objects with `text`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::http::api::pipeline::Endpoint;
use crate::http::api::question::AnyAsk;
use crate::http::compatible::address::Address;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Result};
use crate::http::request::fields::{List, Text, Texts, forms, within};

#[derive(Debug)]
pub(super) enum Item<'b> {
    Text(Text<'b>),
    /// Token ids of another model's tokeniser; this server cannot read them.
    TokenIds,
}

/// An object that holds a text, and what is of no use here.
#[derive(Deserialize)]
struct Object<'b> {
    #[serde(borrow)]
    text: Text<'b>,
}

forms!(Item<'b>: "a string or an object with `text`";
    text(text) => Ok(Item::Text(Text(text)));
    object(Object { text } in Object<'de>) => Ok(Item::Text(text));
    whole(_) => Ok(Item::TokenIds);
    list(_ in List<u64>) => Ok(Item::TokenIds););

/// A text that is not a list of token ids.
#[derive(Debug)]
pub(super) struct Document<'b>(pub Text<'b>);

impl<'de: 'b, 'b> Deserialize<'de> for Document<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Item::deserialize(from)? {
            Item::Text(text) => Ok(Self(text)),
            Item::TokenIds => {
                Err(D::Error::invalid_type(Unexpected::Other("token ids"), &"a string"))
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum Input<'b> {
    One(Item<'b>),
    Many(List<Item<'b>>),
}

forms!(Input<'b>: "a string or a list of strings";
    text(text) => Ok(Input::One(Item::Text(Text(text))));
    object(Object { text } in Object<'de>) => Ok(Input::One(Item::Text(text)));
    list(list in List<Item<'de>>) => Ok(Input::Many(list)););

impl<'b> Input<'b> {
    pub(super) fn texts(self, pointer: &'static str) -> Result<Texts<'b>> {
        let text = |item| match item {
            Item::Text(text) => Ok(text),
            Item::TokenIds => {
                let detail = "token ids belong to another model's tokeniser; send texts (with \
                              LangChain's OpenAIEmbeddings: check_embedding_ctx_length=False)";
                Err(ApiError::at(Code::InvalidField, pointer, detail))
            }
        };
        match self {
            Self::One(item) => text(item).map(Texts::One),
            Self::Many(List { items, length }) => {
                let items = items.into_iter().map(text).collect::<Result<_, _>>()?;
                Ok(Texts::Many(List { items, length }))
            }
        }
    }
}

/// A switch for cutting long texts, which some clients set to a word that names the end to cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Truncate(pub bool);

forms!(Truncate: "true, false or a word";
    truth(truncate) => Ok(Truncate(truncate));
    text(word) => Ok(Truncate(!word.eq_ignore_ascii_case("none"))););

impl PartialSchema for Truncate {
    fn schema() -> RefOr<Schema> {
        let kind = |kind| ObjectBuilder::new().schema_type(kind);
        let words = "True or false, or a word that names the end to cut; `none` cuts nothing.";
        let either = OneOfBuilder::new().item(kind(Type::Boolean)).item(kind(Type::String));
        either.description(Some(words)).into()
    }
}

impl ToSchema for Truncate {}

/// A whole number, 0 included.
// Clients that want all send the largest number that they have.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u64, maximum = 9223372036854775807_i64)]
pub(super) struct Whole(pub usize);

const WHOLE: &str = "a whole number";

forms!(Whole: WHOLE;
    whole(number) => within(number, 0..=isize::MAX as usize, &WHOLE).map(Whole););

/// A value that must be an object. The parser would also accept a list of its fields' values.
#[derive(Debug)]
pub(super) struct OnlyObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OnlyObject<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = OnlyObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(OnlyObject)
            }
        }
        from.deserialize_any(Map(PhantomData))
    }
}

/// The field that no native body has.
const FIELD: &str = "inputs";

pub(super) struct Either<N, O>(PhantomData<(N, O)>);

impl<N, O> Endpoint for Either<N, O>
where
    N: Endpoint<Address = ()>,
    O: Endpoint<Address = Address>,
{
    type Address = Address;

    /// The native question is tried first, so that distinguishing them costs nothing; the other
    /// dialect's field is unknown to it and ends the attempt there.
    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyAsk<'b>> {
        match N::read(body, &()) {
            Err(_) if has_field(body, FIELD) => O::read(body, address),
            read => read.map_err(|error| error.in_dialect(Dialect::Native)),
        }
    }
}

/// Whether an object has this field. Parsing stops where it is found.
pub(super) fn has_field(body: &[u8], field: &str) -> bool {
    struct Look<'f>(&'f str, &'f mut bool);
    impl<'de> Visitor<'de> for Look<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                if key == self.0 {
                    *self.1 = true;
                    return Err(A::Error::custom("found"));
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut found = false;
    // The reader of the body checks the rest.
    let _ = serde_json::Deserializer::from_slice(body).deserialize_map(Look(field, &mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_at_the_top_alone() {
        let cases = [
            (r#"{"inputs":"#, true),
            (r#"{"normalize":true,"inputs":["a"]}"#, true),
            (r#"{"in\u0070uts":1}"#, true),
            (r#"{"texts":[{"inputs":1}]}"#, false),
            (r#"["inputs"]"#, false),
            ("{", false),
        ];
        for (body, found) in cases {
            assert_eq!(has_field(body.as_bytes(), "inputs"), found, "{body}");
        }
    }
}
