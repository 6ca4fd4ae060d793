//! Answers put together from parts: a long question may be asked piece by piece, on several
//! threads, and the answer is the same bit for bit.

use crate::engine::Embeddings;
use crate::engine::Engine;
use crate::engine::Place;
use crate::engine::Query;
use crate::engine::QueryError;
use crate::engine::RankOptions;
use crate::engine::Ranked;
use crate::engine::Ranking;
use crate::engine::Scores;
use crate::engine::scorable;
use crate::methods::Method;
use crate::methods::Scorer;
use crate::model::Phrase;

/// What was read to answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Texts.
    pub texts: u64,
    /// Their tokens, as far as they were read.
    pub tokens: u64,
    /// Tokens that no word was found for.
    pub unknown: u64,
}

impl Counts {
    /// Counts one more text.
    pub(crate) fn saw(&mut self, phrase: &Phrase<'_>) {
        self.texts += 1;
        self.tokens += phrase.token_keys().len() as u64;
        self.unknown += phrase.unknown().len() as u64;
    }

    /// Counts what another part read.
    pub fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.tokens += other.tokens;
        self.unknown += other.unknown;
    }
}

/// The parts of an answer, one after the other.
pub trait Parts {
    /// Appends the answer to the part of the question that begins at item `first`.
    fn append(&mut self, part: Self, first: usize);
}

fn extend(indexes: &mut Vec<usize>, part: Vec<usize>, first: usize) {
    indexes.extend(part.into_iter().map(|index| index + first));
}

impl Parts for Scores {
    fn append(&mut self, part: Self, first: usize) {
        self.measure = part.measure;
        self.scores.extend(part.scores);
        extend(&mut self.unscored, part.unscored, first);
        extend(&mut self.truncated, part.truncated, first);
        self.counts.add(part.counts);
    }
}

impl Parts for Embeddings {
    fn append(&mut self, part: Self, first: usize) {
        self.dims = part.dims;
        self.vectors.extend(part.vectors);
        self.tokens.extend(part.tokens);
        self.known.extend(part.known);
        extend(&mut self.truncated, part.truncated, first);
        self.counts.add(part.counts);
    }
}

/// The results of parts stand one after the other until [`Ranking::order`] puts them in order.
impl Parts for Ranking {
    fn append(&mut self, part: Self, first: usize) {
        self.measure = part.measure;
        self.query_truncated = part.query_truncated;
        self.scored += part.scored;
        let moved = |ranked: Ranked| Ranked { index: ranked.index + first, ..ranked };
        self.results.extend(part.results.into_iter().map(moved));
        extend(&mut self.unscored, part.unscored, first);
        extend(&mut self.truncated, part.truncated, first);
        self.counts.add(part.counts);
    }
}

impl Ranking {
    /// Puts the results of all parts in order and cuts them at what is wanted.
    pub fn order(&mut self, options: &RankOptions) {
        self.results.sort_unstable_by(Ranked::order);
        self.results.retain(|result| options.wants(result.score));
        self.results.truncate(options.top_k.unwrap_or(usize::MAX));
    }
}

impl Place {
    /// The same place in a question of which the part began at item `first`.
    pub fn moved(self, first: usize) -> Self {
        match self {
            Self::Text(index) => Self::Text(index + first),
            Self::Pair(index, side) => Self::Pair(index + first, side),
            Self::Query => Self::Query,
            Self::Candidate(index) => Self::Candidate(index + first),
        }
    }
}

impl QueryError {
    /// Which text is at fault, where it is one.
    pub fn place(&self) -> Option<Place> {
        self.clone().place_mut().map(|place| *place)
    }

    fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::EmptyText { place }
            | Self::TextTooLong { place, .. }
            | Self::TooManyTokens { place, .. }
            | Self::AllUnknown { place } => Some(place),
            Self::UnknownMethod { .. }
            | Self::MethodUnavailable { .. }
            | Self::CannotEmbed { .. }
            | Self::OnlyRanks { .. }
            | Self::MeasureNotSupported { .. }
            | Self::NonFinite { .. } => None,
        }
    }

    /// The same error in a question of which the part began at item `first`.
    pub fn moved(mut self, first: usize) -> Self {
        if let Some(place) = self.place_mut() {
            *place = place.moved(first);
        }
        self
    }
}

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
