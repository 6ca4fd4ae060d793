//! A prepared text, against which lists of candidates are ranked block by block.

use crate::engine::rank::BLOCK;
use crate::engine::rank::Boosts;
use crate::engine::rank::best::best_of_bounded;
use crate::engine::workspace::Workspace;
use crate::engine::{
    Engine, Place, Query, QueryError, RankOptions, Ranked, Ranking, finite, scorable,
};
use crate::methods::{Against, Info, Measure, Posts, Reads};
use crate::model::Phrase;

pub(crate) struct RankSession<'s, 'e, 't> {
    pub(super) options: &'s RankOptions,
    pub(super) info: &'s Info,
    pub(super) measure: Measure,
    pub(super) query_truncated: bool,
    /// The share of listed words of the query, if requested.
    pub(super) query_share: Option<f32>,
    /// Whether a candidate's score depends on the others.
    pub(super) scores_lists: bool,
    /// `None` if the query has nothing to be scored by.
    pub(super) against: Option<Box<dyn Against + 't>>,
    pub(super) reader: Reader<'s, 'e>,
    pub(super) workspace: &'s mut Workspace<'e>,
}

impl<'t> RankSession<'_, '_, 't> {
    pub(crate) fn rank<T: AsRef<str>>(&mut self, candidates: &[T]) -> Result<Ranking, QueryError> {
        self.rank_boosted(candidates, &Boosts::default(), || true)
    }

    /// The best of a list of candidates by their boosted scores. For a method that scores whole
    /// lists, `go_on` is called before each block of candidates; once it returns false, the answer
    /// is incomplete.
    pub(super) fn rank_boosted<T: AsRef<str>>(
        &mut self,
        candidates: &[T],
        boosts: &Boosts<'_>,
        go_on: impl FnMut() -> bool,
    ) -> Result<Ranking, QueryError> {
        let (options, info) = (self.options, self.info);
        let mut answer = Ranking {
            measure: self.measure,
            query_truncated: self.query_truncated,
            query_known: self.query_share,
            ..Ranking::default()
        };
        if self.scores_lists {
            return self.rank_list(candidates, boosts, go_on, answer);
        }
        let fewer = options.top_k.is_some_and(|most| most < candidates.len());
        let selective = fewer || options.min_score.is_some();
        let mut bounded = false;
        let mut results = Vec::with_capacity(candidates.len());
        let mut scores = Vec::new();
        for (number, chunk) in candidates.chunks(BLOCK).enumerate() {
            let (first, known) = (number * BLOCK, self.against.is_some());
            self.reader.read_block(chunk, first, known, self.workspace, &mut answer)?;
            let (phrases, indexes) = self.reader.read_last();
            // Methods require that every text, the query too, has a known word.
            let Some(against) = self.against.as_mut().filter(|_| !indexes.is_empty()) else {
                continue;
            };
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

    /// Ranks candidates that are scored as a list; only their tokens are stored.
    fn rank_list<T: AsRef<str>>(
        &mut self,
        candidates: &[T],
        boosts: &Boosts<'_>,
        mut go_on: impl FnMut() -> bool,
        mut answer: Ranking,
    ) -> Result<Ranking, QueryError> {
        let (mut posts, mut places) = (Posts::default(), Vec::new());
        for (number, chunk) in candidates.chunks(BLOCK).enumerate() {
            if !go_on() {
                return Ok(answer);
            }
            let (first, known) = (number * BLOCK, self.against.is_some());
            self.reader.read_block(chunk, first, known, self.workspace, &mut answer)?;
            let (phrases, indexes) = self.reader.read_last();
            phrases.iter().for_each(|phrase| posts.push(phrase));
            places.extend_from_slice(indexes);
        }
        let mut scores = vec![0.0; places.len()];
        if let Some(against) = &mut self.against {
            against.score_list(&posts, &mut scores);
        }
        for (&index, &score) in places.iter().zip(&scores) {
            let score = boosts.apply(index, finite(score, self.info)?);
            answer.results.push(Ranked { index, score: finite(score, self.info)? });
        }
        answer.scored = answer.results.len();
        answer.order(self.options);
        Ok(answer)
    }

    /// Returns memory to the workspace, but keeps the prepared text.
    pub(super) fn rest(self) -> Option<Box<dyn Against + 't>> {
        self.reader.end(self.workspace);
        self.against
    }

    pub(super) fn end(mut self) {
        if let Some(against) = &mut self.against {
            against.give_back(self.workspace.scratch());
        }
        self.reader.end(self.workspace);
    }

    /// Scores a candidate for which only a bound was known.
    fn score_again(&mut self, candidate: &str, index: usize) -> Result<f32, QueryError> {
        let mut score = [0.0];
        if let Some(against) = &mut self.against
            && let Some(phrase) = self.reader.read_again(candidate, index)?
        {
            let one = std::slice::from_ref(phrase);
            against.score(one, &mut score, self.workspace.scratch());
        }
        finite(score[0], self.info)
    }
}

pub(super) struct Reader<'s, 'e> {
    engine: &'e Engine,
    query: &'s Query,
    info: &'s Info,
    phrases: Vec<Phrase<'e>>,
    /// The indices of the candidates of the last block that can be scored.
    indexes: Vec<usize>,
}

impl<'s, 'e> Reader<'s, 'e> {
    pub(super) fn new(engine: &'e Engine, query: &'s Query, info: &'s Info) -> Self {
        Self { engine, query, info, phrases: Vec::new(), indexes: Vec::new() }
    }

    /// The phrases and indices of the candidates of the last block that can be scored.
    pub(super) fn read_last(&self) -> (&[Phrase<'e>], &[usize]) {
        let phrases = self.phrases.get(..self.indexes.len()).unwrap_or_default();
        (phrases, &self.indexes)
    }

    pub(super) fn end(self, workspace: &mut Workspace<'e>) {
        workspace.take_back(self.phrases);
    }

    pub(super) fn read_block<T: AsRef<str>>(
        &mut self,
        block: &[T],
        first: usize,
        query_known: bool,
        workspace: &mut Workspace<'e>,
        answer: &mut Ranking,
    ) -> Result<(), QueryError> {
        // Phrases of a long list drop their words, so that it does not hold a vector for each
        // unlisted word.
        let tokens_alone = block.len() > BLOCK && self.info.reads == Reads::Tokens;
        self.indexes.clear();
        for (number, part) in block.chunks(BLOCK).enumerate() {
            let begun = self.begin(part, workspace);
            for (place, candidate) in part.iter().enumerate() {
                let Some(phrase) = self.phrases.get_mut(begun + place) else { continue };
                let index = first + number * BLOCK + place;
                let at = Place::Candidate(index);
                let item = self.engine.finish_item(phrase, candidate.as_ref(), self.query, at)?;
                if item.is_cut() {
                    answer.truncated.push(index);
                }
                answer.counts.saw(phrase);
                if self.query.coverage {
                    answer.known.push(phrase.known_share());
                }
                if tokens_alone {
                    phrase.keep_tokens_alone();
                }
                match item.reason(query_known && scorable(phrase, self.info)) {
                    None => {
                        self.phrases.swap(self.indexes.len(), begun + place);
                        self.indexes.push(index);
                    }
                    Some(reason) => {
                        self.query.accepts_unknown(at)?;
                        answer.unscored.push(index);
                        answer.reasons.push(reason);
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins candidates in the phrases after those that can be scored; returns the index of the
    /// first.
    fn begin<T: AsRef<str>>(&mut self, part: &[T], workspace: &mut Workspace<'e>) -> usize {
        let begun = self.indexes.len();
        while self.phrases.len() < begun + part.len() {
            let beyond = self.phrases.len() >= BLOCK;
            let model = &self.engine.model;
            self.phrases.push(if beyond { Phrase::new(model) } else { workspace.phrase() });
        }
        for (phrase, candidate) in self.phrases.iter_mut().skip(begun).zip(part) {
            self.engine.begin(phrase, candidate.as_ref(), self.query);
        }
        begun
    }

    /// Reads a candidate once more into the first phrase.
    pub(super) fn read_again(
        &mut self,
        candidate: &str,
        index: usize,
    ) -> Result<Option<&Phrase<'e>>, QueryError> {
        let Some(phrase) = self.phrases.first_mut() else { return Ok(None) };
        self.engine.read(phrase, candidate, self.query, Place::Candidate(index))?;
        Ok(Some(phrase))
    }
}
