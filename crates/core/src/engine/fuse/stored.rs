//! Fusions stored in the model file, each under a name: section `fused`, which has settings alone.
//!
//! They are JSON: an object that holds, for each name, `by`, `parts` and how the weights were
//! learned. A part is `{"method", "measure"?, "weight"}` or `{"scores", "weight"}`. Requests call
//! the fusion of the name `NAME` `fused:NAME`; names are matched as those of methods are. A part
//! may be a method that this version does not know: then that fusion cannot be used, but the model
//! can.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::fuse::{FuseBy, Fusion, Part, Source};
use crate::engine::{Engine, QueryError};
use crate::methods::{Measure, Method, Unavailable};
use crate::model::draft::Draft;
use crate::model::{Model, ModelError};

const SECTION: &str = "fused";
/// Prefix of the names of fused methods.
pub const PREFIX: &str = "fused:";
/// Maximum number of characters of a name after [`PREFIX`].
const LONGEST_NAME: usize = 64;

/// A fusion as the model file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFusion {
    /// The rule that combines the rankings.
    pub by: FuseBy,
    /// The rankings.
    pub parts: Vec<StoredPart>,
    /// The data that the weights were learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

/// A part as the model file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredPart {
    /// The method, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The measure of the method's vectors; none for the method's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// The name of the caller's numbers, where there is no method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<String>,
    /// The part's weight.
    pub weight: f64,
}

/// The data that weights were learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// The files' names.
    pub on: Vec<String>,
    /// Their queries that counted.
    pub queries: u64,
    /// Mean average precision over these.
    pub map: f64,
}

/// A fusion of a model, usable if the model can serve its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedMethod {
    name: Arc<str>,
    stored: StoredFusion,
    fusion: Result<Arc<Fusion>, Unavailable>,
}

impl FusedMethod {
    /// The fusion's name, `fused:` included.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The fusion as the model file stores it.
    pub fn stored(&self) -> &StoredFusion {
        &self.stored
    }

    /// The parts of the fusion, in a sentence.
    pub fn summary(&self) -> String {
        let term = |part: &StoredPart| {
            let name = part.method.as_deref().or(part.scores.as_deref()).unwrap_or_default();
            let measure = part.measure.as_deref();
            let measure = measure.map(|measure| format!("/{measure}")).unwrap_or_default();
            format!("{:.3} {name}{measure}", part.weight)
        };
        let terms: Vec<String> = self.stored.parts.iter().map(term).collect();
        let how = match self.stored.by {
            FuseBy::Rrf => "Reciprocal ranks",
            FuseBy::Zscore => "Standardised scores",
        };
        format!("{how}, weighted: {}.", terms.join(" + "))
    }
}

/// Why a fusion cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// A name that requests could not use.
    #[error(
        "`{0}` cannot be the name of a fused method: expected 1 to {LONGEST_NAME} small letters, \
         digits, `-` and `.`, the first a letter or a digit"
    )]
    Name(String),
    /// Parts that cannot be fused.
    #[error("{0}")]
    Parts(String),
}

/// Every fusion of a model, by its name without `fused:`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fusions(BTreeMap<String, FusedMethod>);

impl Fusions {
    /// Reads the fusions of a model file, if it has any. A malformed section is an error.
    pub fn read(model: &Model) -> Result<Self, ModelError> {
        let Some(section) = model.section(SECTION) else { return Ok(Self::default()) };
        let again = |problem: String| {
            let problem = format!(
                "{problem}; write it again with `cognate eval ranking --combine … --output`"
            );
            section.broken(problem)
        };
        let stored: BTreeMap<String, StoredFusion> = serde_json::from_str(section.settings)
            .map_err(|error| again(format!("settings: {error}")))?;
        let mut fusions = Self::default();
        for (name, stored) in stored {
            fusions.insert(&name, stored).map_err(|error| again(format!("{name}: {error}")))?;
        }
        Ok(fusions)
    }

    /// Puts a fusion in, in place of an earlier one of that name.
    pub fn insert(&mut self, name: &str, stored: StoredFusion) -> Result<&FusedMethod, KeepError> {
        let fit = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || "-.".contains(character)
        };
        let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !begins || name.len() > LONGEST_NAME || !name.chars().all(fit) {
            return Err(KeepError::Name(name.chars().take(LONGEST_NAME).collect()));
        }
        let fusion = fusion(&stored).map_err(KeepError::Parts)?.map(Arc::new);
        let full: Arc<str> = format!("{PREFIX}{name}").into();
        let fused = FusedMethod { name: full, stored, fusion };
        Ok(match self.0.entry(name.to_owned()) {
            Entry::Vacant(place) => place.insert(fused),
            Entry::Occupied(place) => {
                let kept = place.into_mut();
                *kept = fused;
                kept
            }
        })
    }

    /// Every fusion, by name.
    pub fn iter(&self) -> impl Iterator<Item = &FusedMethod> {
        self.0.values()
    }

    /// Puts the section into a draft.
    pub fn put(&self, draft: &mut Draft<'_>) {
        let stored: BTreeMap<&String, &StoredFusion> =
            self.0.iter().map(|(name, fused)| (name, &fused.stored)).collect();
        draft.set_section(SECTION, serde_json::json!(stored).to_string(), Vec::new());
    }
}

/// The stored fusion, or why this version cannot use it; a fusion that no version could use is an
/// error.
fn fusion(stored: &StoredFusion) -> Result<Result<Fusion, Unavailable>, String> {
    let mut parts = Vec::new();
    let mut unavailable = None;
    for (place, part) in stored.parts.iter().enumerate() {
        let source = match (&part.method, &part.scores) {
            (Some(method), None) => {
                let measure = part.measure.as_deref();
                let known = measure.map(str::parse::<Measure>);
                match (Method::named(method), known) {
                    (Some(method), None) => Source::Method(method, None),
                    (Some(method), Some(Ok(measure))) => Source::Method(method, Some(measure)),
                    _ => {
                        let what = measure.map(|name| format!("/{name}")).unwrap_or_default();
                        unavailable.get_or_insert(Unavailable {
                            missing: format!("this version has no method `{method}{what}`"),
                            remedy: "serve the model with a newer one".to_owned(),
                        });
                        Source::Run(String::new())
                    }
                }
            }
            (None, Some(run)) if part.measure.is_none() && !run.is_empty() => {
                Source::Run(run.clone())
            }
            _ => return Err(format!("part {place}: expected either `method` or `scores`")),
        };
        parts.push(Part { source, weight: part.weight });
    }
    let fusion = Fusion::new(stored.by, parts).map_err(|error| error.to_string())?;
    Ok(unavailable.map_or(Ok(fusion), Err))
}

/// A method or a fusion that ranks candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ranker<'e> {
    /// A method.
    Method(Method),
    /// A fusion that the model stores.
    Fused(&'e FusedMethod),
}

/// Why a fused method cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FusedProblem {
    /// The model has no fusion of that name; these exist.
    #[error("is none of the model's fused methods; it has {}", listed(.0))]
    Unknown(Vec<Arc<str>>),
    /// A fusion can only rank.
    #[error("only ranks candidates for a query")]
    OnlyRanks,
    /// A fusion has no measure.
    #[error("has a measure for each of its parts and cannot use another")]
    Measured,
    /// Its scores belong to no single method.
    #[error("has no threshold: those are found for single methods")]
    NotCalibrated,
    /// The model lacks what a part needs.
    #[error("cannot be used with this model: {0}")]
    Unavailable(Unavailable),
}

fn listed(names: &[Arc<str>]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Engine {
    /// Every fused method of the model.
    pub fn fusions(&self) -> &Fusions {
        &self.fusions
    }

    /// Returns the method or fusion that `name` means: a method, an alias, `auto`, or a fusion of the model.
    pub fn ranker(&self, name: &str) -> Result<Ranker<'_>, QueryError> {
        match self.fused(name) {
            Some(fused) => fused.map(Ranker::Fused),
            None => self.method(name).map(Ranker::Method),
        }
    }

    /// The fused method of that name; `None` if the name does not begin with `fused:`.
    pub(in crate::engine) fn fused(&self, name: &str) -> Option<Result<&FusedMethod, QueryError>> {
        // Names are short; a long one is no name, and is not worth the copying.
        let short: String = name.trim().chars().take(PREFIX.len() + LONGEST_NAME + 1).collect();
        let wanted = short.to_lowercase().replace('_', "-");
        let own = wanted.strip_prefix(PREFIX)?;
        Some(self.fusions.0.get(own).ok_or_else(|| {
            let known = self.fusions.iter().map(|fused| Arc::clone(&fused.name)).collect();
            QueryError::Fused { name: wanted.clone(), problem: FusedProblem::Unknown(known) }
        }))
    }

    /// The fusion behind a fused method, if the model can serve all its parts.
    pub fn fusion(&self, fused: &FusedMethod) -> Result<Arc<Fusion>, QueryError> {
        let refused = |reason: &Unavailable| QueryError::Fused {
            name: fused.name.to_string(),
            problem: FusedProblem::Unavailable(reason.clone()),
        };
        let fusion = fused.fusion.as_ref().map_err(refused)?;
        let lacking = fusion.methods().find_map(|(_, method, _)| self.unavailable(method));
        lacking.map_or(Ok(Arc::clone(fusion)), |reason| Err(refused(reason)))
    }
}
