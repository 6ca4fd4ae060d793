//! Mean of word vectors, each times the idf of its word (De Boom et al. 2016, section 5, "mean,
//! idf-weighted").
//!
//! `t = (1/n) Σ idf(w_i) v(w_i)`

use crate::methods::common::words_met;
use crate::methods::means::weighted_sum;
use crate::methods::{Info, Loaded, Measure};
use crate::model::Model;

pub(crate) const INFO: Info = Info {
    summary: "Mean of the words' vectors, each weighted by its idf, compared by cosine.",
    paper: "De Boom et al. 2016",
    range: (-1.0, 1.0),
    embeds: true,
    weights_frequency: true,
    ..Info::new("idf-mean")
};

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(words_met::need_idf(model).map(|()| {
        weighted_sum::scorer(Measure::Cosine, |phrase| {
            weighted_sum::coefficients(phrase, |word| words_met::idf(phrase, word))
        })
    }))
}
