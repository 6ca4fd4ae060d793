//! Numbers within a range.

use std::ops::RangeInclusive;

use cognate::engine;
use serde::de::{Error, Expected, Unexpected};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::http::request::fields::forms;

/// Largest score or threshold that can be requested; no method comes near it.
const MAX_SCORE: f64 = 1e6;

pub(crate) fn out_of_range<E: Error>(number: f64, expected: &dyn Expected) -> E {
    E::invalid_value(Unexpected::Float(number), expected)
}

pub(crate) fn only<E: Error>(word: &str, known: &str, expected: &dyn Expected) -> Result<(), E> {
    match word == known {
        true => Ok(()),
        false => Err(E::invalid_value(Unexpected::Other("another string"), expected)),
    }
}

/// A score.
// As it was written: the bounds hold for the number, not for the f32 nearest to it.
#[derive(Debug, Clone, Copy, PartialEq, ToSchema)]
#[schema(minimum = -1e6, maximum = 1e6)]
pub(crate) struct Score(pub f64);

forms!(Score: "a number"; number(number) => Score::new(number););

/// A weight: more than 0, at most 1000.
#[derive(Debug, Clone, Copy, PartialEq, ToSchema)]
#[schema(value_type = f64, exclusive_minimum = 0, maximum = 1000)]
pub(crate) struct Weight(pub engine::Weight);

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Score(number) = Score::deserialize(from)?;
        let weight = engine::Weight::new(number as f32).map(Self);
        weight.ok_or_else(|| out_of_range(number, &engine::Weight::EXPECTED))
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
    pub(crate) fn new<E: Error>(number: f64) -> Result<Self, E> {
        match number.abs() <= MAX_SCORE {
            true => Ok(Self(number)),
            false => Err(out_of_range(number, &"a number from -1000000 to 1000000")),
        }
    }
}

macro_rules! whole_numbers {
    ($($(#[$attribute:meta])* $name:ident: $least:literal to $most:literal;)+) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
        $(#[$attribute])*
        pub(crate) struct $name(pub usize);

        impl $name {
            const EXPECTED: &str = concat!("a whole number from ", $least, " to ", $most);
        }

        forms!($name: $name::EXPECTED;
            whole(number) => within(number, $least..=$most, &$name::EXPECTED).map($name););
    )+};
}

whole_numbers! {
    /// How many are wanted.
    #[schema(value_type = u32, minimum = 1, maximum = 100000)]
    Count: 1 to 100000;
    /// How many items are kept.
    #[schema(value_type = u32, minimum = 1)]
    Items: 1 to 4294967295;
    /// How many candidates are looked at together.
    #[schema(value_type = u32, minimum = 1, maximum = 1000)]
    Pool: 1 to 1000;
    /// How many of the first results are skipped.
    #[schema(value_type = u32, minimum = 0, maximum = 100000)]
    Offset: 0 to 100000;
}

pub(crate) fn within<E: Error>(
    number: impl Into<i128>,
    range: RangeInclusive<usize>,
    expected: &dyn Expected,
) -> Result<usize, E> {
    let number = number.into();
    let fits = usize::try_from(number).ok().filter(|number| range.contains(number));
    fits.ok_or_else(|| out_of_range(number as f64, expected))
}

/// A whole number, which JSON may also write as `3.0`.
pub(crate) fn whole<E: Error>(number: f64, expected: &dyn Expected) -> Result<i64, E> {
    match cognate_collections::exact(number) {
        Some(whole) => Ok(whole),
        None if number.fract() == 0.0 => Err(out_of_range(number, expected)),
        None => Err(E::invalid_type(Unexpected::Float(number), expected)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::error::Error;

    use super::whole;
    use crate::http::request::fields::CandidateId;

    /// The parser misread or refused each of these while it did not round every float to the
    /// nearest.
    #[test]
    fn whole_numbers_written_as_floats_are_read_to_the_last_digit() {
        for number in [1, 1_986_337_039_699_351, 9_007_199_254_740_991_i64] {
            for signed in [number, -number] {
                let written = format!("{signed}.0");
                let id: CandidateId<'_> = serde_json::from_str(&written).unwrap();
                assert_eq!(id.digits(), signed.to_string(), "{written}");
            }
        }
        for refused in [0.5, 9_007_199_254_740_992.0, 1e300] {
            assert!(whole::<Error>(refused, &"a whole number").is_err(), "{refused}");
        }
    }
}
