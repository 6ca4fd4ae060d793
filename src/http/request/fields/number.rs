//! Numbers that must fit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Expected, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::http::request::fields::list::MOST_KEPT;

/// Largest score or threshold that can be asked for; no method comes near it.
const MOST_SCORE: f64 = 1e6;

/// The complaint about a number that does not fit.
pub(crate) fn out_of_range<E: Error>(number: f64, expected: &dyn Expected) -> E {
    E::invalid_value(Unexpected::Float(number), expected)
}

/// A score.
// Kept as it was written: the parser would turn what is too large for an f32 into infinity.
#[derive(Debug, Clone, Copy, PartialEq, ToSchema)]
#[schema(minimum = -1e6, maximum = 1e6)]
pub(crate) struct Score(pub f64);

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Score;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Score, E> {
                Score::of(number)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Score, E> {
                Score::of(number as f64)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Score, E> {
                Score::of(number as f64)
            }
        }
        from.deserialize_f64(Number)
    }
}

/// A weight: more than 0, at most 1000.
#[derive(Debug, Clone, Copy, PartialEq, ToSchema)]
#[schema(value_type = f64, exclusive_minimum = 0, maximum = 1000)]
pub(crate) struct Weight(pub f32);

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Score(number) = Score::deserialize(from)?;
        let weight = number as f32;
        let fits = weight > 0.0 && weight <= 1000.0;
        if fits {
            Ok(Self(weight))
        } else {
            Err(out_of_range(number, &"a number above 0, at most 1000"))
        }
    }
}

/// A share: from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, ToSchema)]
#[schema(value_type = f64, minimum = 0, maximum = 1)]
pub(crate) struct Share(pub f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Score(number) = Score::deserialize(from)?;
        let fits = (0.0..=1.0).contains(&number);
        if fits { Ok(Self(number)) } else { Err(out_of_range(number, &"a number from 0 to 1")) }
    }
}

impl Score {
    /// The number, if it lies within the bounds.
    pub(crate) fn of<E: Error>(number: f64) -> Result<Self, E> {
        match number.abs() <= MOST_SCORE {
            true => Ok(Self(number)),
            false => Err(out_of_range(number, &"a number from -1000000 to 1000000")),
        }
    }
}

/// How many are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 100000)]
pub(crate) struct Count(pub usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 1 to 100000";
        from.deserialize_any(WholeVisitor { least: 1, most: MOST_KEPT, expected }).map(Self)
    }
}

/// How many items are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = u32, minimum = 1)]
pub(crate) struct Items(pub usize);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 1 to 4294967295";
        let most = u32::MAX as usize;
        from.deserialize_any(WholeVisitor { least: 1, most, expected }).map(Self)
    }
}

/// How many candidates are looked at together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 1000)]
pub(crate) struct Pool(pub usize);

impl Pool {
    pub(crate) const MOST: usize = 1000;
}

impl<'de> Deserialize<'de> for Pool {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 1 to 1000";
        from.deserialize_any(WholeVisitor { least: 1, most: Self::MOST, expected }).map(Self)
    }
}

/// How many of the first results are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ToSchema)]
#[schema(value_type = u32, minimum = 0, maximum = 100000)]
pub(crate) struct Offset(pub usize);

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 0 to 100000";
        from.deserialize_any(WholeVisitor { least: 0, most: MOST_KEPT, expected }).map(Self)
    }
}

/// Reads a whole number between bounds.
#[derive(Clone, Copy)]
pub(crate) struct WholeVisitor {
    pub least: usize,
    pub most: usize,
    /// What is expected, in words.
    pub expected: &'static str,
}

impl Visitor<'_> for WholeVisitor {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<usize, E> {
        let fits = usize::try_from(number).ok().filter(|n| (self.least..=self.most).contains(n));
        fits.ok_or_else(|| out_of_range(number as f64, &self))
    }

    fn visit_i64<E: Error>(self, negative: i64) -> Result<usize, E> {
        Err(out_of_range(negative as f64, &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<usize, E> {
        let number = whole(number).ok_or_else(|| misfit(number, &self))?;
        u64::try_from(number).map_or_else(|_| self.visit_i64(number), |n| self.visit_u64(n))
    }
}

/// What is wrong with a number that is no whole one: its fraction, or its size.
pub(crate) fn misfit<E: Error>(number: f64, expected: &dyn Expected) -> E {
    match number.fract() == 0.0 {
        true => out_of_range(number, expected),
        false => E::invalid_type(Unexpected::Float(number), expected),
    }
}

/// The whole number that JSON also lets be written as `3.0`, if it is one.
pub(crate) fn whole(number: f64) -> Option<i64> {
    // Beyond this not every whole number has a float of its own.
    let exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    exact.then_some(number as i64)
}

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
