//! A line of a stream of candidates: a text, or an object with `text` and what a caller hangs on it.

use std::borrow::Cow;
use std::fmt;

use cognate::engine::BoostBy;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::http::api::rank::{NEGATIVE_BOOST, UNUSED_SCORES};
use crate::http::api::stream::line::LineId;
use crate::http::error::{ApiError, Code};
use crate::http::request::fields::{CallersData, CallersScores, Score, Text};

pub(super) struct CandidateLine<'b> {
    pub(super) id: Option<LineId<'b>>,
    text: Text<'b>,
    pub(super) boost: Option<f32>,
    pub(super) data: Option<CallersData<'b>>,
    pub(super) scores: Option<CallersScores<'b>>,
    /// Whether the question leaves it out.
    pub(super) is_excluded: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'b> {
    #[serde(borrow)]
    id: Option<LineId<'b>>,
    #[serde(borrow)]
    text: Text<'b>,
    boost: Option<Score>,
    #[serde(borrow)]
    data: Option<CallersData<'b>>,
    #[serde(borrow)]
    scores: Option<CallersScores<'b>>,
}

impl AsRef<str> for CandidateLine<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

impl<'b> CandidateLine<'b> {
    /// Refuses what it brings that cannot be used.
    pub(super) fn check(&self, by: BoostBy) -> Result<(), ApiError> {
        if by == BoostBy::Multiply && self.boost.is_some_and(|boost| boost < 0.0) {
            return Err(ApiError::at(Code::OutOfRange, "/boost", NEGATIVE_BOOST));
        }
        if self.scores.is_some() {
            return Err(ApiError::at(Code::InvalidField, "/scores", UNUSED_SCORES));
        }
        Ok(())
    }

    fn of(text: Cow<'b, str>) -> Self {
        let text = Text(text);
        Self { id: None, text, boost: None, data: None, scores: None, is_excluded: false }
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for CandidateLine<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = CandidateLine<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(CandidateLine::of(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(CandidateLine::of(Cow::Owned(text.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let from = MapAccessDeserializer::new(map);
                let Fields { id, text, boost, data, scores } = Deserialize::deserialize(from)?;
                let boost = boost.map(|Score(boost)| boost as f32);
                Ok(CandidateLine { id, text, boost, data, scores, is_excluded: false })
            }
        }
        from.deserialize_any(Either)
    }
}
