//! The score from which a pair counts as related.

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error;

use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::request::fields::Real;
use crate::http::request::query::Resolved;

/// The score from which a pair counts as related, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WantedThreshold {
    /// This one.
    Number(Real),
    /// The one that was found for the model, the method and the measure.
    Calibrated,
}

impl<'de> Deserialize<'de> for WantedThreshold {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = WantedThreshold;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number or \"calibrated\"")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<WantedThreshold, E> {
                Real::of(number).map(WantedThreshold::Number)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<WantedThreshold, E> {
                self.visit_f64(number as f64)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<WantedThreshold, E> {
                self.visit_f64(number as f64)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WantedThreshold, E> {
                let word = serde::de::Unexpected::Other("another string");
                match text {
                    "calibrated" => Ok(WantedThreshold::Calibrated),
                    _ => Err(E::invalid_value(word, &self)),
                }
            }
        }
        from.deserialize_any(Either)
    }
}

/// The score from which a pair counts as related.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// One that was asked for. Scores have single precision, so it is met by a score that is printed
    /// as it is written.
    Number(f64),
    /// One that was found for the model.
    Calibrated(f64),
}

impl Threshold {
    /// The number as it was asked for or found.
    pub fn number(self) -> f64 {
        match self {
            Self::Number(number) | Self::Calibrated(number) => number,
        }
    }

    /// Whether a pair with this score counts as related.
    pub fn is_reached_by(self, score: f32) -> bool {
        match self {
            Self::Number(number) => score >= number as f32,
            Self::Calibrated(number) => f64::from(score) >= number,
        }
    }
}

/// The threshold that a question means.
pub fn threshold(
    asked: &Resolved,
    wanted: Option<WantedThreshold>,
) -> Result<Option<Threshold>, ApiError> {
    match wanted {
        None => Ok(None),
        Some(WantedThreshold::Number(Real(number))) => Ok(Some(Threshold::Number(number))),
        Some(WantedThreshold::Calibrated) => {
            let known = asked.served.engine.calibration(asked.query.method, asked.measure());
            let calibration = known.ok_or_else(|| {
                let detail = "the model has no threshold for this method and measure; \
                              `cognate eval calibrate` finds one";
                ApiError::at(Code::NotCalibrated, "/threshold", detail)
            })?;
            Ok(Some(Threshold::Calibrated(calibration.threshold.threshold)))
        }
    }
}
