//! Candidates: texts with an optional id and the caller's data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use cognate_collections::Readable;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::request::fields::{Score, Text, described, forms};

/// A text to be ranked, with or without a name of its own.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(untagged)]
pub(crate) enum Candidate<'b> {
    /// A text.
    Text(Text<'b>),
    /// A text and what came with it.
    Named(NamedCandidate<'b>),
}

/// A text with its optional fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedCandidate<'b> {
    id: Option<CandidateId<'b>>,
    text: Text<'b>,
    /// Few candidates have any of these, so others should not pay for their room.
    more: Option<Box<More<'b>>>,
}

/// Optional fields of a candidate besides its name and its text.
#[derive(Debug, Clone, Default, PartialEq)]
struct More<'b> {
    boost: Option<f32>,
    data: Option<CallersData<'b>>,
    scores: Option<CallersScores<'b>>,
}

/// A text with its id, data and other fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
struct CandidateFields<'b> {
    id: Option<CandidateId<'b>>,
    text: Text<'b>,
    /// Added to the score, or multiplied by it where `boost_by` says so, then from 0.
    boost: Option<Score>,
    data: Option<CallersData<'b>>,
    scores: Option<CallersScores<'b>>,
}

described!(NamedCandidate<'_> as CandidateFields<'_>);

impl<'b> From<CandidateFields<'b>> for NamedCandidate<'b> {
    fn from(fields: CandidateFields<'b>) -> Self {
        let CandidateFields { id, text, boost, data, scores } = fields;
        let boost = boost.map(|Score(boost)| boost as f32);
        let more = More { boost, data, scores };
        Self { id, text, more: (more != More::default()).then(|| Box::new(more)) }
    }
}

impl<'b> Candidate<'b> {
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

    pub(crate) fn boost(&self) -> Option<f32> {
        self.more()?.boost
    }

    pub(crate) fn data(&self) -> Option<&CallersData<'b>> {
        self.more()?.data.as_ref()
    }

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

forms!(Candidate<'b>: "a string or an object with `text`";
    text(text) => Ok(Candidate::Text(Text(text)));
    object(fields in CandidateFields<'de>) => Ok(Candidate::Named(fields.into())););

/// A candidate's own name, which is given back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum CandidateId<'b> {
    /// A string.
    Text(Cow<'b, str>),
    // Described by the type: two descriptions would make the schema an integer and an object at once.
    Number(#[schema(inline)] WholeNumber),
}

impl CandidateId<'_> {
    /// The name in the form of items' names: a number by its digits.
    pub(crate) fn digits(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(WholeNumber(number)) => number.to_string().into(),
        }
    }

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

forms!(CandidateId<'b>: "a string or a whole number";
    text(text) => Ok(CandidateId::Text(text));
    whole(number) => Ok(CandidateId::Number(WholeNumber(number.into()))););

const MAX_BYTES: usize = 4096;

/// An object of the caller's own, at most 4096 bytes as written, that comes back as it was written.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub(crate) struct CallersData<'b>(&'b RawValue);

impl<'b> CallersData<'b> {
    /// Data that was checked when it was stored.
    pub(crate) fn stored(data: &'b RawValue) -> Self {
        Self(data)
    }
}

impl CallersData<'_> {
    pub(crate) fn written(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn into_written(self) -> Box<RawValue> {
        self.0.to_owned()
    }
}

impl PartialEq for CallersData<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for CallersData<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let data = <&RawValue>::deserialize(from)?;
        let written = data.get();
        let fault = |value, expected: &str| {
            Err(D::Error::invalid_value(Unexpected::Other(value), &expected))
        };
        if !written.starts_with('{') {
            return fault("another value", "an object");
        }
        if written.len() > MAX_BYTES {
            return fault("a longer one", "an object of at most 4096 bytes");
        }
        // Data that a JSON parser refuses would make the answer unreadable.
        if serde_json::from_str::<Readable>(written).is_err() {
            return fault("another one", "an object that every parser of JSON can read");
        }
        Ok(Self(data))
    }
}

const MAX_SCORES: usize = 16;
/// Longest name of a score, in bytes.
const NAME_BYTES: usize = 64;

/// Scores that the caller has already, by name: at most 16, with names of 1 to 64 bytes.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[schema(value_type = BTreeMap<String, Score>)]
pub(crate) struct CallersScores<'b>(BTreeMap<Cow<'b, str>, Score>);

impl CallersScores<'_> {
    pub(crate) fn of(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|Score(score)| *score)
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for CallersScores<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ByName;
        impl<'de> Visitor<'de> for ByName {
            type Value = CallersScores<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "an object of at most {MAX_SCORES} numbers, each under a name of its own of 1 to \
                     {NAME_BYTES} bytes"
                )
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut scores = BTreeMap::new();
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    let Name(name) = name;
                    let fits = (1..=NAME_BYTES).contains(&name.len()) && scores.len() < MAX_SCORES;
                    if !fits || scores.insert(name, map.next_value()?).is_some() {
                        return Err(A::Error::invalid_value(Unexpected::Map, &self));
                    }
                }
                Ok(CallersScores(scores))
            }
        }
        from.deserialize_map(ByName)
    }
}

/// A name, borrowed from the body if it has no escapes.
#[derive(Deserialize)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_can_be_read() {
        let read = |written: &str| {
            serde_json::from_str::<&RawValue>(written).is_ok()
                && serde_json::from_str::<CallersData<'_>>(written).is_ok()
        };
        for good in [r#"{}"#, r#"{"a":[1,-2,0.5,null,true,"\u00e9"],"a":{"b":1e300}}"#] {
            assert!(read(good), "{good}");
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BYTES));
        for bad in [
            "[]",
            "1",
            r#""a""#,
            r#"{"a":"\ud800"}"#,
            r#"{"\udc00":1}"#,
            r#"{"a":1e400}"#,
            &deep,
            &long,
        ] {
            assert!(!read(bad), "{bad}");
        }
    }
}
