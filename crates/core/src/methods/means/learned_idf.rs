//! Weights learned for the ranks of a text's words by idf (De Boom et al. 2016, section 4,
//! equations 4 to 6).
//!
//! With the words sorted by idf, the highest first, and weights `ω_1 … ω_M`, word `j` of `n` gets
//!
//! - `I_j = 1 + (j − 1)(M − 1)/(n − 1)`, `I_1 = 1` when `n = 1`; the same for `n > M`,
//! - `z_j = ω_⌊I⌋ + (I − ⌊I⌋)(ω_⌈I⌉ − ω_⌊I⌋)`,
//!
//! and the text the vector `t = (1/n) Σ_j z_j v_j`. Weights are trained, never invented, for one
//! measure, which is then the method's own.

use std::collections::BTreeMap;

use crate::methods::common::words_met;
use crate::methods::means::weighted_sum;
use crate::methods::{Cost, Info, Loaded, Measure, Unavailable, unavailable};
use crate::model::provenance::TrainingRecord;
use crate::model::{Model, ModelError, Phrase};

pub(crate) const INFO: Info = Info {
    cost: Cost::SUM_BY_IDF,
    summary: "Mean of the words' vectors, weighted by what was learned for their ranks by idf.",
    paper: "De Boom et al. 2016",
    range: (-1.0, 1.0),
    embeds: true,
    ..Info::new("learned-idf")
};

/// The section that holds trained weights: settings as in [`Settings`], and for each set a tensor
/// [`tensor`]`(name)`, F32 `[M]`.
pub const SECTION: &str = "learned-idf";

/// The settings of the section.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// The set in use.
    pub default: String,
    /// Every set by name.
    pub sets: BTreeMap<String, WeightSet>,
}

/// The settings of one set of weights.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct WeightSet {
    /// The measure that it was trained for.
    pub measure: Measure,
    /// The record of its training, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained: Option<TrainingRecord>,
}

/// The name of the tensor of a set.
pub fn tensor(set: &str) -> String {
    format!("weights.{set}")
}

/// Why weights can be neither trained for a model nor used with it, if so.
pub fn without_ranks(model: &Model) -> Option<Unavailable> {
    words_met::need_idf(model).err()
}

/// The settings of a model's section, if it has one.
pub fn settings(model: &Model) -> Result<Option<Settings>, ModelError> {
    model.section(SECTION).map(|section| section.parse_settings()).transpose()
}

/// The method over a model, or what the model lacks.
pub fn load(model: &Model) -> Loaded {
    if let Some(reason) = without_ranks(model) {
        return Ok(Err(reason));
    }
    let Some(section) = model.section(SECTION) else {
        return unavailable(
            "the model has no trained weights",
            "train some with `cognate train weights`",
        );
    };
    let settings: Settings = section.parse_settings()?;
    let Some(set) = settings.sets.get(&settings.default) else {
        let problem = format!("settings: no set is named `{}`, the default", settings.default);
        return Err(section.broken(problem));
    };
    let weights = section.floats_shaped(&tensor(&settings.default), &[None])?.to_vec();
    Ok(Ok(weighted_sum::scorer(set.measure, move |phrase| coefficients(phrase, &weights))))
}

/// Returns the coefficient of each word, in the order of the bag.
fn coefficients(phrase: &Phrase<'_>, weights: &[f32]) -> Vec<f32> {
    let words = phrase.words().len();
    let mut of_text = vec![0.0; words];
    for (place, between) in standing(phrase, weights.len()) {
        if let Some(coefficient) = of_text.get_mut(place) {
            *coefficient = between.of(weights) / words as f32;
        }
    }
    phrase.bag_order().into_iter().filter_map(|place| of_text.get(place).copied()).collect()
}

/// The words of a text, the highest idf first: the position of each in the text, and its position
/// among `m` weights.
pub fn standing(phrase: &Phrase<'_>, m: usize) -> impl Iterator<Item = (usize, Between)> {
    words_met::places_by_idf(phrase).into_iter().zip(ranks(phrase.words().len(), m))
}

/// The position of a word between two neighbouring weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Between {
    /// The index of the weight before, `⌊I⌋ − 1`.
    pub lower: usize,
    /// The fraction of the way to the next weight, `I − ⌊I⌋`.
    pub fraction: f64,
}

impl Between {
    /// The weight there.
    pub fn of(self, weights: &[f32]) -> f32 {
        let at = |index: usize| weights.get(index).copied().map_or(0.0, f64::from);
        if self.fraction == 0.0 {
            return at(self.lower) as f32;
        }
        (at(self.lower) + self.fraction * (at(self.lower + 1) - at(self.lower))) as f32
    }
}

/// The positions of the `n` words of a text, sorted by idf, among `m` weights.
pub fn ranks(n: usize, m: usize) -> impl Iterator<Item = Between> {
    let gaps = n.saturating_sub(1).max(1);
    (0..n).map(move |before| {
        // In whole numbers, so that a word at a weight's position gets exactly that weight.
        let steps = before.saturating_mul(m.saturating_sub(1));
        let fraction = (steps % gaps) as f64 / gaps as f64;
        Between { lower: steps / gaps, fraction }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights_of(n: usize, weights: &[f32]) -> Vec<f32> {
        ranks(n, weights.len()).map(|between| between.of(weights)).collect()
    }

    #[test]
    fn weights_are_spread_over_texts_of_any_length() {
        let weights = [0.9, 0.5, 0.2];
        assert_eq!(weights_of(1, &weights), [0.9]);
        assert_eq!(weights_of(2, &weights), [0.9, 0.2]);
        assert_eq!(weights_of(3, &weights), weights);
        assert_eq!(weights_of(5, &weights), [0.9, 0.7, 0.5, 0.35, 0.2]);
        assert_eq!(weights_of(4, &[0.3]), [0.3; 4]);
        assert!(weights_of(0, &weights).is_empty());
    }

    #[test]
    fn fewer_words_than_weights_take_the_ends_and_what_lies_between() {
        let weights: Vec<f32> = (0..30).map(|rank| 30.0 - rank as f32).collect();
        let found = weights_of(20, &weights);
        assert_eq!((found[0], found[19]), (30.0, 1.0));
        // The second of 20 words stands at 1 + 29/19.
        assert!((found[1] - (30.0 - 29.0 / 19.0)).abs() < 1e-6);
    }
}
