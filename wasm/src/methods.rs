//! What there is to be known of a model and of every method with it.

use cognate::{Engine, Measure, Method};
use serde_json::{Value, json};

/// What the model is, as the service's `/models` tells it.
pub(crate) fn about(engine: &Engine) -> Value {
    let model = engine.model();
    let measured = Method::ALL.iter().flat_map(|&of| Measure::ALL.map(|by| (of, by)));
    let thresholds = measured.filter_map(|(method, measure)| {
        let known = &engine.calibration(method, measure)?.threshold;
        Some(json!({
            "method": method.name(),
            "measure": measure.name(),
            "threshold": known.threshold,
            "aim": known.aim,
            "precision": known.precision,
            "recall": known.recall,
            "f1": known.f1,
        }))
    });
    json!({
        "fingerprint": model.fingerprint(),
        "words": model.vocabulary().len(),
        "dimensions": model.dims(),
        "bytes": model.bytes(),
        "licence": model.metadata().get("licence"),
        "auto": engine.auto().name(),
        "auto_embedding": engine.auto_embedding().name(),
        "thresholds": thresholds.collect::<Vec<_>>(),
    })
}

/// Every method, in the order of the documents.
pub(crate) fn all(engine: &Engine) -> Value {
    let bound = |end: f32| end.is_finite().then_some(end);
    let about = |&method: &Method| {
        let info = method.info();
        json!({
            "name": info.name,
            "kind": info.kind,
            "summary": info.summary,
            "paper": info.paper,
            "range": [bound(info.range.0), bound(info.range.1)],
            "embeds": info.embeds,
            "measure": engine.default_measure(method).name(),
            "reads": info.reads,
            "available": engine.unavailable(method).is_none(),
            "reason": engine.unavailable(method).map(ToString::to_string),
        })
    };
    Method::ALL.iter().map(about).collect::<Vec<_>>().into()
}
