//! Ranking: candidates by how alike they are to one text.
//!
//! Where only the best are wanted and the method knows a cheap upper bound of its scores, every
//! candidate's bound is taken first and candidates are scored by bound, best first, until no bound
//! left can reach the results. What is left out could not have been among them, ties included, so
//! the answer is the same bit for bit.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::engine::Engine;
use crate::engine::Place;
use crate::engine::Query;
use crate::engine::QueryError;
use crate::engine::RankOptions;
use crate::engine::Ranked;
use crate::engine::Ranking;
use crate::engine::finite;
use crate::engine::scorable;
use crate::engine::work::Work;
use crate::methods::Info;
use crate::methods::Reads;
use crate::methods::Scorer;
use crate::model::Phrase;

/// Candidates looked up and scored at once: enough to keep a kernel busy, few enough to stay in
/// the cache.
const BLOCK: usize = 32;

impl Engine {
    /// Candidates by how alike they are to a text, best first, equal scores by index; candidates
    /// that cannot be scored come last.
    pub fn rank<T: AsRef<str>>(
        &self,
        text: &str,
        candidates: &[T],
        query: &Query,
    ) -> Result<Ranking, QueryError> {
        self.rank_best(text, candidates, &RankOptions::all(*query))
    }

    /// The best of what [`Engine::rank`] answers: the same results, cut at the least score and at
    /// the number wanted.
    pub fn rank_best<T: AsRef<str>>(
        &self,
        text: &str,
        candidates: &[T],
        options: &RankOptions,
    ) -> Result<Ranking, QueryError> {
        let query = &options.query;
        let info = query.method.info();
        let scorer = self.scorer(query.method)?;
        let measure = self.measure(scorer, info, query)?;
        let mut work = Work::new(scorer, measure, &self.model);
        let mut one = work.phrase();
        let mut answer = Ranking { measure, ..Ranking::default() };
        answer.query_truncated = self.read(&mut one, text, query, Place::Query)?;
        let query_known = scorable(&one, info);
        if !query_known {
            query.accepts_unknown(Place::Query)?;
        }
        if query_known {
            work.prepare(&one);
        }
        let fewer = options.top_k.is_some_and(|most| most < candidates.len());
        let selective = fewer || options.min_score.is_some();
        let mut bounded = false;
        // A list-level scorer must see all candidates at once.
        let block = match scorer {
            Scorer::RankList(_) => candidates.len().max(1),
            Scorer::Embed(_) | Scorer::Compare(_) => BLOCK,
        };
        let tokens_alone = block > BLOCK && info.reads == Reads::Tokens;
        let reading = Reading { engine: self, query, info, query_known, block, tokens_alone };
        let mut results = Vec::with_capacity(candidates.len());
        let mut scores = Vec::new();
        let mut phrases: Vec<_> =
            (0..block.min(candidates.len()).min(BLOCK)).map(|_| work.phrase()).collect();
        reading.each_block(candidates, &mut phrases, &mut answer, |indexes, phrases| {
            scores.clear();
            scores.resize(indexes.len(), 0.0);
            bounded = selective && work.bounds(&one, phrases, &mut scores);
            if !bounded {
                work.score(&one, phrases, &mut scores);
            }
            for (&index, &score) in indexes.iter().zip(&scores) {
                results.push(Ranked { index, score: finite(score, info)? });
            }
            Ok(())
        })?;
        answer.scored = results.len();
        if bounded {
            results.sort_unstable_by(Ranked::order);
            let mut phrase = work.phrase();
            (results, answer.scored) = best_of_bounded(&results, options, |index| {
                let mut score = [0.0];
                if let Some(candidate) = candidates.get(index) {
                    self.read(&mut phrase, candidate.as_ref(), query, Place::Candidate(index))?;
                    work.score(&one, std::slice::from_ref(&phrase), &mut score);
                }
                finite(score[0], info)
            })?;
        }
        work.take_back(phrases.into_iter().chain([one]));
        answer.results = results;
        answer.order(options);
        Ok(answer)
    }
}

/// How candidates are read, once for bounds or scores.
struct Reading<'e> {
    engine: &'e Engine,
    query: &'e Query,
    info: &'static Info,
    query_known: bool,
    block: usize,
    /// Whether phrases let go of their words, so that a long list does not hold a vector for each
    /// word that is not listed.
    tokens_alone: bool,
}

impl<'e> Reading<'e> {
    /// Looks up candidates a block at a time, notes those that were cut short or cannot be
    /// scored, and shows the others with their indexes. The phrases are used again.
    fn each_block<T: AsRef<str>>(
        &self,
        candidates: &[T],
        phrases: &mut Vec<Phrase<'e>>,
        answer: &mut Ranking,
        mut visit: impl FnMut(&[usize], &[Phrase<'_>]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut indexes = Vec::new();
        for (number, chunk) in candidates.chunks(self.block).enumerate() {
            indexes.clear();
            for (place, candidate) in chunk.iter().enumerate() {
                let index = number * self.block + place;
                if phrases.len() == indexes.len() {
                    phrases.push(Phrase::new(&self.engine.model));
                }
                let Some(phrase) = phrases.get_mut(indexes.len()) else { continue };
                let (text, place) = (candidate.as_ref(), Place::Candidate(index));
                if self.engine.read(phrase, text, self.query, place)? {
                    answer.truncated.push(index);
                }
                answer.counts.saw(phrase);
                if self.tokens_alone {
                    phrase.keep_tokens_alone();
                }
                if self.query_known && scorable(phrase, self.info) {
                    indexes.push(index);
                } else {
                    self.query.accepts_unknown(place)?;
                    answer.unscored.push(index);
                }
            }
            // Methods count on words in every text they see, the query's among them.
            if !indexes.is_empty() {
                visit(&indexes, phrases.get(..indexes.len()).unwrap_or_default())?;
            }
        }
        Ok(())
    }
}

/// A result that is greater the worse it is, so that a heap shows the worst of the best.
struct Worst(Ranked);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worst {}

/// The best of candidates of which upper bounds are known, the best bound first, in the order of
/// results; and how many had to be scored to know.
fn best_of_bounded(
    bounds: &[Ranked],
    options: &RankOptions,
    mut score: impl FnMut(usize) -> Result<f32, QueryError>,
) -> Result<(Vec<Ranked>, usize), QueryError> {
    let most = options.top_k.unwrap_or(usize::MAX);
    let mut best: BinaryHeap<Worst> = BinaryHeap::new();
    let mut scored = 0;
    for bound in bounds {
        let full = best.len() >= most;
        // A score equal to its bound would still stand behind an equal one of a lower index.
        let behind = |worst: &Worst| bound.order(&worst.0) == Ordering::Greater;
        if !options.wants(bound.score) || (full && best.peek().is_none_or(behind)) {
            // Bounds after this one are no better.
            break;
        }
        let result = Ranked { index: bound.index, score: score(bound.index)? };
        scored += 1;
        if options.wants(result.score) {
            best.push(Worst(result));
            if full {
                best.pop();
            }
        }
    }
    Ok((best.into_sorted_vec().into_iter().map(|Worst(result)| result).collect(), scored))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::Method;
    use proptest::prelude::*;

    proptest! {
        /// Scores and bounds from a handful of values, so that ties abound.
        #[test]
        fn nothing_that_belongs_to_the_results_is_left_out(
            list in prop::collection::vec((0u8..6, 0u8..4), 0..40),
            top_k in prop::option::of(0usize..8),
            least in prop::option::of(0u8..8),
        ) {
            let exact = |(index, &(score, _)): (usize, &(u8, u8))| {
                Ranked { index, score: f32::from(score) }
            };
            let bound = |(index, &(score, slack)): (usize, &(u8, u8))| {
                Ranked { index, score: f32::from(score + slack) }
            };
            let min_score = least.map(f32::from);
            let query = Query::new(Method::Wmd);
            let options = RankOptions { query, top_k, min_score };
            let mut expected: Vec<Ranked> = list.iter().enumerate().map(exact).collect();
            expected.sort_by(Ranked::order);
            expected.retain(|result| min_score.is_none_or(|least| result.score >= least));
            expected.truncate(top_k.unwrap_or(usize::MAX));
            let mut bounds: Vec<Ranked> = list.iter().enumerate().map(bound).collect();
            bounds.sort_by(Ranked::order);
            let score = |index: usize| Ok(f32::from(list[index].0));
            let (results, scored) = best_of_bounded(&bounds, &options, score).unwrap();
            prop_assert_eq!(results, expected);
            prop_assert!(scored <= list.len());
        }
    }
}
