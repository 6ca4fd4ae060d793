//! Scores as relevances between 0 and 1, as clients of rerankers expect them.

use cognate::engine::Probability;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code};
use crate::http::request::query::Resolved;

/// What a relevance is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Relevance {
    /// The method's score, moved from its range to 0…1; as it is where the range has no upper end.
    Score,
    /// The share of pairs with such a score that were related, among those that the model was
    /// calibrated on.
    Probability,
}

/// How the scores of a question become relevances. The order of candidates stays that of their scores.
pub(super) enum Scale {
    /// By the range of the method.
    Range(f32, f32),
    /// By the model's calibration, and a little by the range.
    Probability(Probability, [f32; 2]),
}

/// The part of a relevance that the score's place in the method's range has beside the probability.
/// Where the calibration saw no difference between scores, clients that sort by the relevance still
/// find their order.
const OF_RANGE: f64 = 1e-3;

impl Scale {
    /// The scale that is asked for; without a wish the calibration's, if the model has one for the
    /// method.
    pub(super) fn of(resolved: &Resolved, wish: Option<Relevance>) -> Result<Self, ApiError> {
        let engine = &resolved.model.engine;
        if let Some(fused) = &resolved.fused {
            let (low, high) = fused.fusion.by().range();
            return match wish {
                None | Some(Relevance::Score) => Ok(Self::Range(low, high)),
                Some(Relevance::Probability) => Err(not_calibrated()),
            };
        }
        let (method, measure) = (resolved.query.method, resolved.measure());
        let (low, high) = method.info().range;
        let known = engine.calibration(method, measure).and_then(Probability::of);
        match (wish, known) {
            (None | Some(Relevance::Probability), Some(known)) => {
                Ok(Self::Probability(known, [low, high]))
            }
            (None | Some(Relevance::Score), _) => Ok(Self::Range(low, high)),
            (Some(Relevance::Probability), None) => Err(not_calibrated()),
        }
    }

    /// The relevance of a candidate with this score, or without one.
    pub(super) fn relevance(&self, score: Option<f32>) -> f64 {
        let Some(score) = score else { return 0.0 };
        match self {
            Self::Probability(known, [low, high]) => {
                let of_range = place(score, *low, *high).unwrap_or(0.0);
                (1.0 - OF_RANGE) * known.at(score) + OF_RANGE * of_range
            }
            Self::Range(low, high) => place(score, *low, *high).unwrap_or(f64::from(score)),
        }
    }
}

fn not_calibrated() -> ApiError {
    let detail = "the model has no calibration for this method and measure; \
                  `cognate eval calibrate` makes one";
    ApiError::at(Code::NotCalibrated, "/relevance", detail)
}

/// Where a score lies between the ends of its range, if it has an upper one. Scores without a lower
/// end are logarithms of probabilities, as of `ql`.
fn place(score: f32, low: f32, high: f32) -> Option<f64> {
    let [score, low, high] = [score, low, high].map(f64::from);
    let place = if low.is_finite() { (score - low) / (high - low) } else { (score - high).exp() };
    high.is_finite().then(|| place.clamp(0.0, 1.0))
}
