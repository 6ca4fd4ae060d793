//! The score from which a pair counts as related: what a request says, and the number that it means for
//! a model, a method and a measure.

use std::borrow::Cow;

use cognate::window::options::{Least, OptionProblem};
use utoipa::openapi::schema::RefBuilder;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::http::error::{ApiError, Code, Result};
use crate::http::request::fields::{Score, forms, only};
use crate::http::request::query::Resolved;

const CALIBRATED: &str = "calibrated";

/// A requested threshold: a number, or the calibrated one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Threshold {
    Number(Score),
    /// The one that was found for the model, the method and the measure.
    Calibrated,
}

const EXPECTED: &str = "a number or \"calibrated\"";

forms!(Threshold: EXPECTED;
    number(number) => Score::new(number).map(Threshold::Number);
    text(word) => only(&word, CALIBRATED, &EXPECTED).map(|()| Threshold::Calibrated););

impl From<Threshold> for Least {
    fn from(threshold: Threshold) -> Self {
        match threshold {
            Threshold::Number(Score(number)) => Self::Number(number),
            Threshold::Calibrated => Self::Calibrated,
        }
    }
}

impl PartialSchema for Threshold {
    fn schema() -> RefOr<Schema> {
        let number = RefBuilder::new()
            .ref_location_from_schema_name(Score::name())
            .description(Some("This one."));
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some([CALIBRATED]))
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
        if written == CALIBRATED {
            return Ok(Self::Calibrated);
        }
        let fits = |number: f64| Score::new::<serde::de::value::Error>(number).ok();
        let number = written.parse::<f64>().ok().and_then(fits).ok_or_else(|| {
            ApiError::at(Code::OutOfRange, pointer, format!("expected {EXPECTED}"))
        })?;
        Ok(Self::Number(number))
    }

    /// The cutoff for the model, the method and the measure of a question, which has the threshold
    /// at `pointer`.
    pub(crate) fn resolve(self, resolved: &Resolved, pointer: &'static str) -> Result<Cutoff> {
        match self {
            // Scores have single precision; so a score reaches the number that it is printed as.
            Self::Number(Score(number)) => Ok(Cutoff { number, least: number as f32 }),
            Self::Calibrated => {
                let engine = &resolved.model.engine;
                // Scores of a fusion belong to no single method.
                let known = resolved
                    .fused
                    .is_none()
                    .then(|| engine.calibration(resolved.query.method, resolved.measure()));
                let known = known.flatten();
                let known = known.ok_or_else(|| {
                    let detail = OptionProblem::NotCalibrated.to_string();
                    ApiError::at(Code::NotCalibrated, pointer, detail)
                })?;
                let threshold = &known.threshold;
                Ok(Cutoff { number: threshold.threshold, least: threshold.least() })
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cutoff {
    /// The number as requested or calibrated.
    pub number: f64,
    /// The least score that reaches it.
    pub least: f32,
}

impl Cutoff {
    /// Sets the threshold of a question, if it has one; returns the cutoff.
    pub(crate) fn ask(
        threshold: Option<Threshold>,
        resolved: &mut Resolved,
    ) -> Result<Option<Self>> {
        let cutoff = threshold.map(|threshold| threshold.resolve(resolved, "/threshold"));
        let cutoff = cutoff.transpose()?;
        resolved.query.threshold = cutoff.map(|cutoff| cutoff.least);
        Ok(cutoff)
    }
}
