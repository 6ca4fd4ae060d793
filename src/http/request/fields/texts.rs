//! One text or a list of texts.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::{fmt, slice};

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{ArrayBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::list::ListVisitor;
use crate::http::request::fields::{List, Text};
use crate::http::settings::Settings;

/// One text or many.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Texts<'b> {
    One(Text<'b>),
    Many(List<Text<'b>>),
}

impl<'b> Texts<'b> {
    /// The texts that are kept.
    pub(crate) fn items(&self) -> &[Text<'b>] {
        match self {
            Self::One(text) => slice::from_ref(text),
            Self::Many(list) => &list.items,
        }
    }

    /// How many there were.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(list) => list.length,
        }
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for Texts<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Texts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Texts::One(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Texts::One(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                ListVisitor(PhantomData).visit_seq(list).map(Texts::Many)
            }
        }
        from.deserialize_any(Either)
    }
}

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
