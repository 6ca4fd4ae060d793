//! The score from which a pair counts as related: what a request says, and the number that it means for
//! a model, a method and a measure.

use std::borrow::Cow;

use cognate::engine::fuse::FusedProblem;
use cognate::engine::{Cutoff, Least, QueryError};
use utoipa::openapi::schema::RefBuilder;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::http::error::{ApiError, Code, Result};
use crate::http::request::fields::{Score, forms, only};
use crate::http::request::query::{Fused, Resolved};

/// A requested threshold: a number, or the calibrated one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Threshold(Least);

impl From<Score> for Threshold {
    fn from(Score(number): Score) -> Self {
        Self(Least::Number(number))
    }
}

forms!(Threshold: Least::EXPECTED;
    number(number) => Score::new(number).map(Threshold::from);
    text(word) => only(&word, Least::CALIBRATED, &Least::EXPECTED).map(|()| Threshold(Least::Calibrated)););

impl From<Threshold> for Least {
    fn from(Threshold(least): Threshold) -> Self {
        least
    }
}

impl PartialSchema for Threshold {
    fn schema() -> RefOr<Schema> {
        let number = RefBuilder::new()
            .ref_location_from_schema_name(Score::name())
            .description(Some("This one."));
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some([Least::CALIBRATED]))
            .description(Some(
                "The threshold that `cognate eval calibrate` found for the model, the method and \
                 the measure.",
            ));
        OneOfBuilder::new()
            .item(number.build())
            .item(word)
            .description(Some("The score from which a pair counts as related."))
            .into()
    }
}

impl ToSchema for Threshold {
    fn name() -> Cow<'static, str> {
        "Threshold".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Score::name().into(), Score::schema()));
    }
}

impl Threshold {
    /// A threshold from the field `pointer` of a query string.
    pub(crate) fn parse(written: &str, pointer: &'static str) -> Result<Self> {
        if let Ok(word) = Least::named(written) {
            return Ok(Self(word));
        }
        let fits = |number: f64| Score::new::<serde::de::value::Error>(number).ok();
        let number = written.parse::<f64>().ok().and_then(fits).ok_or_else(|| {
            ApiError::at(Code::OutOfRange, pointer, format!("expected {}", Least::EXPECTED))
        })?;
        Ok(number.into())
    }

    /// The cutoff for the model, the method and the measure of a question, which has the threshold
    /// at `pointer`.
    pub(crate) fn resolve(self, resolved: &Resolved, pointer: &'static str) -> Result<Cutoff> {
        let cutoff = match (&resolved.fused, self.0) {
            (Some(Fused { name, .. }), Least::Calibrated) => {
                let (name, problem) = (name.to_string(), FusedProblem::NotCalibrated);
                Err(QueryError::Fused { name, problem })
            }
            (_, least) => least.resolve(&resolved.model.engine, &resolved.query),
        };
        cutoff.map_err(|error| ApiError::from(error).renamed(|_| pointer.into()))
    }

    /// Sets the threshold of a question, if it has one; returns the cutoff.
    pub(crate) fn ask(threshold: Option<Self>, resolved: &mut Resolved) -> Result<Option<Cutoff>> {
        let cutoff = threshold.map(|threshold| threshold.resolve(resolved, "/threshold"));
        let cutoff = cutoff.transpose()?;
        resolved.query.threshold = cutoff.map(|cutoff| cutoff.least);
        Ok(cutoff)
    }
}
