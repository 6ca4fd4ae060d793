//! Scores as relevances between 0 and 1, as clients of rerankers expect them.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::engine::Probability;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::request::query::Resolved;

/// What a relevance is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Relevance {
    /// The method's score, moved from -1…1 to 0…1 where it may be negative; as it is where it has no
    /// bounds.
    Score,
    /// The share of pairs with such a score that were related, among those that the model was
    /// calibrated on.
    Probability,
}

/// How the scores of a question become relevances. The order of candidates stays that of their scores.
pub(super) enum Scale {
    /// By the range of the method.
    Range(f32, f32),
    /// By the model's calibration.
    Probability(Probability),
}

impl Scale {
    /// The scale that is asked for; without a wish the calibration's, if the model has one for the
    /// method.
    pub(super) fn of(resolved: &Resolved, wish: Option<Relevance>) -> Result<Self, ApiError> {
        let engine = &resolved.model.engine;
        let (method, measure) = (resolved.query.method, resolved.measure());
        let known = engine.calibration(method, measure).and_then(Probability::of);
        match (wish, known) {
            (None | Some(Relevance::Probability), Some(known)) => Ok(Self::Probability(known)),
            (None | Some(Relevance::Score), _) => {
                let (low, high) = method.info().range;
                Ok(Self::Range(low, high))
            }
            (Some(Relevance::Probability), None) => {
                let detail = "the model has no calibration for this method and measure; \
                              `cognate eval calibrate` makes one";
                Err(ApiError::at(Code::NotCalibrated, "/relevance", detail))
            }
        }
    }

    /// The relevance of a candidate with this score, or without one.
    pub(super) fn relevance(&self, score: Option<f32>) -> f32 {
        match (self, score) {
            (_, None) => 0.0,
            (Self::Probability(known), Some(score)) => known.at(score),
            (Self::Range(low, high), Some(score)) if *low < 0.0 && high.is_finite() => {
                ((score - low) / (high - low)).clamp(0.0, 1.0)
            }
            (Self::Range(..), Some(score)) => score,
        }
    }
}
