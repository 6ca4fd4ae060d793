//! One text against many.

use cognate::Engine;
use cognate::engine::rank::Question as RankQuestion;
use cognate::engine::{Candidates, PageOptions, QueryError};
use serde_json::json;

use crate::Answer;
use crate::error::Problem;
use crate::question::Question;

/// Candidates best first; those that cannot be scored come last, without a score.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    if question.min_score.is_some_and(f64::is_nan) {
        return Err(Problem::setting("minScore", "a number", "NaN"));
    }
    let page = PageOptions { top_k: question.top_k, ..PageOptions::default() };
    let asked = RankQuestion {
        // Scores have single precision; so a score reaches the number that it is printed as.
        min_score: question.min_score.map(|least| least as f32),
        page,
        ..RankQuestion::new(question.text(0), question.query)
    };
    let texts = question.texts.get(1..).unwrap_or_default();
    let go_on = || Ok::<_, QueryError>(());
    let made = engine.rank_pages(&asked, &Candidates::new(texts), go_on)?;
    let Some(page) = made.one() else { return Ok(json!({}).into()) };
    let listed = page.results().map(|found| {
        let mut result = json!({ "index": found.index, "score": found.score });
        if let Some(related) = found.related {
            result["related"] = related.into();
        }
        result
    });
    let (listed, ranking): (Vec<_>, _) = (listed.collect(), &page.ranking);
    Ok(json!({
        "method": question.query.method.name(),
        "measure": ranking.measure.name(),
        "results": listed,
        "unscored": ranking.unscored,
        "reasons": ranking.reasons,
        "truncated": ranking.truncated,
        "queryKnown": ranking.query_known,
    })
    .into())
}
