//! One text against many.

use cognate::Engine;
use cognate::engine::rank::{Asked, Question as RankQuestion};
use cognate::engine::{
    Candidates, Duplicate, Liked, Likes, PageOptions, QueryError, Weight, least_score,
};
use serde_json::json;

use crate::Answer;
use crate::error::Problem;
use crate::question::{LikesAsked, Question};

/// Candidates best first; those that cannot be scored come last, without a score.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    let asked = &question.ranking;
    let page = PageOptions {
        top_k: asked.top_k,
        collapse: asked.collapse.map(least_score),
        drop_opposed: asked.drop_opposed,
        ..PageOptions::default()
    };
    let (ranked_for, texts) = match &asked.likes {
        None => (question.text(0).into(), question.texts.get(1..).unwrap_or_default()),
        Some(likes) => liked(likes, &question.texts)?,
    };
    let asked = RankQuestion {
        min_score: asked.min_score.map(least_score),
        page,
        ..RankQuestion::new(ranked_for, question.query)
    };
    let go_on = || Ok::<_, QueryError>(());
    let made = engine.rank_pages(&asked, &Candidates::new(texts), go_on)?;
    let Some(page) = made.one() else { return Ok(json!({}).into()) };
    let listed = page.results().map(|found| {
        let mut result = json!({ "index": found.index, "score": found.score });
        if let Some(related) = found.related {
            result["related"] = related.into();
        }
        if !found.duplicates.is_empty() {
            let one = |twin: &Duplicate| json!({
                "index": twin.ranked.index, "score": twin.ranked.score, "similarity": twin.similarity,
            });
            result["duplicates"] = found.duplicates.iter().map(one).collect();
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

/// The liked and disliked texts, which stand before the candidates, and these.
fn liked<'q, 't>(
    asked: &LikesAsked,
    texts: &'q [&'t str],
) -> Result<(Asked<'t>, &'q [&'t str]), Problem> {
    let weight = |name, number: f32| {
        Weight::new(number)
            .ok_or_else(|| Problem::setting(name, Weight::EXPECTED, &number.to_string()))
    };
    let (likes, rest) = texts.split_at_checked(asked.weights.len()).unwrap_or_default();
    let (dislikes, candidates) = rest.split_at_checked(asked.disliked).unwrap_or_default();
    let liked = likes.iter().zip(&asked.weights);
    let liked = liked
        .map(|(&text, &number)| Ok(Liked { text: text.into(), weight: weight("like", number)? }));
    let unlike_weight =
        asked.unlike_weight.map(|number| weight("unlikeWeight", number)).transpose()?;
    let strategy = asked.strategy.as_deref().map(str::parse).transpose();
    let likes = Likes {
        liked: liked.collect::<Result<_, Problem>>()?,
        disliked: dislikes.iter().map(|&text| text.into()).collect(),
        strategy: strategy.map_err(Problem::unexpected("strategy"))?.unwrap_or_default(),
        unlike_weight: unlike_weight.unwrap_or(Likes::UNLIKE_WEIGHT),
    };
    Ok((likes.into(), candidates))
}
