//! Scores that a caller has already for a candidate, by names of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::http::request::fields::Score;

/// Most scores of one candidate.
const MOST_SCORES: usize = 16;
/// Longest name of a score, in bytes.
const NAME_BYTES: usize = 64;

/// Scores that the caller has already, by name: at most 16, with names of 1 to 64 bytes.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[schema(value_type = BTreeMap<String, Score>)]
pub(crate) struct CallersScores<'b>(BTreeMap<Cow<'b, str>, Score>);

impl CallersScores<'_> {
    /// The one of that name.
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
                    "an object of at most {MOST_SCORES} numbers, each under a name of its own of 1 to \
                     {NAME_BYTES} bytes"
                )
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut scores = BTreeMap::new();
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    let Name(name) = name;
                    let fits = (1..=NAME_BYTES).contains(&name.len()) && scores.len() < MOST_SCORES;
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

/// A name, borrowed from the body where it stands there as it is.
#[derive(Deserialize)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);
