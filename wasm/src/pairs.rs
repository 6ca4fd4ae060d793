//! The scores of pairs of texts.

use cognate::Engine;
use serde_json::json;

use crate::Answer;
use crate::error::{Problem, of_pair};
use crate::question::Question;

/// A score a pair; 0 for one that cannot be scored.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    let pairs: Vec<(&str, &str)> =
        question.texts.as_chunks::<2>().0.iter().map(|&[a, b]| (a, b)).collect();
    let scored = engine.similarity(&pairs, &question.query).map_err(|error| {
        if question.one { Problem::Query(error, of_pair) } else { error.into() }
    })?;
    let mut json = json!({
        "method": question.query.method.name(),
        "measure": scored.measure.name(),
        "unscored": scored.unscored,
        "reasons": scored.reasons,
        "truncated": scored.truncated,
    });
    if question.query.threshold.is_some() {
        json["related"] = scored.related.into();
    }
    if question.query.opposes {
        json["opposes"] = json!(scored.opposes);
    }
    Ok(Answer { json, numbers: scored.scores })
}
