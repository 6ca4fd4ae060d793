//! `--set-auto`: stores the method with the best figures as the model's `auto` method.
//!
//! Only similarity methods with their own measure can be `auto`, because `auto` also scores pairs,
//! and a request that names no measure uses the method's own. Rankers, columns, ablations and
//! combinations are measured but never chosen.

use std::path::{Path, PathBuf};

use cognate::engine::Engine;
use cognate::methods::{Kind, Method};
use cognate::model::format::AUTO_METHOD;
use cognate::model::update::Update;
use cognate::model::writer::{Draft, Written};
use serde::Serialize;

use crate::report::{Figures, Report};
use crate::{EvalError, Result};

#[derive(Debug, Clone, Serialize)]
pub struct AutoSet {
    pub before: &'static str,
    pub after: &'static str,
    pub criterion: &'static str,
    /// The figure of the method before; `None` if it was not measured.
    pub figure_before: Option<String>,
    pub figure_after: String,
    /// Whether the model has thresholds, but none for the new method: requests with `threshold:
    /// "calibrated"` will be refused.
    pub uncalibrated: bool,
    pub path: PathBuf,
    /// The written file; `None` if the model already had this `auto`.
    #[serde(flatten)]
    pub written: Option<Written>,
}

impl std::fmt::Display for AutoSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, after, criterion, figure_after, .. } = self;
        if before == after {
            write!(f, "auto stays {after}: {criterion}: {figure_after}")?;
        } else {
            let old = self.figure_before.as_deref().unwrap_or("not measured");
            write!(
                f,
                "auto was {before}, is {after}: {criterion}: {figure_after} ({before} {old})"
            )?;
        }
        if self.uncalibrated {
            write!(
                f,
                "\n  no threshold is stored for {after}: `cognate eval calibrate` finds one"
            )?;
        }
        write!(f, "\n{}", self.path.display())?;
        match &self.written {
            Some(written) => write!(f, "\n{written}"),
            None => write!(f, "\n  the file says so already; nothing was written"),
        }
    }
}

/// Stores the best measured method as `auto`: in `output`, or if that is absent in the model file
/// that was measured.
pub fn set_auto<F: Figures>(
    engine: &Engine,
    report: &Report<F>,
    output: Option<&Path>,
) -> Result<AutoSet> {
    let figures = &report.figures;
    let mut best: Option<(Method, f64)> = None;
    let mut before = None;
    for (place, facts) in report.methods.iter().enumerate() {
        let Some((method, figure)) = eligible(&facts.name).zip(figures.figure(place)) else {
            continue;
        };
        if method == engine.auto() {
            before = Some(figure);
        }
        // Of equal methods the first in the list wins.
        if best.is_none_or(|(_, known)| figure > known) {
            best = Some((method, figure));
        }
    }
    let Some((method, figure)) = best else {
        let problem = "--set-auto: expected at least one similarity method by its own measure \
                       among those that are measured";
        return Err(EvalError::Options(problem.to_owned()));
    };
    let model = engine.model();
    let named = model.metadata().get(AUTO_METHOD).map(String::as_str);
    let written = if output.is_none() && named == Some(method.name()) {
        None
    } else {
        let update = Update::new(model, output.unwrap_or(model.path()))?;
        let mut draft = Draft::from_model(update.model());
        draft.metadata.insert(AUTO_METHOD.to_owned(), method.name().to_owned());
        Some(update.write(draft)?)
    };
    let calibrations = engine.calibrations();
    let measure = engine.default_measure(method);
    Ok(AutoSet {
        before: engine.auto().name(),
        after: method.name(),
        criterion: figures.criterion(),
        figure_before: before.map(|figure| figures.show(figure)),
        figure_after: figures.show(figure),
        uncalibrated: !calibrations.is_empty() && engine.calibration(method, measure).is_none(),
        path: written.as_ref().map_or(model.path(), |written| &written.path).to_owned(),
        written,
    })
}

/// The method with that name in a report, if it can be `auto`. With a measure other than its own, a
/// method has a longer name.
fn eligible(name: &str) -> Option<Method> {
    let method = Method::named(name).filter(|method| method.name() == name)?;
    (method.info().kind == Kind::Similarity).then_some(method)
}
