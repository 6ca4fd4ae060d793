//! Computes the scores of all contenders for all texts, on every core.
//!
//! A text that the engine cannot score (no known word, or only white space) is not dropped: a pair
//! counts as 0, a candidate ranks below every scored one, as in `/rank`.

use std::sync::atomic::{AtomicU64, Ordering};

use cognate::engine::fuse::Fusion;
use cognate::engine::{Engine, Measure, QueryError, Scores as Answer};
use cognate_files::progress::Progress;
use rayon::prelude::*;

use crate::contenders::{Contender, Scores, query};
use crate::datasets::{RankingSet, Topic, is_blank};
use crate::{EvalError, Result};

/// Pairs that a thread scores at a time, so that a single large file occupies all threads.
const BLOCK: usize = 1000;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Scored {
    pub(super) scores: Vec<f64>,
    pub(super) unscored: usize,
    pub(super) truncated: usize,
}

/// For each file, by its name and pairs, the scores of each contender.
pub(super) fn pairs(
    engine: &Engine,
    contenders: &[Contender],
    files: &[(&str, &[(String, String)])],
) -> Result<Vec<Vec<Scored>>> {
    let blocks = files.iter().map(|(name, pairs)| (*name, pairs.chunks(BLOCK).collect()));
    let blocks: Vec<(&str, Vec<_>)> = blocks.collect();
    let scored = score(contenders, &blocks, |of, block| score_block(engine, of, block))?;
    let joined = |blocks: Vec<Scored>| {
        blocks.into_iter().fold(Scored::default(), |mut all, block| {
            all.scores.extend(block.scores);
            all.unscored += block.unscored;
            all.truncated += block.truncated;
            all
        })
    };
    Ok(scored.into_iter().map(|file| file.into_iter().map(joined).collect()).collect())
}

/// For each file, for each contender, for each topic, the scores of its candidates.
pub(super) fn rankings(
    engine: &Engine,
    contenders: &[Contender],
    files: &[RankingSet],
) -> Result<Vec<Vec<Vec<Scored>>>> {
    let files = files.iter().map(|set| (set.name.as_str(), set.topics.iter().collect()));
    let files: Vec<(&str, Vec<&Topic>)> = files.collect();
    score(contenders, &files, |of, topic| score_topic(engine, of, topic))
}

/// For each file, by its name and parts, for each contender, the scores of each part.
fn score<P: Sync>(
    contenders: &[Contender],
    files: &[(&str, Vec<P>)],
    work: impl Fn(&Contender, &P) -> Result<Scored, QueryError> + Sync,
) -> Result<Vec<Vec<Vec<Scored>>>> {
    let mut jobs = Vec::new();
    for (file, (name, parts)) in files.iter().enumerate() {
        for (place, contender) in contenders.iter().enumerate() {
            jobs.extend(parts.iter().map(|part| (file, place, contender, *name, part)));
        }
    }
    let done = map("scoring", &jobs, |(_, _, contender, name, part)| {
        work(contender, part)
            .map_err(|source| EvalError::Query { file: (*name).to_owned(), source })
    });
    let mut scored = vec![vec![Vec::new(); contenders.len()]; files.len()];
    for ((file, place, ..), part) in jobs.into_iter().zip(done) {
        scored[file][place].push(part?);
    }
    Ok(scored)
}

fn score_block(
    engine: &Engine,
    contender: &Contender,
    pairs: &[(String, String)],
) -> Result<Scored, QueryError> {
    let asked: Vec<usize> =
        (0..pairs.len()).filter(|&at| !is_blank(&pairs[at].0) && !is_blank(&pairs[at].1)).collect();
    let texts: Vec<(&str, &str)> =
        asked.iter().map(|&at| (pairs[at].0.as_str(), pairs[at].1.as_str())).collect();
    let answer = match &contender.scores {
        Scores::Method(query) => engine.similarity(&texts, query)?,
        Scores::Ablation(scorer, info) => {
            let mut own = engine.by(scorer, info);
            own.query = query(own.query.method, Measure::Cosine);
            own.similarity(&texts)?
        }
        // Files of pairs have no columns, and fusions need rankings.
        Scores::Column(_) | Scores::Fused(..) | Scores::Combination => Answer::default(),
    };
    let mut scored = Scored { scores: vec![0.0; pairs.len()], ..Scored::default() };
    for (at, score) in asked.iter().zip(&answer.scores) {
        scored.scores[*at] = f64::from(*score);
    }
    scored.unscored = pairs.len() - asked.len() + answer.unscored.len();
    scored.truncated = answer.truncated.len();
    Ok(scored)
}

fn score_topic(
    engine: &Engine,
    contender: &Contender,
    topic: &Topic,
) -> Result<Scored, QueryError> {
    let query = match &contender.scores {
        Scores::Method(query) => query,
        Scores::Column(place) => {
            let scores = topic.columns.get(*place).cloned().unwrap_or_default();
            return Ok(Scored { scores, ..Scored::default() });
        }
        Scores::Fused(fusion, places) => return score_fused(engine, fusion, places, topic),
        // Ablations do not rank, and combinations are computed from the other scores.
        Scores::Ablation(..) | Scores::Combination => return Ok(Scored::default()),
    };
    let mut scored =
        Scored { scores: vec![f64::NEG_INFINITY; topic.texts.len()], ..Scored::default() };
    scored.unscored = topic.texts.len();
    if is_blank(&topic.query) {
        return Ok(scored);
    }
    let asked: Vec<usize> =
        (0..topic.texts.len()).filter(|&at| !is_blank(&topic.texts[at])).collect();
    let texts: Vec<&str> = asked.iter().map(|&at| topic.texts[at].as_str()).collect();
    let answer = engine.rank(&topic.query, &texts, query)?;
    for ranked in &answer.results {
        if let Some(&at) = asked.get(ranked.index) {
            scored.scores[at] = f64::from(ranked.score);
        }
    }
    scored.unscored -= answer.results.len();
    scored.truncated = answer.truncated.len();
    Ok(scored)
}

/// Returns a topic's scores by a fused method, in the double precision by which the method ranks.
fn score_fused(
    engine: &Engine,
    fusion: &Fusion,
    places: &[usize],
    topic: &Topic,
) -> Result<Scored, QueryError> {
    let columns = places.iter().map(|&place| topic.columns.get(place).cloned());
    let runs: Vec<Vec<f64>> = columns.map(Option::unwrap_or_default).collect();
    // A blank query has no known word, but the columns have values.
    let text = Some(&*topic.query).filter(|query| !is_blank(query));
    let question = query(engine.auto(), Measure::Cosine);
    let (scores, truncated) =
        engine.fused_scores(text, &topic.texts, (fusion, &runs), &question)?;
    let unscored = scores.iter().filter(|score| !score.is_finite()).count();
    Ok(Scored { unscored, truncated: truncated.len(), scores })
}

/// Applies `work` to each item in parallel; results keep the order of the items.
pub(super) fn map<T: Sync, R: Send>(
    step: &'static str,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let progress = Progress::count(step);
    let done = AtomicU64::new(0);
    let counted = |item: &T| {
        let result = work(item);
        progress.at(done.fetch_add(1, Ordering::Relaxed) + 1, items.len() as u64);
        result
    };
    // Items take milliseconds and differ widely, so each is scheduled separately.
    items.par_iter().with_max_len(1).map(counted).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_stand_in_the_order_of_their_items() {
        let items: Vec<u64> = (0..1000).collect();
        let squares = super::map("squares", &items, |item| item * item);
        assert!(items.iter().zip(&squares).all(|(item, square)| item * item == *square));
        assert!(super::map("nothing", &[] as &[u64], |item| *item).is_empty());
    }
}
