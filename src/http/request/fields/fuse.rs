//! Rankings to fuse, as a request names them. Whether they can be fused is checked later, where the
//! model is known.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Error, Unexpected};
use utoipa::ToSchema;

use crate::http::request::fields::{MeasureName, RankMethod, Score, forms};

const NAME_BYTES: usize = 64;
const RUN_NAME: &str = "a name of 1 to 64 bytes";

/// One of the rankings that become one: by a method, or by numbers that the candidates bring.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct FusePart<'b> {
    /// A method. A part has either a method or `scores`.
    pub(crate) method: Option<RankMethod<'b>>,
    /// The measure that compares the method's vectors.
    pub(crate) measure: Option<MeasureName>,
    /// The name of numbers that every candidate has under its own `scores`.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    pub(crate) scores: Option<RunName<'b>>,
    /// The weight of the part, from 0; default: 1. Only the proportions of weights count.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1e6)]
    pub(crate) weight: Option<Score>,
}

/// The name of a run: of scores that the caller sends with the candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunName<'b>(pub(crate) Cow<'b, str>);

impl<'b> RunName<'b> {
    fn new<E: Error>(name: Cow<'b, str>) -> Result<Self, E> {
        match (1..=NAME_BYTES).contains(&name.len()) {
            true => Ok(Self(name)),
            false => Err(E::invalid_value(Unexpected::Other("another string"), &RUN_NAME)),
        }
    }
}

forms!(RunName<'b>: RUN_NAME; text(name) => RunName::new(name););
