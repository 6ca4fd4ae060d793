//! Answers put together from parts: a long question may be asked piece by piece, on several
//! threads, and the answer is the same bit for bit.

use crate::engine::{Embeddings, RankOptions, Ranked, Ranking, Scores};

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
        self.known.extend(part.known);
        extend(&mut self.unscored, part.unscored, first);
        self.reasons.extend(part.reasons);
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
        extend(&mut self.unscored, part.unscored, first);
        self.reasons.extend(part.reasons);
        extend(&mut self.truncated, part.truncated, first);
        self.counts.add(part.counts);
    }
}

/// The results of parts stand one after the other until [`Ranking::order`] puts them in order.
impl Parts for Ranking {
    fn append(&mut self, part: Self, first: usize) {
        self.measure = part.measure;
        self.query_truncated = part.query_truncated;
        self.query_known = part.query_known;
        self.known.extend(part.known);
        self.scored += part.scored;
        let moved = |ranked: Ranked| Ranked { index: ranked.index + first, ..ranked };
        self.results.extend(part.results.into_iter().map(moved));
        extend(&mut self.unscored, part.unscored, first);
        self.reasons.extend(part.reasons);
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
