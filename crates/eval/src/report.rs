//! The report of one evaluation, as `--json` writes it.
//!
//! The format is stable: fields may be added, and `format` changes when one is removed or changes
//! its meaning. Correlations, precisions and areas are shares (0.586, not 58.6); p values are
//! two-sided, intervals are for 95 %. A figure without a value for the data is `null`.

use std::borrow::Cow;

use cognate::engine::Engine;
use serde::Serialize;

use crate::contenders::Field;

/// Name and version of the format.
pub(super) const FORMAT: &str = "cognate-eval-1";

/// The figures of an evaluation, with the facts that fix them.
#[derive(Debug, Clone, Serialize)]
pub struct Report<F> {
    /// Name and version of the format.
    pub format: &'static str,
    pub model: ModelFacts,
    /// The contenders, in the order of every list of results.
    pub methods: Vec<MethodFacts>,
    /// The contender that others are tested against.
    pub baseline: String,
    /// Methods left out because the model does not support them.
    pub unavailable: Vec<LeftOut>,
    /// The seed of every random draw.
    pub seed: u64,
    pub resamples: usize,
    /// The task that the figures belong to.
    pub task: &'static str,
    #[serde(flatten)]
    pub figures: F,
}

pub trait Figures: Serialize {
    /// The task's name in the report.
    const TASK: &'static str;
}

#[derive(Debug, Clone, Serialize)]
pub struct ModelFacts {
    /// The model file's name, without folder and ending.
    pub name: String,
    /// Sixteen hexadecimal digits that depend on every byte of the file.
    pub fingerprint: String,
    pub words: usize,
    pub dims: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct MethodFacts {
    pub name: String,
    /// The method's canonical name, `column`, or `combination`.
    pub method: Cow<'static, str>,
    /// How vectors are compared; `null` for a column and for a method without vectors.
    pub measure: Option<&'static str>,
    pub summary: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub method: Cow<'static, str>,
    /// What the model lacks, and the command that adds it.
    pub reason: String,
}

impl<F: Figures> Report<F> {
    pub(super) fn new(engine: &Engine, field: &Field, figures: F, draws: (u64, usize)) -> Self {
        let model = engine.model();
        let stem = model.path().file_stem().unwrap_or_default();
        let methods = field.contenders.iter().map(|contender| MethodFacts {
            name: contender.name.clone(),
            method: contender.method.clone(),
            measure: contender.measure.map(|measure| measure.name()),
            summary: contender.summary.clone(),
        });
        let baseline = field.contenders.get(field.baseline);
        Self {
            format: FORMAT,
            model: ModelFacts {
                name: stem.to_string_lossy().into_owned(),
                fingerprint: model.fingerprint().to_owned(),
                words: model.vocabulary().len(),
                dims: model.dims(),
            },
            methods: methods.collect(),
            baseline: baseline.map(|contender| contender.name.clone()).unwrap_or_default(),
            unavailable: field
                .unavailable
                .iter()
                .map(|(method, reason)| LeftOut { method: method.clone(), reason: reason.clone() })
                .collect(),
            seed: draws.0,
            resamples: draws.1,
            task: F::TASK,
            figures,
        }
    }

    pub fn json(&self) -> String {
        // Every key is a string and every number finite, so serialising cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// The difference between a method and the baseline, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The method's figure less the baseline's.
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
    /// Whether the interval excludes 0.
    pub significant: bool,
}
