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
use crate::engine::workspace::Workspace;
use crate::methods::Against;
use crate::methods::Info;
use crate::methods::Measure;
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
        self.rank_session(text, options, |session| session.rank(candidates))?
    }

    /// Prepares a text for ranking any number of lists of candidates, such as the parts of a long
    /// one where [`Engine::ranks_in_parts`]. What was learnt of the text for one list serves the next,
    /// and changes no bit of a score.
    pub fn rank_session<R>(
        &self,
        text: &str,
        options: &RankOptions,
        run: impl FnOnce(&mut RankSession<'_, '_>) -> R,
    ) -> Result<R, QueryError> {
        let query = &options.query;
        let info = query.method.info();
        let scorer = self.scorer(query.method)?;
        let measure = self.measure(scorer, info, query)?;
        let mut workspace = Workspace::of(&self.model);
        let mut one = workspace.phrase();
        let query_truncated = self.read(&mut one, text, query, Place::Query)?;
        let query_known = scorable(&one, info);
        if !query_known {
            query.accepts_unknown(Place::Query)?;
        }
        let query_share = query.coverage.then(|| one.known_share());
        let against = query_known.then(|| scorer.against(measure, &one, workspace.scratch()));
        // A list-level scorer must see all candidates at once.
        let block = match scorer {
            Scorer::RankList(_) => usize::MAX,
            Scorer::Embed(_) | Scorer::Compare(_) => BLOCK,
        };
        let mut session = RankSession {
            engine: self,
            options,
            info,
            measure,
            query_truncated,
            query_share,
            block,
            against,
            phrases: Vec::new(),
            workspace: &mut workspace,
        };
        let ran = run(&mut session);
        session.end();
        workspace.take_back([one]);
        Ok(ran)
    }
}

/// A text at work, against which lists of candidates are ranked: see [`Engine::rank_session`].
pub struct RankSession<'s, 'e> {
    engine: &'e Engine,
    options: &'s RankOptions,
    info: &'static Info,
    measure: Measure,
    query_truncated: bool,
    /// The share of listed words of the text, if that is wanted.
    query_share: Option<f32>,
    /// Candidates looked up and scored at once.
    block: usize,
    /// Nothing for a text that has nothing to be scored by.
    against: Option<Box<dyn Against + 's>>,
    /// Used again for every block.
    phrases: Vec<Phrase<'e>>,
    workspace: &'s mut Workspace<'e>,
}

impl RankSession<'_, '_> {
    /// The best of a list of candidates, as [`Engine::rank_best`] answers.
    pub fn rank<T: AsRef<str>>(&mut self, candidates: &[T]) -> Result<Ranking, QueryError> {
        let (options, info) = (self.options, self.info);
        let mut answer = Ranking {
            measure: self.measure,
            query_truncated: self.query_truncated,
            query_known: self.query_share,
            ..Ranking::default()
        };
        let fewer = options.top_k.is_some_and(|most| most < candidates.len());
        let selective = fewer || options.min_score.is_some();
        let mut bounded = false;
        let mut results = Vec::with_capacity(candidates.len());
        let mut scores = Vec::new();
        let mut indexes = Vec::new();
        let block = self.block.min(candidates.len().max(1));
        for (number, chunk) in candidates.chunks(block).enumerate() {
            self.read_block(chunk, number * block, &mut indexes, &mut answer)?;
            // Methods count on words in every text they see, the query's among them.
            let Some(against) = self.against.as_mut().filter(|_| !indexes.is_empty()) else {
                continue;
            };
            let phrases = self.phrases.get(..indexes.len()).unwrap_or_default();
            let scratch = self.workspace.scratch();
            scores.clear();
            scores.resize(indexes.len(), 0.0);
            bounded = selective && against.bounds(phrases, &mut scores, scratch);
            if !bounded {
                against.score(phrases, &mut scores, scratch);
            }
            for (&index, &score) in indexes.iter().zip(&scores) {
                results.push(Ranked { index, score: finite(score, info)? });
            }
        }
        answer.scored = results.len();
        if bounded {
            results.sort_unstable_by(Ranked::order);
            (results, answer.scored) = best_of_bounded(&results, options, |index| {
                candidates.get(index).map_or(Ok(0.0), |text| self.score_again(text.as_ref(), index))
            })?;
        }
        answer.results = results;
        answer.order(options);
        Ok(answer)
    }

    /// Hands memory back to the workspace.
    fn end(mut self) {
        if let Some(against) = &mut self.against {
            against.give_back(self.workspace.scratch());
        }
        self.workspace.take_back(self.phrases);
    }

    /// Looks up a block of candidates, of which the first has the index `first`: notes those that
    /// were cut short or cannot be scored, and leaves the others among the phrases, with their
    /// indexes.
    fn read_block<T: AsRef<str>>(
        &mut self,
        block: &[T],
        first: usize,
        indexes: &mut Vec<usize>,
        answer: &mut Ranking,
    ) -> Result<(), QueryError> {
        let query = &self.options.query;
        // Of a long list phrases let go of their words, so that it does not hold a vector for each
        // word that is not listed.
        let tokens_alone = block.len() > BLOCK && self.info.reads == Reads::Tokens;
        indexes.clear();
        for (place, candidate) in block.iter().enumerate() {
            if self.phrases.len() == indexes.len() {
                let beyond = self.phrases.len() >= BLOCK;
                let model = &self.engine.model;
                let phrase = if beyond { Phrase::new(model) } else { self.workspace.phrase() };
                self.phrases.push(phrase);
            }
            let Some(phrase) = self.phrases.get_mut(indexes.len()) else { continue };
            let index = first + place;
            let place = Place::Candidate(index);
            let item = self.engine.read_item(phrase, candidate.as_ref(), query, place)?;
            if item.is_cut() {
                answer.truncated.push(index);
            }
            answer.counts.saw(phrase);
            if query.coverage {
                answer.known.push(phrase.known_share());
            }
            if tokens_alone {
                phrase.keep_tokens_alone();
            }
            let scorable = self.against.is_some() && scorable(phrase, self.info);
            match item.reason(scorable) {
                None => indexes.push(index),
                Some(reason) => {
                    query.accepts_unknown(place)?;
                    answer.unscored.push(index);
                    answer.reasons.push(reason);
                }
            }
        }
        Ok(())
    }

    /// Scores a candidate of which only the bound was known.
    fn score_again(&mut self, candidate: &str, index: usize) -> Result<f32, QueryError> {
        let mut score = [0.0];
        if let (Some(against), Some(phrase)) = (&mut self.against, self.phrases.first_mut()) {
            let place = Place::Candidate(index);
            self.engine.read(phrase, candidate, &self.options.query, place)?;
            let one = std::slice::from_ref(&*phrase);
            against.score(one, &mut score, self.workspace.scratch());
        }
        finite(score[0], self.info)
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
