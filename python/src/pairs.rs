//! The scores of pairs of texts: one pair, or two columns row by row.

use std::sync::{Mutex, PoisonError};

use cognate::Engine;
use cognate::engine::{Place, QueryError, Reason};
use pyo3::prelude::*;

use crate::asked::{Question, Unscored};
use crate::error::Problem;
use crate::work;
use crate::work::Crew;

/// Pairs that a thread takes at once: about a millisecond's work.
const PER_PART: usize = 512;
/// Multiplications after which other threads of Python should have their turn: about 50 µs.
const LONG: u64 = 100_000;
/// Approximate number of bytes of a word and the space after it.
const WORD_BYTES: usize = 6;

/// For each row a score, and whether the row has a score.
pub(crate) struct Scored {
    pub scores: Vec<f32>,
    pub valid: Vec<bool>,
    /// The rows that cannot be scored, and why; without those of which a text is missing.
    pub unscored: Vec<(usize, Reason)>,
    /// Whether the texts of a row are related, where there is a threshold; not where one is missing.
    pub related: Vec<bool>,
}

/// Returns the score of one pair; `None` if the pair has no score and such pairs are to be missing.
pub(crate) fn one(
    py: Python<'_>,
    engine: &Engine,
    (a, b): (&str, &str),
    question: &Question,
) -> Result<Option<f32>, Problem> {
    let query = &question.query;
    let words = |text: &str| (text.len() / WORD_BYTES + 1) as u64;
    let dims = engine.model().dims() as u64;
    let long = (query.method.info().cost.pair)(words(a), words(b), dims) > LONG;
    let ask = || engine.similarity(&[(a, b)], query);
    // To let the interpreter go and take it again costs more than a short pair does.
    let scored = if long { py.detach(ask) } else { ask() }?;
    let missing = question.unscored == Unscored::Missing && !scored.unscored.is_empty();
    Ok(scored.scores.first().copied().filter(|_| !missing))
}

/// The scores of the rows of two columns of equal length; `fill` where there is none.
pub(crate) fn rows(
    py: Python<'_>,
    (engine, crew): (&Engine, Crew<'_>),
    (a, b): (&[Option<&str>], &[Option<&str>]),
    question: &Question,
    fill: f32,
) -> Result<Scored, Problem> {
    let mut scores = vec![fill; a.len()];
    let mut valid = vec![false; a.len()];
    let mut related = vec![false; a.len()];
    let columns = a.chunks(PER_PART).zip(b.chunks(PER_PART));
    let answers = scores.chunks_mut(PER_PART).zip(valid.chunks_mut(PER_PART));
    let answers = answers.zip(related.chunks_mut(PER_PART));
    let (parts, count) = (columns.zip(answers).enumerate(), a.len().div_ceil(PER_PART));
    let unscored = Mutex::new(Vec::new());
    work::each(py, crew, count, parts, |(number, (columns, ((scores, valid), related))), _| {
        let present = || both(columns).enumerate().filter_map(|(at, pair)| Some((at, pair?)));
        let pairs: Vec<(&str, &str)> = present().map(|(_, pair)| pair).collect();
        let scored = engine.similarity(&pairs, &question.query).map_err(|error| {
            // Only present pairs were asked for.
            let moved = error.place().and_then(|place| match place {
                Place::Pair(at, _) => present().nth(at).map(|(row, _)| row - at),
                _ => None,
            });
            error.moved(number * PER_PART + moved.unwrap_or(0))
        })?;
        let mut without = scored.unscored.iter().zip(&scored.reasons).peekable();
        let mut rows = Vec::new();
        for (at, ((row, _), score)) in present().zip(&scored.scores).enumerate() {
            if let Some((_, &reason)) = without.next_if(|(unscored, _)| **unscored == at) {
                rows.push((number * PER_PART + row, reason));
                if question.unscored == Unscored::Missing {
                    continue;
                }
            }
            if let (Some(place), Some(there)) = (scores.get_mut(row), valid.get_mut(row)) {
                (*place, *there) = (*score, true);
            }
            if let (Some(place), Some(told)) = (related.get_mut(row), scored.related.get(at)) {
                *place = *told;
            }
        }
        unscored.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
        Ok(())
    })?;
    let mut unscored = unscored.into_inner().unwrap_or_else(PoisonError::into_inner);
    unscored.sort_unstable_by_key(|&(row, _)| row);
    Ok(Scored { scores, valid, unscored, related })
}

/// The pairs of which neither text is missing.
fn both<'t>(
    (a, b): (&[Option<&'t str>], &[Option<&'t str>]),
) -> impl Iterator<Item = Option<(&'t str, &'t str)>> {
    a.iter().zip(b).map(|(a, b)| a.zip(*b))
}

/// A question that a method cannot answer for pairs, before any text is read.
pub(crate) fn check(engine: &Engine, question: &Question) -> Result<(), QueryError> {
    engine.similarity::<(&str, &str)>(&[], &question.query).map(|_| ())
}
