//! Fuses several rankings of the same candidates: by methods of this engine, and by scores that the
//! caller provides (a *run*, as of a search engine).
//!
//! [`combine`] turns a candidate's rank or score with each part into the fused score; weights are
//! divided by their sum. Scores of a fusion depend on the whole list of candidates, but mostly the
//! scores of its parts do not, so a long list can be scored in parts and put together at the end.
//! Which fusions are worth having, and how weights are learned, is not known here.

mod combine;
mod scores;
mod session;
pub mod stored;

pub use combine::{combine, standardised};
use serde::{Deserialize, Serialize};
pub use stored::{FusedMethod, FusedProblem, Fusions, Ranker};

use crate::choice::choice;
use crate::engine::{Engine, Query, QueryError};
use crate::methods::{Measure, Method, Reads};

/// Most parts of a fusion.
pub const MAX_PARTS: usize = 16;

/// How several rankings become one: by reciprocal ranks, or by scores standardised within the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = FuseRule))]
#[serde(rename_all = "snake_case")]
pub enum FuseBy {
    /// `Σ share / (60 + rank)`; a candidate that a part does not score gets nothing from it.
    #[default]
    Rrf,
    /// `Σ share · (score − mean) / deviation`; a candidate that a part does not score gets the lowest
    /// value of that part.
    Zscore,
}

choice!(FuseBy { Rrf = "rrf", Zscore = "zscore" });

impl FuseBy {
    /// The range of fused scores; infinite where they have no bound.
    pub fn range(self) -> (f32, f32) {
        match self {
            Self::Rrf => (0.0, 1.0 / 61.0),
            Self::Zscore => (f32::NEG_INFINITY, f32::INFINITY),
        }
    }

    /// The paper of the rule.
    pub fn paper(self) -> &'static str {
        match self {
            Self::Rrf => "Cormack, Clarke & Büttcher 2009",
            Self::Zscore => "Metzler & Croft 2007",
        }
    }
}

/// The source of a part's scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A method, with a measure or by its own.
    Method(Method, Option<Measure>),
    /// Scores of the caller, by the run's name.
    Run(String),
}

/// One of the combined rankings.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The source of its scores.
    pub source: Source,
    /// The part's weight.
    pub weight: f64,
}

/// Rankings to fuse, their weights, and the rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Fusion {
    by: FuseBy,
    parts: Vec<Part>,
}

/// Why rankings cannot be fused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FuseError {
    /// There are no parts, or too many.
    #[error("expected 1 to {MAX_PARTS} parts, got {0}")]
    Parts(usize),
    /// A weight that is negative or not a number.
    #[error("part {part}: expected a weight from 0 up")]
    Weight {
        /// The part's index.
        part: usize,
    },
    /// Every weight is 0.
    #[error("expected a weight above 0")]
    NoWeight,
}

impl Fusion {
    /// Checks the number of parts and their weights.
    pub fn new(by: FuseBy, parts: Vec<Part>) -> Result<Self, FuseError> {
        if parts.is_empty() || parts.len() > MAX_PARTS {
            return Err(FuseError::Parts(parts.len()));
        }
        let unfit = |part: &Part| !(part.weight.is_finite() && part.weight >= 0.0);
        if let Some(part) = parts.iter().position(unfit) {
            return Err(FuseError::Weight { part });
        }
        let sum = parts.iter().map(|part| part.weight).sum::<f64>();
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(FuseError::NoWeight);
        }
        Ok(Self { by, parts })
    }

    /// The rule that combines the rankings.
    pub fn by(&self) -> FuseBy {
        self.by
    }

    /// The rankings.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the parts that are methods, each with its index and measure.
    pub fn methods(&self) -> impl Iterator<Item = (usize, Method, Option<Measure>)> {
        let method = |(place, part): (usize, &Part)| match part.source {
            Source::Method(method, measure) => Some((place, method, measure)),
            Source::Run(_) => None,
        };
        self.parts.iter().enumerate().filter_map(method)
    }

    /// The caller's runs among them, each with its index and name.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &str)> {
        self.parts.iter().enumerate().filter_map(|(place, part)| match &part.source {
            Source::Run(name) => Some((place, name.as_str())),
            Source::Method(..) => None,
        })
    }
}

impl Fusion {
    /// The method to read texts for, so that every part can score them: the first that needs words,
    /// or else the first; `otherwise` if there is none.
    pub fn reading(&self, otherwise: Method) -> Method {
        let methods = || self.methods().map(|(_, method, _)| method);
        let words = methods().find(|method| method.info().reads == Reads::Words);
        words.or_else(|| methods().next()).unwrap_or(otherwise)
    }
}

impl Engine {
    /// Checks that the model can serve every part of a fusion. Returns the index of the first part that
    /// it cannot serve, and the reason.
    pub fn check_fusion(&self, fusion: &Fusion, query: &Query) -> Result<(), (usize, QueryError)> {
        fusion.methods().try_for_each(|(place, method, measure)| {
            self.check(&Query { method, measure, ..*query }).map_err(|error| (place, error))
        })
    }
}
