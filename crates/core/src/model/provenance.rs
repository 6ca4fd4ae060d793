//! How the weights in a model file were trained: files, settings and results, kept so that a result
//! can be traced and made again. Nothing is computed with it.

use serde::{Deserialize, Serialize};

/// How a set of weights was trained. Nothing is computed with it, so what a file does not say is
/// left empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainingRecord {
    /// The loss, `median` or `contrastive`.
    pub loss: String,
    /// How steep the median loss is, in multiples of `1 / unit`.
    pub kappa: Option<f64>,
    /// What distances were measured in: the median distance under the untrained weights.
    pub unit: f64,
    /// What the sum of the squared weights counts in the loss.
    pub lambda: f64,
    /// How many weights there are, M.
    pub max_length: usize,
    /// What fixed random choices.
    pub seed: u64,
    /// The pairs trained on.
    pub couples: usize,
    /// Pairs left out because a text of theirs has no known word.
    pub left_out: usize,
    /// How often they were gone through.
    pub epochs: usize,
    /// The mean loss of the last epoch.
    pub final_loss: f64,
    /// What the weights are worth on pairs not trained on.
    pub validation: Option<Validation>,
    /// The files of pairs.
    pub files: Vec<TrainingFile>,
    /// The beginning of the digest of the word vectors.
    pub vectors: String,
    /// The version of the program.
    pub version: String,
}

/// What weights are worth on pairs not trained on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Validation {
    /// The pairs.
    pub couples: usize,
    /// With the weights that training began with, the same for every rank: the plain mean.
    pub before: Separation,
    /// With the trained weights.
    pub after: Separation,
}

/// How well distances part related pairs from others.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Separation {
    /// The share on the wrong side of the threshold that is best for the pairs trained on.
    pub split_error: f64,
    /// Jensen-Shannon divergence of the distances of both kinds, base 2, over 100 equal bins of
    /// their joint range.
    pub js_divergence: f64,
}

/// A file of pairs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrainingFile {
    /// Its name without folder.
    pub name: String,
    /// BLAKE3 of its bytes.
    pub digest: String,
}
