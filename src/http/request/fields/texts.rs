//! One text or a list of texts.

use std::borrow::Cow;
use std::fmt;

use cognate::engine::TextPair;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{ArrayBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::{List, forms};
use crate::http::settings::Settings;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Texts<'b> {
    One(Text<'b>),
    Many(List<Text<'b>>),
}

impl<'b> Texts<'b> {
    pub(crate) fn into_vec(self) -> Vec<Text<'b>> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(list) => list.items,
        }
    }

    pub(crate) fn length(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(list) => list.length,
        }
    }
}

forms!(Texts<'b>: "a string or a list of strings";
    text(text) => Ok(Texts::One(Text(text)));
    list(list in List<Text<'de>>) => Ok(Texts::Many(list)););

impl PartialSchema for Texts<'_> {
    fn schema() -> RefOr<Schema> {
        let text = || Ref::from_schema_name(Text::name());
        let most = Settings::default().max_texts;
        let list = ArrayBuilder::new().items(text()).min_items(Some(1)).max_items(Some(most));
        OneOfBuilder::new().item(text()).item(list).description(Some("One text or many.")).into()
    }
}

impl ToSchema for Texts<'_> {
    fn name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Text::name().into(), Text::schema()));
    }
}

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
// The next line (U+0085) is a blank to Unicode and to the service, but not to patterns of JSON Schema.
#[schema(value_type = String, min_length = 1, max_length = 8192, pattern = r"[^\s\u0085]")]
#[allow(dead_code)]
pub(crate) struct NonEmptyText(String);

/// A text that must not be empty; what is too long is cut unless the request says otherwise.
#[derive(ToSchema)]
#[schema(value_type = String, min_length = 1, pattern = r"[^\s\u0085]")]
#[allow(dead_code)]
pub(crate) struct CutText(String);

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

/// Two texts: a list of exactly two, or an object with `a` and `b`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair<'b> {
    pub a: Text<'b>,
    pub b: Text<'b>,
    pub named: bool,
}

/// Two texts by name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct NamedPair<'b> {
    a: Text<'b>,
    b: Text<'b>,
}

impl TextPair for Pair<'_> {
    fn texts(&self) -> (&str, &str) {
        (self.a.as_ref(), self.b.as_ref())
    }
}

const PAIR: &str = "a list of two strings or an object with `a` and `b`";

forms!(Pair<'b>: PAIR;
    list(TwoTexts { a, b } in TwoTexts<'de>) => Ok(Pair { a, b, named: false });
    object(NamedPair { a, b } in NamedPair<'de>) => Ok(Pair { a, b, named: true }););

/// A list of two texts. The parser's own tuples report a third item as a syntax error.
pub(crate) struct TwoTexts<'b> {
    pub a: Text<'b>,
    pub b: Text<'b>,
}

impl<'de: 'b, 'b> Deserialize<'de> for TwoTexts<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Both;
        impl<'de> Visitor<'de> for Both {
            type Value = TwoTexts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PAIR)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let a = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let b = list.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
                match list.next_element::<IgnoredAny>()? {
                    None => Ok(TwoTexts { a, b }),
                    Some(_) => Err(A::Error::invalid_length(3, &self)),
                }
            }
        }
        from.deserialize_seq(Both)
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
