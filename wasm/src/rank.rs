//! One text against many.

use cognate::Engine;
use cognate::engine::RankOptions;
use serde_json::json;

use crate::Answer;
use crate::error::Problem;
use crate::question::Question;

/// Candidates best first; those that cannot be scored come last, without a score.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    if question.min_score.is_some_and(f64::is_nan) {
        return Err(Problem::setting("minScore", "a number", "NaN"));
    }
    let options = RankOptions {
        query: question.query,
        top_k: question.top_k,
        // Scores have single precision; so a score reaches the number that it is printed as.
        min_score: question.min_score.map(|least| least as f32),
    };
    let candidates = question.texts.get(1..).unwrap_or_default();
    let query = question.text(0);
    let texts = candidates.iter().map(AsRef::as_ref);
    let read_as = engine.read_as(query, texts).filter(|_| !question.query.refuse_unscored);
    let query = read_as.as_deref().unwrap_or(query);
    let ranking = engine.rank_best(query, candidates, &options)?;
    let known = if read_as.is_some() { Some(0.0) } else { ranking.query_known };
    let scored: Vec<_> = ranking
        .results
        .iter()
        .map(|one| (one.score, candidates.get(one.index).copied().unwrap_or_default()))
        .collect();
    let mut related =
        engine.related_each(Some(query), &scored, &question.query)?.into_iter().flatten();
    let listed = ranking.listed(&options).map(|(index, score)| {
        let mut result = json!({ "index": index, "score": score });
        if let Some(related) = related.next() {
            result["related"] = related.into();
        }
        result
    });
    let listed: Vec<_> = listed.collect();
    Ok(json!({
        "method": question.query.method.name(),
        "measure": ranking.measure.name(),
        "results": listed,
        "unscored": ranking.unscored,
        "reasons": ranking.reasons,
        "truncated": ranking.truncated,
        "queryKnown": known,
        "queryReadAs": read_as,
    })
    .into())
}
