//! How the weights in a model file were trained: files, settings and results, kept so that a result
//! can be traced and made again. Nothing is computed with it.

use serde::{Deserialize, Serialize};

/// A record of how a set of weights was trained. Nothing is computed with it, so missing fields stay
/// empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainingRecord {
    /// The loss, `median` or `contrastive`.
    pub loss: String,
    /// The steepness of the median loss, in multiples of `1 / unit`.
    pub kappa: Option<f64>,
    /// The unit of distances: the median distance under the untrained weights.
    pub unit: f64,
    /// The factor of the sum of the squared weights in the loss.
    pub lambda: f64,
    /// The number of weights, M.
    pub max_length: usize,
    /// The seed of random choices.
    pub seed: u64,
    /// The pairs trained on.
    pub couples: usize,
    /// Pairs left out because a text of theirs has no known word.
    pub left_out: usize,
    /// The number of epochs.
    pub epochs: usize,
    /// The mean loss of the last epoch.
    pub final_loss: f64,
    /// The quality of the weights on pairs that they were not trained on.
    pub validation: Option<Validation>,
    /// The files of pairs.
    pub files: Vec<TrainingFile>,
    /// The beginning of the digest of the word vectors.
    pub vectors: String,
    /// The version of the program.
    pub version: String,
}

/// The quality of weights on pairs that they were not trained on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Validation {
    /// The pairs.
    pub couples: usize,
    /// With the initial weights, which are equal for every rank (the plain mean).
    pub before: Separation,
    /// With the trained weights.
    pub after: Separation,
}

/// How well distances separate related pairs from others.
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
    /// The file's name without folder.
    pub name: String,
    /// BLAKE3 of its bytes.
    pub digest: String,
}
