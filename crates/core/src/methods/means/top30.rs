//! Mean, maxima and minima over the rarest words of a text alone: the `ceil(0.3 n)` of its `n`
//! words whose idf is highest (De Boom et al. 2016, section 5, "top 30 % idf").
//!
//! Words of equal idf go by their keys, so that word order cannot change a score.

use crate::methods::common::words_met;
use crate::methods::means::{extremes, weighted_sum};
use crate::methods::{Cost, Info, Loaded, Measure};
use crate::model::{Model, Phrase};

/// The places of the chosen words, in the order of the bag.
fn rarest(phrase: &Phrase<'_>) -> Vec<usize> {
    let mut chosen = words_met::places_by_idf(phrase);
    chosen.truncate(chosen.len().saturating_mul(3).div_ceil(10));
    let key = |place: &usize| phrase.words().get(*place).map(|&word| phrase.key(word));
    chosen.sort_by_key(key);
    chosen
}

/// Coefficients of the mean of the chosen words: nothing for the others.
fn coefficients(phrase: &Phrase<'_>) -> Vec<f32> {
    let chosen = rarest(phrase);
    let share = 1.0 / chosen.len() as f32;
    let mut of_text = vec![0.0; phrase.words().len()];
    for place in chosen {
        if let Some(coefficient) = of_text.get_mut(place) {
            *coefficient = share;
        }
    }
    phrase.bag_order().into_iter().filter_map(|place| of_text.get(place).copied()).collect()
}

/// The mean of the rarest words' vectors.
pub mod mean {
    use super::*;

    pub(crate) const INFO: Info = Info {
        cost: Cost::SUM_BY_IDF,
        summary: "Mean of the vectors of the 30 % of words with the highest idf, compared by \
                  cosine.",
        paper: "De Boom et al. 2016",
        range: (-1.0, 1.0),
        embeds: true,
        ..Info::new("mean-top30")
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        let scorer = |()| weighted_sum::scorer(Measure::Cosine, coefficients);
        Ok(words_met::need_idf(model).map(scorer))
    }
}

/// The largest number of each dimension over the rarest words.
pub mod max {
    use super::*;

    pub(crate) const INFO: Info = Info {
        name: "max-top30",
        summary: "Largest number of each dimension over the 30 % of words with the highest idf, \
                  compared by cosine.",
        ..mean::INFO
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        let scorer = |()| extremes::scorer(false, rarest);
        Ok(words_met::need_idf(model).map(scorer))
    }
}

/// The largest and the smallest number of each dimension over the rarest words.
pub mod min_max {
    use super::*;

    pub(crate) const INFO: Info = Info {
        name: "min-max-top30",
        summary: "Largest and smallest number of each dimension over the 30 % of words with the \
                  highest idf, side by side, compared by cosine.",
        ..mean::INFO
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        let scorer = |()| extremes::scorer(true, rarest);
        Ok(words_met::need_idf(model).map(scorer))
    }
}
