//! What is ranked: texts, with or without a name of their own and what a caller hangs on them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::request::fields::{CallersData, CallersScores, Score, Text, described, forms};

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

described!(NamedCandidate<'_> as CandidateFields<'_>);

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

forms!(Candidate<'b>: "a string or an object with `text`";
    text(text) => Ok(Candidate::Text(Text(text)));
    object(fields in CandidateFields<'de>) => Ok(Candidate::Named(fields.into())););

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

forms!(CandidateId<'b>: "a string or a whole number";
    text(text) => Ok(CandidateId::Text(text));
    whole(number) => Ok(CandidateId::Number(WholeNumber(number.into()))););
