//! The vectors of texts.

use cognate::Engine;
use serde_json::json;

use crate::Answer;
use crate::error::Problem;
use crate::question::Question;

/// A vector a text, one after the other; zeros for a text without one.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    let embedded = engine.embed(&question.texts, &question.query)?;
    let json = json!({
        "method": question.query.method.name(),
        "dimensions": embedded.vectors.ncols(),
        "unscored": embedded.unscored,
        "reasons": embedded.reasons,
        "truncated": embedded.truncated,
    });
    Ok(Answer { json, numbers: embedded.or_zeros() })
}
