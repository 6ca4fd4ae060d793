//! Thresholds found on labelled pairs, kept in the model file: section `calibration`.
//!
//! Its settings are JSON: an object that holds, for each key `method/measure`, the numbers of
//! [`Threshold`]. Three F32 tensors have a row for each key, in the order of the keys: `quantiles`
//! (101), `related` and `unrelated` (100 each). Tensors, because a service reads the header at every
//! start, and 301 numbers for each method would be most of it. How thresholds are found is not
//! known here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Measure};
use crate::methods::Method;
use crate::model::draft::{Draft, Table};
use crate::model::format::Dtype;
use crate::model::{Model, ModelError, Section};

const SECTION: &str = "calibration";

/// Quantiles kept: 0 % to 100 %.
pub const QUANTILES: usize = 101;
/// Equal bins of the histograms.
pub const BINS: usize = 100;

/// What one method under one measure scored on labelled pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The threshold, and how it did on the pairs it was found on.
    #[serde(flatten)]
    pub threshold: Threshold,
    /// Scores below which 0 %, 1 % … 100 % of all pairs lie.
    pub quantiles: Vec<f32>,
    /// Related pairs in each of the equal bins from `low` to `high`.
    pub related: Vec<f32>,
    /// Unrelated pairs in each bin.
    pub unrelated: Vec<f32>,
}

/// A threshold and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// Scores of at least this count as related.
    pub threshold: f64,
    /// What it was chosen for: `f1`, `accuracy`, `precision=0.9` or `recall=0.9`.
    pub aim: String,
    /// The share of related pairs that precision and F1 were reckoned for; none: that of the pairs it
    /// was found on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<f64>,
    /// Share of pairs above it that are related.
    pub precision: f64,
    /// Share of related pairs that are above it.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
    /// Pairs it was found on.
    pub pairs: u64,
    /// Pairs without a score, which counted as 0.
    pub unscored: u64,
    /// BLAKE3 of the file that held them.
    pub file_digest: String,
    /// The smallest score.
    pub low: f64,
    /// The largest score.
    pub high: f64,
}

/// Every calibration of a model, by `method/measure`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibrations(BTreeMap<String, Calibration>);

impl Calibrations {
    /// What a model file holds; nothing if it holds no such section. A malformed one is an error.
    pub fn read(model: &Model) -> Result<Self, ModelError> {
        let Some(section) = model.section(SECTION) else { return Ok(Self::default()) };
        Self::parse(&section).map_err(|error| match error {
            ModelError::Section { path, section, problem } => {
                let problem = format!("{problem}; write it again with `cognate eval calibrate`");
                ModelError::Section { path, section, problem }
            }
            other => other,
        })
    }

    fn parse(section: &Section<'_>) -> Result<Self, ModelError> {
        let thresholds: BTreeMap<String, Threshold> = section.parse_settings()?;
        let count = Some(thresholds.len() as u64);
        let rows = |name: &str, width: usize| {
            let floats = section.floats_shaped(name, &[count, Some(width as u64)])?;
            Ok::<_, ModelError>(floats.chunks_exact(width).map(<[f32]>::to_vec))
        };
        let quantiles = rows("quantiles", QUANTILES)?;
        let histograms = rows("related", BINS)?.zip(rows("unrelated", BINS)?);
        let mut read = BTreeMap::new();
        for (((key, threshold), quantiles), (related, unrelated)) in
            thresholds.into_iter().zip(quantiles).zip(histograms)
        {
            if !is_key(&key) {
                return Err(section.broken(format!("expected a key `method/measure`, got {key:?}")));
            }
            let numbers = [
                threshold.threshold,
                threshold.prior.unwrap_or(0.0),
                threshold.precision,
                threshold.recall,
                threshold.f1,
                threshold.low,
                threshold.high,
            ];
            // JSON has no infinity, but a number beyond the range of f64 is read as one.
            if numbers.iter().any(|number| !number.is_finite()) || threshold.low > threshold.high {
                return Err(
                    section.broken(format!("{key}: a number is not finite, or the range falls"))
                );
            }
            read.insert(key, Calibration { threshold, quantiles, related, unrelated });
        }
        Ok(Self(read))
    }

    /// The calibration of a method under a measure.
    pub fn of(&self, method: &str, measure: Measure) -> Option<&Calibration> {
        self.0.get(&key(method, measure))
    }

    /// Puts a calibration in, in place of an earlier one.
    pub fn insert(&mut self, method: Method, measure: Measure, calibration: Calibration) {
        self.0.insert(key(method.name(), measure), calibration);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers of the three tensors, which a [`Draft`] borrows.
    pub fn tensors(&self) -> [Vec<f32>; 3] {
        let all = |of: fn(&Calibration) -> &Vec<f32>| {
            self.0.values().flat_map(|calibration| of(calibration).iter().copied()).collect()
        };
        [all(|of| &of.quantiles), all(|of| &of.related), all(|of| &of.unrelated)]
    }

    /// Puts the section into a draft, with the numbers of [`Calibrations::tensors`].
    pub fn put<'a>(&self, draft: &mut Draft<'a>, tensors: &'a [Vec<f32>; 3]) {
        let thresholds: BTreeMap<&String, &Threshold> =
            self.0.iter().map(|(key, calibration)| (key, &calibration.threshold)).collect();
        let [quantiles, related, unrelated] = tensors;
        let table = |name, width, numbers: &'a Vec<f32>| {
            Table::of(name, Dtype::F32, &[self.0.len(), width], numbers)
        };
        let tables = vec![
            table("quantiles", QUANTILES, quantiles),
            table("related", BINS, related),
            table("unrelated", BINS, unrelated),
        ];
        draft.set_section(SECTION, serde_json::json!(thresholds).to_string(), tables);
    }
}

impl Engine {
    /// What is known of a method's scores under a measure from labelled pairs, if the model was
    /// calibrated for it.
    pub fn calibration(&self, method: Method, measure: Measure) -> Option<&Calibration> {
        self.calibrations.of(method.name(), measure)
    }

    /// Every calibration of the model.
    pub fn calibrations(&self) -> &Calibrations {
        &self.calibrations
    }
}

fn key(method: &str, measure: Measure) -> String {
    format!("{method}/{}", measure.name())
}

/// A method may be one that this version does not know; a measure may not.
fn is_key(key: &str) -> bool {
    key.split_once('/').is_some_and(|(method, measure)| {
        !method.is_empty() && Measure::ALL.iter().any(|known| known.name() == measure)
    })
}
