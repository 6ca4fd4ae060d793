//! Mean of word vectors, each times the idf of its word (De Boom et al. 2016, section 5, "mean,
//! idf-weighted").
//!
//! `t = (1/n) Σ idf(w_i) v(w_i)`

use crate::methods::common::words_met;
use crate::methods::means::weighted_sum;
use crate::methods::{Cost, Info, Kind, Loaded, Measure, Reads};
use crate::model::Model;

/// The method's name, summary, source and cost.
pub const INFO: Info = Info {
    name: "idf-mean",
    kind: Kind::Similarity,
    cost: Cost::SUM,
    summary: "Mean of the words' vectors, each weighted by its idf, compared by cosine.",
    paper: "De Boom et al. 2016",
    range: (-1.0, 1.0),
    reads: Reads::Words,
    embeds: true,
    weights_frequency: true,
    ignoring_opposites: None,
};

/// Needs vectors and idf.
pub fn load(model: &Model) -> Loaded {
    if let Some(reason) = words_met::without_idf(model) {
        return Ok(Err(reason));
    }
    Ok(Ok(weighted_sum::scorer(Measure::Cosine, |phrase| {
        weighted_sum::coefficients(phrase, |word| words_met::idf(phrase, word))
    })))
}
