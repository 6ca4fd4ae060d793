//! What can be said of a question before it is answered.

use crate::engine::{Engine, Place, Query, QueryError, scorable};
use crate::methods::{Method, Scorer};
use crate::model::Phrase;

impl Engine {
    /// Whether a ranking by this method may be asked for in parts: not where a candidate's score
    /// depends on the other candidates.
    pub fn ranks_in_parts(&self, method: Method) -> bool {
        !matches!(self.scorer(method), Ok(Scorer::RankList(_)))
    }

    /// Whether a method can answer at all what a query asks of it.
    pub fn check(&self, query: &Query) -> Result<(), QueryError> {
        let scorer = self.scorer(query.method)?;
        self.measure(scorer, query.method.info(), query).map(|_| ())
    }

    /// Whether a method can explain the score of two texts: one that ranks can, unless a score of it
    /// is one in a whole list.
    pub fn check_explain(&self, query: &Query) -> Result<(), QueryError> {
        match self.scorer(query.method)? {
            Scorer::RankList(_) => Err(QueryError::OnlyRanks { method: query.method.name() }),
            Scorer::Embed(_) | Scorer::Compare(_) => self.check(query),
        }
    }

    /// Looks at one text as scoring would: what is wrong with it, or how many tokens are read.
    pub fn check_text(&self, text: &str, query: &Query, place: Place) -> Result<usize, QueryError> {
        let mut phrase = Phrase::new(&self.model);
        self.read(&mut phrase, text, query, place)?;
        if !scorable(&phrase, query.method.info()) {
            query.accepts_unknown(place)?;
        }
        Ok(phrase.token_keys().len())
    }
}
