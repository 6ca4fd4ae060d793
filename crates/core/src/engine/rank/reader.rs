//! Candidates read block by block: those that can be scored become phrases, the others are noted with
//! the reason.

use crate::engine::rank::BLOCK;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, Ranking, scorable};
use crate::methods::{Info, Reads};
use crate::model::Phrase;

pub(super) struct Reader<'s, 'e> {
    engine: &'e Engine,
    query: &'s Query,
    info: &'static Info,
    /// Used again for every block.
    phrases: Vec<Phrase<'e>>,
    /// The indexes of the candidates that were read last and can be scored.
    indexes: Vec<usize>,
}

impl<'s, 'e> Reader<'s, 'e> {
    pub(super) fn of(engine: &'e Engine, query: &'s Query) -> Self {
        let info = query.method.info();
        Self { engine, query, info, phrases: Vec::new(), indexes: Vec::new() }
    }

    /// The phrases of the candidates that were read last and can be scored, and their indexes.
    pub(super) fn read_last(&self) -> (&[Phrase<'e>], &[usize]) {
        let phrases = self.phrases.get(..self.indexes.len()).unwrap_or_default();
        (phrases, &self.indexes)
    }

    pub(super) fn end(self, workspace: &mut Workspace<'e>) {
        workspace.take_back(self.phrases);
    }

    /// Looks up a block of candidates, of which the first has the index `first`: notes those that
    /// were cut short or cannot be scored, which none can where the `query_known` is not.
    pub(super) fn read_block<T: AsRef<str>>(
        &mut self,
        block: &[T],
        first: usize,
        query_known: bool,
        workspace: &mut Workspace<'e>,
        answer: &mut Ranking,
    ) -> Result<(), QueryError> {
        // Of a long list phrases let go of their words, so that it does not hold a vector for each
        // word that is not listed.
        let tokens_alone = block.len() > BLOCK && self.info.reads == Reads::Tokens;
        self.indexes.clear();
        for (place, candidate) in block.iter().enumerate() {
            if self.phrases.len() == self.indexes.len() {
                let beyond = self.phrases.len() >= BLOCK;
                let model = &self.engine.model;
                let phrase = if beyond { Phrase::new(model) } else { workspace.phrase() };
                self.phrases.push(phrase);
            }
            let Some(phrase) = self.phrases.get_mut(self.indexes.len()) else { continue };
            let index = first + place;
            let place = Place::Candidate(index);
            let item = self.engine.read_item(phrase, candidate.as_ref(), self.query, place)?;
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
                None => self.indexes.push(index),
                Some(reason) => {
                    self.query.accepts_unknown(place)?;
                    answer.unscored.push(index);
                    answer.reasons.push(reason);
                }
            }
        }
        Ok(())
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
