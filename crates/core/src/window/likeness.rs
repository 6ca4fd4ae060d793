//! How alike two events are, so that who looks at them can tell which of them are one: what late texts would
//! have said had they come early. Nothing is joined here.

use crate::engine::{Embeddings, Engine, Measure, Query, QueryError};
use crate::window::usual;
use crate::window::usual::Preset;

/// The vectors of texts by which events are compared.
pub(super) fn vectors<T: AsRef<str>>(
    engine: &Engine,
    texts: &[T],
) -> Result<Embeddings, QueryError> {
    let query = Query { truncate: true, ..Query::new(engine.auto_embedding()) };
    engine.embed(texts, &query)
}

/// The sum of some vectors; empty where there is none.
pub(super) fn sum(vectors: &Embeddings) -> Vec<f32> {
    let mut sum: Vec<f32> = Vec::new();
    for vector in vectors.iter().flatten() {
        sum.resize(vector.len(), 0.0);
        sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
    }
    sum
}

/// Where the middle of some texts lies; nowhere where none of them has a vector.
pub fn middle<T: AsRef<str>>(engine: &Engine, texts: &[T]) -> Result<Vec<f32>, QueryError> {
    Ok(sum(&vectors(engine, texts)?))
}

/// The cosine of two middles; below all others where one lies nowhere.
pub fn near(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() || one.is_empty() {
        return f32::NEG_INFINITY;
    }
    Measure::Cosine.score(one, other)
}

/// The score by which the texts of one event would join the other: for each the mean over those of the other
/// that vote for it, and of these the mean. Between texts `go_on` is asked; once that says no, what is
/// answered is not whole.
pub fn score<T: AsRef<str>>(
    engine: &Engine,
    preset: Preset,
    [one, other]: [&[T]; 2],
    go_on: impl FnMut() -> bool,
) -> Result<f32, QueryError> {
    let method = engine.method(usual::second(engine, preset))?;
    let query = Query { truncate: true, ..Query::new(method) };
    let mut scores = engine.score_matrix(one, other, &query, go_on)?.scores;
    let votes = usual::VOTES.min(other.len()).max(1);
    let joins = scores.rows_mut().into_iter().map(|row| {
        let row = row.into_slice().unwrap_or_default();
        // Texts without a known word speak for nothing.
        row.iter_mut().filter(|score| score.is_nan()).for_each(|score| *score = 0.0);
        row.sort_unstable_by(|a, b| b.total_cmp(a));
        row.iter().take(votes).sum::<f32>() / votes as f32
    });
    Ok(joins.sum::<f32>() / one.len().max(1) as f32)
}
