//! What is ranked: texts, with or without a name of their own.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;
use utoipa::ToSchema;

use crate::http::request::fields::Text;
use crate::http::request::fields::number::OUT_OF_RANGE;
use crate::http::request::fields::number::misfit;
use crate::http::request::fields::number::whole;

/// A text to be ranked, with or without a name of its own.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(untagged)]
pub(crate) enum Candidate<'b> {
    /// A text.
    Text(Text<'b>),
    /// A text and its name.
    Named(NamedCandidate<'b>),
}

/// A text and its name.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedCandidate<'b> {
    #[serde(borrow)]
    id: Option<CandidateId<'b>>,
    #[serde(borrow)]
    text: Text<'b>,
}

impl<'b> Candidate<'b> {
    /// Its name, if it came with one.
    pub(crate) fn id(&self) -> Option<&CandidateId<'b>> {
        match self {
            Self::Text(_) => None,
            Self::Named(named) => named.id.as_ref(),
        }
    }
}

impl AsRef<str> for Candidate<'_> {
    fn as_ref(&self) -> &str {
        match self {
            Self::Text(text) => text.as_ref(),
            Self::Named(named) => named.text.as_ref(),
        }
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for Candidate<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Candidate<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `id` and `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Candidate::Text(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Candidate::Text(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Candidate::Named)
            }
        }
        from.deserialize_any(Either)
    }
}

/// A candidate's own name, which is given back as it came.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum CandidateId<'b> {
    /// A string.
    Text(Cow<'b, str>),
    /// A whole number.
    Number(i64),
}

impl<'de: 'b, 'b> Deserialize<'de> for CandidateId<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = CandidateId<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(CandidateId::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(CandidateId::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(CandidateId::Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                let number = i64::try_from(number);
                number.map(CandidateId::Number).map_err(|_| E::custom(OUT_OF_RANGE))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                whole(number).map(CandidateId::Number).ok_or_else(|| misfit(number, &self))
            }
        }
        from.deserialize_any(Either)
    }
}
