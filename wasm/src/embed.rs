//! The vectors of texts.

use cognate::Engine;
use cognate::engine::set_length_1;
use serde_json::json;

use crate::Answer;
use crate::error::Problem;
use crate::question::Question;

/// A vector a text, one after the other; zeros for a text without one.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    let embedded = engine.embed(&question.texts, &question.query)?;
    let dims = embedded.vectors.ncols();
    let json = json!({
        "method": question.query.method.name(),
        "dimensions": dims,
        "unscored": embedded.unscored,
        "reasons": embedded.reasons,
        "truncated": embedded.truncated,
    });
    let mut numbers = embedded.or_zeros();
    if question.normalize {
        numbers.chunks_exact_mut(dims.max(1)).for_each(set_length_1);
    }
    Ok(Answer { json, numbers })
}
