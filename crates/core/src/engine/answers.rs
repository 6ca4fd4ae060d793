//! The engine's answers: numbers in the order of the question, and what could not be scored.

use std::cmp::Ordering;

use ndarray::{Array2, Axis};

use crate::choice::choice;
use crate::engine::RankOptions;
use crate::methods::Measure;
use crate::methods::polarity::Oppositions;
use crate::model::Phrase;

/// Counts of the texts and tokens that were read for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Texts.
    pub texts: u64,
    /// The tokens of the texts, as far as these were read.
    pub tokens: u64,
    /// Tokens without a known word.
    pub unknown: u64,
}

impl Counts {
    pub(crate) fn saw(&mut self, phrase: &Phrase<'_>) {
        self.texts += 1;
        self.tokens += phrase.tokens_read() as u64;
        self.unknown += phrase.unknown().len() as u64;
    }

    /// Adds the counts of another part.
    pub fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.tokens += other.tokens;
        self.unknown += other.unknown;
    }
}

/// Why an item has no score, or a text no vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A text is empty, or all white space.
    Empty,
    /// A text has no known word.
    Unknown,
    /// A text is longer than the limits allow.
    TooLong,
}

choice!(Reason { Empty = "empty", Unknown = "unknown", TooLong = "too_long" });

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "a text is empty",
            Self::Unknown => "a text has no known word",
            Self::TooLong => "a text is too long",
        })
    }
}

/// The vectors of texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Embeddings {
    /// A row for each text; NaN throughout for a text without a vector.
    pub vectors: Array2<f32>,
    /// Tokens of each text.
    pub tokens: Vec<usize>,
    /// Tokens of each text with a known word.
    pub known: Vec<usize>,
    /// Texts without a vector.
    pub unscored: Vec<usize>,
    /// The reason of each unscored text.
    pub reasons: Vec<Reason>,
    /// Texts that were cut short.
    pub truncated: Vec<usize>,
    /// Counts of the texts and words that were read.
    pub counts: Counts,
}

impl Embeddings {
    /// The vector of each text, in order; `None` for a text without a vector.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[f32]>> {
        self.vectors.rows().into_iter().map(|row| row.to_slice().filter(|row| is_vector(row)))
    }

    /// The vector of a text, if it has one.
    pub fn get(&self, index: usize) -> Option<&[f32]> {
        let row = (index < self.vectors.nrows()).then(|| self.vectors.row(index))?;
        row.to_slice().filter(|row| is_vector(row))
    }

    /// The vectors one after the other; zeros for a text that has none.
    pub fn or_zeros(mut self) -> Vec<f32> {
        self.vectors.mapv_inplace(|number| if number.is_nan() { 0.0 } else { number });
        self.vectors.into_raw_vec_and_offset().0
    }
}

/// Whether a row of [`Embeddings`] is a vector: no vector has a number that is not finite.
pub fn is_vector(row: &[f32]) -> bool {
    row.first().is_some_and(|number| !number.is_nan())
}

/// The scores of pairs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scores {
    /// In the order of the pairs; 0 for a pair that could not be scored.
    pub scores: Vec<f32>,
    /// Pairs that could not be scored.
    pub unscored: Vec<usize>,
    /// The reason of each unscored pair.
    pub reasons: Vec<Reason>,
    /// Pairs with a text that was cut short.
    pub truncated: Vec<usize>,
    /// For each pair the shares of listed words of both texts, if requested.
    pub known: Vec<[f32; 2]>,
    /// How the texts of each pair are opposed, if requested; empty for a pair that could not be
    /// scored.
    pub opposes: Vec<Oppositions>,
    /// For each pair whether its texts are [related](crate::Query::related), if there is a threshold.
    pub related: Vec<bool>,
    /// The measure that scored.
    pub measure: Measure,
    /// Counts of the texts and words that were read.
    pub counts: Counts,
}

/// A candidate and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The candidate's index.
    pub index: usize,
    /// The candidate's score.
    pub score: f32,
}

/// Candidates in the order of their scores.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// Best first, without unscored candidates.
    pub results: Vec<Ranked>,
    /// Candidates that could not be scored, by index.
    pub unscored: Vec<usize>,
    /// The reason of each unscored candidate.
    pub reasons: Vec<Reason>,
    /// Candidates that were cut short.
    pub truncated: Vec<usize>,
    /// Whether the query was cut short.
    pub query_truncated: bool,
    /// The share of listed words of each candidate, if requested.
    pub known: Vec<f32>,
    /// The share of the query's words that are known, if it is requested or less than 1.
    pub query_known: Option<f32>,
    /// The measure that scored.
    pub measure: Measure,
    /// Number of scored candidates; the other scorable candidates could not have been results.
    pub scored: usize,
    /// Counts of what was read, without the query.
    pub counts: Counts,
}

impl Ranked {
    /// The order of results: best first, equal scores by index.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.index.cmp(&other.index))
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
        self.known.extend(part.known);
        self.opposes.extend(part.opposes);
        self.related.extend(part.related);
        extend(&mut self.unscored, part.unscored, first);
        self.reasons.extend(part.reasons);
        extend(&mut self.truncated, part.truncated, first);
        self.counts.add(part.counts);
    }
}

impl Parts for Embeddings {
    fn append(&mut self, part: Self, first: usize) {
        if first == 0 {
            self.vectors = part.vectors;
        } else {
            let appended = self.vectors.append(Axis(0), part.vectors.view());
            appended.expect("the parts of a question have the same dimensions");
        }
        self.tokens.extend(part.tokens);
        self.known.extend(part.known);
        extend(&mut self.unscored, part.unscored, first);
        self.reasons.extend(part.reasons);
        extend(&mut self.truncated, part.truncated, first);
        self.counts.add(part.counts);
    }
}

/// The results of parts follow each other until [`Ranking::order`] sorts them.
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
    /// Sorts the results of all parts and cuts them by the options.
    pub fn order(&mut self, options: &RankOptions) {
        self.results.sort_unstable_by(Ranked::order);
        self.results.retain(|result| options.wants(result.score));
        self.results.truncate(options.top_k.unwrap_or(usize::MAX));
    }
}
