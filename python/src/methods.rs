//! What there is to be known of every method, with this model.

use cognate::{Engine, Method};
use pyo3::prelude::*;

/// What is to be known of a method.
#[derive(IntoPyObject)]
pub(crate) struct MethodInfo {
    name: &'static str,
    kind: &'static str,
    embeds: bool,
    summary: &'static str,
    paper: &'static str,
    range: (f32, f32),
    threshold: Option<f64>,
    unavailable: Option<String>,
}

/// Every method, in the order of the documents.
pub(crate) fn all(engine: &Engine) -> Vec<MethodInfo> {
    let about = |method: &Method| {
        let info = method.info();
        let measure = engine.default_measure(*method);
        MethodInfo {
            name: info.name,
            kind: info.kind.name(),
            embeds: info.embeds,
            summary: info.summary,
            paper: info.paper,
            range: info.range,
            threshold: engine.calibration(*method, measure).map(|known| known.threshold.threshold),
            unavailable: engine.unavailable(*method).map(ToString::to_string),
        }
    };
    Method::ALL.iter().map(about).collect()
}
