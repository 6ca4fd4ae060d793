//! Texts as other dialects send them: alone or in a list, as strings or as objects with `text`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::http::error::{ApiError, Code};
use crate::http::request::fields::{List, ListVisitor, Text, Texts, WholeVisitor};

#[derive(Debug)]
pub(super) enum Item<'b> {
    Text(Text<'b>),
    /// What a tokeniser made of one, which says nothing to other models.
    TokenIds,
}

/// An object that holds a text, and what is of no use here.
#[derive(Deserialize)]
struct Object<'b> {
    #[serde(borrow)]
    text: Text<'b>,
}

impl<'de: 'b, 'b> Deserialize<'de> for Item<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Item<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Item::Text(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Item::Text(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let Object { text } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Item::Text(text))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Item::TokenIds)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<u64>()?.is_some() {}
                Ok(Item::TokenIds)
            }
        }
        from.deserialize_any(Either)
    }
}

/// A text that is no list of token ids.
#[derive(Debug)]
pub(super) struct Document<'b>(pub Text<'b>);

impl<'de: 'b, 'b> Deserialize<'de> for Document<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Item::deserialize(from)? {
            Item::Text(text) => Ok(Self(text)),
            Item::TokenIds => Err(D::Error::custom("a number, expected a string")),
        }
    }
}

/// One text or many.
#[derive(Debug)]
pub(super) enum Input<'b> {
    One(Item<'b>),
    Many(List<Item<'b>>),
}

impl<'de: 'b, 'b> Deserialize<'de> for Input<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Input<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Input::One(Item::Text(Text(Cow::Borrowed(text)))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Input::One(Item::Text(Text(Cow::Owned(text.to_owned())))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let Object { text } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Input::One(Item::Text(text)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                ListVisitor(PhantomData).visit_seq(list).map(Input::Many)
            }
        }
        from.deserialize_any(Either)
    }
}

impl<'b> Input<'b> {
    /// The texts, which stand at `pointer`.
    pub(super) fn texts(self, pointer: &str) -> Result<Texts<'b>, ApiError> {
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

/// A switch for cutting long texts, which some clients set with a word that says at which end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Truncate(pub bool);

impl<'de> Deserialize<'de> for Truncate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Truncate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a word")
            }

            fn visit_bool<E: Error>(self, truncate: bool) -> Result<Truncate, E> {
                Ok(Truncate(truncate))
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Truncate, E> {
                Ok(Truncate(!word.eq_ignore_ascii_case("none")))
            }
        }
        from.deserialize_any(Either)
    }
}

impl PartialSchema for Truncate {
    fn schema() -> RefOr<Schema> {
        let kind = |kind| ObjectBuilder::new().schema_type(kind);
        OneOfBuilder::new().item(kind(Type::Boolean)).item(kind(Type::String)).into()
    }
}

impl ToSchema for Truncate {}

/// A whole number, 0 included.
// Clients that want all send the largest number that they have.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u64, maximum = 9223372036854775807_i64)]
pub(super) struct Whole(pub usize);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let any = WholeVisitor { least: 0, most: isize::MAX as usize, expected: "a whole number" };
        from.deserialize_any(any).map(Self)
    }
}

/// What must be an object. The parser would also take a list of its fields' values.
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

/// A field that says something even if it is null.
pub(super) fn given<'de, T, D>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(from).map(Some)
}
