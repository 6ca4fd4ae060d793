//! One text at work, against which lists of candidates are ranked block by block.

use crate::engine::Boosts;
use crate::engine::Engine;
use crate::engine::Place;
use crate::engine::QueryError;
use crate::engine::RankOptions;
use crate::engine::Ranked;
use crate::engine::Ranking;
use crate::engine::finite;
use crate::engine::rank::BLOCK;
use crate::engine::rank::best::best_of_bounded;
use crate::engine::scorable;
use crate::engine::workspace::Workspace;
use crate::methods::Against;
use crate::methods::Info;
use crate::methods::Measure;
use crate::methods::Reads;
use crate::model::Phrase;

/// A text at work, against which lists of candidates are ranked: see [`Engine::rank_session`].
pub struct RankSession<'s, 'e> {
    pub(super) engine: &'e Engine,
    pub(super) options: &'s RankOptions,
    pub(super) info: &'static Info,
    pub(super) measure: Measure,
    pub(super) query_truncated: bool,
    /// The share of listed words of the text, if that is wanted.
    pub(super) query_share: Option<f32>,
    /// Candidates looked up and scored at once.
    pub(super) block: usize,
    /// Nothing for a text that has nothing to be scored by.
    pub(super) against: Option<Box<dyn Against + 's>>,
    /// Used again for every block.
    pub(super) phrases: Vec<Phrase<'e>>,
    pub(super) workspace: &'s mut Workspace<'e>,
}

impl RankSession<'_, '_> {
    /// The best of a list of candidates, as [`Engine::rank_best`] answers.
    pub fn rank<T: AsRef<str>>(&mut self, candidates: &[T]) -> Result<Ranking, QueryError> {
        self.rank_boosted(candidates, &Boosts::default())
    }

    /// The best of a list of candidates whose scores are boosted: what is wanted of the scores is
    /// wanted of the boosted ones.
    pub fn rank_boosted<T: AsRef<str>>(
        &mut self,
        candidates: &[T],
        boosts: &Boosts<'_>,
    ) -> Result<Ranking, QueryError> {
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
                let score = boosts.apply(index, finite(score, info)?);
                results.push(Ranked { index, score: finite(score, info)? });
            }
        }
        answer.scored = results.len();
        if bounded {
            results.sort_unstable_by(Ranked::order);
            (results, answer.scored) = best_of_bounded(&results, options, |index| {
                let Some(text) = candidates.get(index) else { return Ok(0.0) };
                let score = self.score_again(text.as_ref(), index)?;
                finite(boosts.apply(index, score), info)
            })?;
        }
        answer.results = results;
        answer.order(options);
        Ok(answer)
    }

    /// Hands memory back to the workspace.
    pub(super) fn end(mut self) {
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
