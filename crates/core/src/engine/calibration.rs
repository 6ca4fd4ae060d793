//! Thresholds found on labelled pairs, stored in the model file: section `calibration`.
//!
//! Its settings are JSON: an object that holds, for each key `method/measure`, the numbers of
//! [`Threshold`]. Three F32 tensors have a row for each key, in the order of the keys: `quantiles`
//! (101), `related` and `unrelated` (100 each). They are tensors because a service reads the header
//! at every start, and 301 numbers for each method would be most of it. How thresholds are found is
//! not known here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::choice::Unexpected;
use crate::engine::{Engine, Measure, Query, QueryError};
use crate::methods::Method;
use crate::model::draft::{Draft, Table};
use crate::model::format::Dtype;
use crate::model::{Model, ModelError, Section};

const SECTION: &str = "calibration";

/// Stored quantiles: 0 % to 100 %.
const QUANTILES: usize = 101;
/// Number of equal bins in a histogram.
pub const BINS: usize = 100;

/// Scores of one method under one measure on labelled pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The threshold, and its results on the pairs that it was found on.
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
    /// Lowest score that counts as related.
    pub threshold: f64,
    /// The aim: `f1`, `accuracy`, `precision=0.9` or `recall=0.9`, and behind it whether opposed pairs
    /// were left out.
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

impl Threshold {
    /// The lowest score that counts as related, in the single precision of scores.
    pub fn least(&self) -> f32 {
        let nearest = self.threshold as f32;
        if f64::from(nearest) < self.threshold { nearest.next_up() } else { nearest }
    }
}

/// A least score that is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Least {
    /// This one.
    Number(f64),
    /// The threshold that was found for the model, the method and the measure.
    Calibrated,
}

/// What a least score comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutoff {
    /// The number as it was said or found.
    pub number: f64,
    /// The least score that reaches it.
    pub least: f32,
}

/// The least score that reaches a number. Scores have single precision, so a score reaches the number that it is
/// printed as.
pub fn least_score(number: f64) -> f32 {
    number as f32
}

impl Least {
    /// The word that stands for the threshold that was found.
    pub const CALIBRATED: &str = "calibrated";
    /// What can be said, for messages.
    pub const EXPECTED: &str = "a number or \"calibrated\"";

    /// The least score that a word stands for.
    pub fn named(word: &str) -> Result<Self, Unexpected> {
        match word == Self::CALIBRATED {
            true => Ok(Self::Calibrated),
            false => Err(Unexpected::new(Self::EXPECTED, word)),
        }
    }

    /// What it comes to for the method and the measure of a query.
    pub fn resolve(self, engine: &Engine, query: &Query) -> Result<Cutoff, QueryError> {
        let (method, measure) = (query.method, engine.measure_of(query));
        match (self, engine.calibration(method, measure)) {
            (Self::Number(number), _) => Ok(Cutoff { number, least: least_score(number) }),
            (Self::Calibrated, Some(Calibration { threshold: found, .. })) => {
                Ok(Cutoff { number: found.threshold, least: found.least() })
            }
            (Self::Calibrated, None) => {
                Err(QueryError::NotCalibrated { method: method.name(), measure })
            }
        }
    }
}

/// Every calibration of a model, by `method/measure`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibrations(BTreeMap<String, Calibration>);

impl Calibrations {
    /// Reads the section of a model file, if it has one. A malformed section is an error.
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
            if threshold.low > threshold.high {
                return Err(section.broken(format!("{key}: the range falls")));
            }
            read.insert(key, Calibration { threshold, quantiles, related, unrelated });
        }
        Ok(Self(read))
    }

    /// The calibration of a method under a measure.
    pub fn of(&self, method: &str, measure: Measure) -> Option<&Calibration> {
        self.0.get(&key(method, measure))
    }

    /// Puts a calibration in the place of an earlier one.
    pub fn insert(&mut self, method: Method, measure: Measure, calibration: Calibration) {
        self.0.insert(key(method.name(), measure), calibration);
    }

    /// Number of items.
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
            Table::new(name, Dtype::F32, &[self.0.len(), width], numbers)
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
    /// The calibration of a method under a measure, if the model has one.
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

/// The method may be unknown to this version; the measure may not.
fn is_key(key: &str) -> bool {
    key.split_once('/')
        .is_some_and(|(method, measure)| !method.is_empty() && measure.parse::<Measure>().is_ok())
}

/// The share of related pairs at every score, which never falls as scores rise.
///
/// The pairs of a calibration are counted in equal bins of scores. In a bin with few pairs the
/// share depends on chance, so neighbouring bins are merged while shares fall (pool adjacent
/// violators); between the middles of bins the share is interpolated linearly.
#[derive(Debug, Clone, PartialEq)]
pub struct Probability {
    low: f64,
    width: f64,
    shares: Vec<f64>,
}

struct Pool {
    related: f64,
    all: f64,
    bins: usize,
}

impl Pool {
    fn share(&self) -> f64 {
        if self.all > 0.0 { self.related / self.all } else { 0.0 }
    }
}

impl Probability {
    /// The probabilities of a calibration that has related and unrelated pairs. The prior is the
    /// share of related pairs among all pairs; by default it is their share in the calibration.
    pub fn from_calibration(calibration: &Calibration) -> Option<Self> {
        let sum = |bins: &[f32]| bins.iter().map(|&count| f64::from(count)).sum::<f64>();
        let (related, unrelated) = (sum(&calibration.related), sum(&calibration.unrelated));
        let threshold = &calibration.threshold;
        let width = (threshold.high - threshold.low) / BINS as f64;
        let prior = threshold.prior.unwrap_or(related / (related + unrelated));
        // The inverse of the width must be finite too, so that every score yields a number.
        if !(related > 0.0 && unrelated > 0.0 && (1.0 / width).is_finite() && prior.is_finite()) {
            return None;
        }
        let weights = [prior / related, (1.0 - prior) / unrelated];
        let mut pools: Vec<Pool> = Vec::new();
        for (&related, &unrelated) in calibration.related.iter().zip(&calibration.unrelated) {
            let related = weights[0] * f64::from(related);
            let all = related + weights[1] * f64::from(unrelated);
            let mut pool = Pool { related, all, bins: 1 };
            // An empty bin joins the bins before it.
            while let Some(before) =
                pools.pop_if(|last| pool.all <= 0.0 || last.share() >= pool.share())
            {
                pool = Pool {
                    related: pool.related + before.related,
                    all: pool.all + before.all,
                    bins: pool.bins + before.bins,
                };
            }
            pools.push(pool);
        }
        let shares = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.share(), pool.bins));
        Some(Self { low: threshold.low, width, shares: shares.collect() })
    }

    /// The share of related pairs among those with this score.
    pub fn at(&self, score: f32) -> f64 {
        let place = (f64::from(score) - self.low) / self.width - 0.5;
        let last = self.shares.len().saturating_sub(1) as f64;
        let place = place.clamp(0.0, last);
        let (before, part) = (place.floor(), place.fract());
        let share = |place: f64| self.shares.get(place as usize).copied().unwrap_or(0.0);
        let (one, other) = (share(before), share((before + 1.0).min(last)));
        one + (other - one) * part
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::calibration::{QUANTILES, Threshold};

    fn calibration(related: Vec<f32>, unrelated: Vec<f32>, prior: Option<f64>) -> Calibration {
        let threshold = Threshold {
            threshold: 0.5,
            aim: "f1".to_owned(),
            prior,
            precision: 0.5,
            recall: 0.5,
            f1: 0.5,
            pairs: 1,
            unscored: 0,
            file_digest: String::new(),
            low: -1.0,
            high: 1.0,
        };
        Calibration { threshold, quantiles: vec![0.0; QUANTILES], related, unrelated }
    }

    /// Where every bin has many pairs, its share is the observed one, adjusted to the prior.
    #[test]
    fn shares_are_those_of_the_bins() {
        let related: Vec<f32> = (0..BINS).map(|bin| bin as f32).collect();
        let unrelated: Vec<f32> = (0..BINS).map(|bin| (BINS - bin) as f32).collect();
        let seen =
            Probability::from_calibration(&calibration(related.clone(), unrelated.clone(), None))
                .unwrap();
        let middle = |bin: usize| (-1.0 + (bin as f64 + 0.5) * 0.02) as f32;
        for bin in [0, 1, 50, 99] {
            assert!((seen.at(middle(bin)) - bin as f64 / 100.0).abs() < 1e-5, "{bin}");
        }
        assert!((seen.at(middle(50) + 0.01) - 0.505).abs() < 1e-4);
        let rare =
            Probability::from_calibration(&calibration(related, unrelated, Some(0.01))).unwrap();
        assert!(rare.at(middle(50)) < 0.02 && rare.at(middle(99)) > 0.4);
    }

    #[test]
    fn pairs_of_one_kind_say_nothing() {
        let some = vec![1.0; BINS];
        assert!(
            Probability::from_calibration(&calibration(some.clone(), vec![0.0; BINS], None))
                .is_none()
        );
        assert!(Probability::from_calibration(&calibration(vec![0.0; BINS], some, None)).is_none());
    }

    proptest! {
        #[test]
        fn it_never_falls_and_stays_within_bounds(
            related in prop::collection::vec(0u8..5, BINS),
            unrelated in prop::collection::vec(0u8..5, BINS),
            scores in prop::collection::vec(-3.0f32..3.0, 2..20),
        ) {
            let counts = |bins: &[u8]| bins.iter().map(|&count| f32::from(count)).collect();
            let calibration = calibration(counts(&related), counts(&unrelated), None);
            let Some(known) = Probability::from_calibration(&calibration) else { return Ok(()) };
            let mut scores = scores;
            scores.sort_by(f32::total_cmp);
            let shares: Vec<f64> = scores.iter().map(|&score| known.at(score)).collect();
            prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
            prop_assert!(shares.is_sorted(), "{shares:?}");
        }
    }
}
