//! What is ranked: texts, with or without a name of their own and what a caller hangs on them.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::request::fields::number::{misfit, whole};
use crate::http::request::fields::{CallersData, CallersScores, Score, Text};

/// A text to be ranked, with or without a name of its own.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(untagged)]
pub(crate) enum Candidate<'b> {
    /// A text.
    Text(Text<'b>),
    /// A text and what came with it.
    Named(NamedCandidate<'b>),
}

/// A text and what came with it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedCandidate<'b> {
    id: Option<CandidateId<'b>>,
    text: Text<'b>,
    /// Few candidates have any of it, so it takes no room in those that do not.
    more: Option<Box<More<'b>>>,
}

/// What a candidate may have beside its name and its text.
#[derive(Debug, Clone, Default, PartialEq)]
struct More<'b> {
    boost: Option<f32>,
    data: Option<CallersData<'b>>,
    scores: Option<CallersScores<'b>>,
}

/// A text and what comes with it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CandidateFields<'b> {
    #[serde(borrow)]
    id: Option<CandidateId<'b>>,
    #[serde(borrow)]
    text: Text<'b>,
    /// Added to the score, or multiplied by it where `boost_by` says so, then from 0.
    boost: Option<Score>,
    #[serde(borrow)]
    data: Option<CallersData<'b>>,
    #[serde(borrow)]
    scores: Option<CallersScores<'b>>,
}

impl PartialSchema for NamedCandidate<'_> {
    fn schema() -> RefOr<Schema> {
        CandidateFields::schema()
    }
}

impl ToSchema for NamedCandidate<'_> {
    fn name() -> Cow<'static, str> {
        "NamedCandidate".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        CandidateFields::schemas(schemas);
    }
}

impl<'b> From<CandidateFields<'b>> for NamedCandidate<'b> {
    fn from(fields: CandidateFields<'b>) -> Self {
        let CandidateFields { id, text, boost, data, scores } = fields;
        let more = More { boost: boost.map(|Score(boost)| boost as f32), data, scores };
        Self { id, text, more: (more != More::default()).then(|| Box::new(more)) }
    }
}

impl<'b> Candidate<'b> {
    /// An item that was stored, with its name and what was hung on it.
    pub(crate) fn stored(id: &'b str, text: &'b str, data: Option<&'b RawValue>) -> Self {
        let more = data.map(|data| {
            Box::new(More { data: Some(CallersData::stored(data)), ..More::default() })
        });
        let id = Some(CandidateId::Text(Cow::Borrowed(id)));
        Self::Named(NamedCandidate { id, text: Text(Cow::Borrowed(text)), more })
    }

    /// Its name, if it came with one.
    pub(crate) fn id(&self) -> Option<&CandidateId<'b>> {
        match self {
            Self::Text(_) => None,
            Self::Named(named) => named.id.as_ref(),
        }
    }

    fn more(&self) -> Option<&More<'b>> {
        match self {
            Self::Text(_) => None,
            Self::Named(named) => named.more.as_deref(),
        }
    }

    /// What its score is changed by.
    pub(crate) fn boost(&self) -> Option<f32> {
        self.more()?.boost
    }

    /// What comes back with it.
    pub(crate) fn data(&self) -> Option<&CallersData<'b>> {
        self.more()?.data.as_ref()
    }

    /// Scores that the caller has already.
    pub(crate) fn scores(&self) -> Option<&CallersScores<'b>> {
        self.more()?.scores.as_ref()
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
                f.write_str("a string or an object with `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Candidate::Text(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Candidate::Text(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let fields = CandidateFields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Candidate::Named(fields.into()))
            }
        }
        from.deserialize_any(Either)
    }
}

/// A candidate's own name, which is given back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum CandidateId<'b> {
    /// A string.
    Text(Cow<'b, str>),
    /// A whole number.
    Number(#[schema(inline)] WholeNumber),
}

impl CandidateId<'_> {
    /// The name as items of collections have it: a number by its digits.
    pub(crate) fn digits(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(WholeNumber(number)) => number.to_string().into(),
        }
    }

    /// The same name, which borrows nothing.
    pub(crate) fn into_owned(self) -> CandidateId<'static> {
        match self {
            Self::Text(text) => CandidateId::Text(Cow::Owned(text.into_owned())),
            Self::Number(number) => CandidateId::Number(number),
        }
    }
}

/// A whole number of 64 bits, with or without a sign.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = i64)]
pub(crate) struct WholeNumber(Number);

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
                Ok(CandidateId::Number(WholeNumber(number.into())))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(CandidateId::Number(WholeNumber(number.into())))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                let whole = whole(number).ok_or_else(|| misfit(number, &self))?;
                self.visit_i64(whole)
            }
        }
        from.deserialize_any(Either)
    }
}
