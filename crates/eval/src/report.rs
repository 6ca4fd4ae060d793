//! The outcome of one evaluation, in the shape that `--json` writes.
//!
//! The shape is stable: fields may be added, and `format` changes when one is removed or means
//! something else. Correlations, precisions and areas are shares (0.586, not 58.6); chances and
//! intervals are two-sided, 95 %. A figure that has no value for the data is `null`.

use std::borrow::Cow;

use cognate::engine::Engine;
use serde::Serialize;

use crate::contenders::Field;

/// The name and version of the shape.
pub(super) const FORMAT: &str = "cognate-eval-1";

/// What was measured, on what, with what.
#[derive(Debug, Clone, Serialize)]
pub struct Report<F> {
    /// Name and version of this shape.
    pub format: &'static str,
    pub model: ModelFacts,
    /// What was measured, in the order of every list of results.
    pub methods: Vec<MethodFacts>,
    /// The name that differences are tested against.
    pub baseline: String,
    /// Methods left out because the model cannot serve them.
    pub unavailable: Vec<LeftOut>,
    /// What fixed every random draw.
    pub seed: u64,
    /// How often items were drawn anew for an interval.
    pub resamples: usize,
    /// Of which kind the figures are.
    pub task: &'static str,
    #[serde(flatten)]
    pub figures: F,
}

/// Figures of a task.
pub trait Figures: Serialize {
    /// The task, as the report names it.
    const TASK: &'static str;
}

#[derive(Debug, Clone, Serialize)]
pub struct ModelFacts {
    /// Its file's name, without folder and ending.
    pub name: String,
    /// Sixteen hexadecimal digits that change with every byte of it.
    pub fingerprint: String,
    pub words: usize,
    pub dims: usize,
}

/// Something that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct MethodFacts {
    /// The name that its results stand under.
    pub name: String,
    /// The method's canonical name, `column`, or `combination`.
    pub method: Cow<'static, str>,
    /// What vectors of texts were compared by; `null` where a method has none, and for a column.
    pub measure: Option<&'static str>,
    pub summary: String,
}

/// A method that was left out.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub method: Cow<'static, str>,
    /// What the model lacks and which command adds it.
    pub reason: String,
}

impl<F: Figures> Report<F> {
    /// A report on the contenders of a field.
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
                dims: model.vectors().dims(),
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
        // Every key is a string and every number finite, so nothing here can fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The method's figure less the baseline's.
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
    /// Whether 0 is outside.
    pub significant: bool,
}
