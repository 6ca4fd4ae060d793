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
    let mut numbers = Vec::with_capacity(question.texts.len() * embedded.dims);
    for vector in embedded.vectors {
        match vector {
            Some(mut vector) => {
                if question.normalize {
                    set_length_1(&mut vector);
                }
                numbers.extend(vector);
            }
            None => numbers.resize(numbers.len() + embedded.dims, 0.0),
        }
    }
    let json = json!({
        "method": question.query.method.name(),
        "dimensions": embedded.dims,
        "unscored": embedded.unscored,
        "reasons": embedded.reasons,
        "truncated": embedded.truncated,
    });
    Ok(Answer { json, numbers })
}
