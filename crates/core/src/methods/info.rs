//! What is known of a method without running it, and why a model may lack it.

use crate::methods::Cost;

/// What a method is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// How alike two texts are: symmetric, and most for a text and itself.
    Similarity,
    /// How well a candidate answers a query.
    Ranker,
}

/// What a text must have to be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// At least one word with a vector.
    Words,
    /// At least one token, known or not.
    Tokens,
}

/// What is to be known of a method without running it.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Its name, as requests and flags spell it.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// How much work it is.
    pub cost: Cost,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Between which numbers its scores lie; infinite where they have no bound.
    pub range: (f32, f32),
    /// What a text must have.
    pub reads: Reads,
    /// Whether it has a vector of one text alone.
    pub embeds: bool,
    /// Whether it weights words by how frequent they are, which vectors with
    /// [`crate::model::Frequency::InNorm`] already do.
    pub weights_frequency: bool,
}

/// Why a method cannot be used with a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{missing}; {remedy}")]
pub struct Unavailable {
    /// What the model file lacks.
    pub missing: String,
    /// Which command adds it.
    pub remedy: String,
}
