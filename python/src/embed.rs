//! The vectors of a column of texts.

use cognate::Engine;
use cognate::engine::set_length_1;
use cognate::model::unknown::hash_vector;
use numpy::ndarray::{Array2, Axis};
use pyo3::prelude::*;

use crate::asked::Question;
use crate::error::Problem;
use crate::work;
use crate::work::Crew;

/// Number of texts that a thread takes at once: about a millisecond's work.
const PER_PART: usize = 512;

/// What a text without a vector gets in its place. A missing text never has a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Null, or zeros where there is no null.
    Null,
    /// Zeros, whose product with any vector is 0.
    Zero,
    /// A vector of length 1 made from the text, so that the text at least equals itself.
    Hash,
    /// It is an error.
    Error,
}

impl Stand {
    pub(crate) fn named(name: &str) -> Result<Self, Problem> {
        Ok(match name {
            "null" => Self::Null,
            "zero" => Self::Zero,
            "hash" => Self::Hash,
            "error" => Self::Error,
            other => return Err(Problem::setting("unknown", "null, zero, hash or error", other)),
        })
    }
}

/// The vectors of texts, a row a text, and whether it is one; zeros where it is not. They have length 1 where
/// that is asked for.
pub(crate) fn rows(
    py: Python<'_>,
    (engine, crew): (&Engine, Crew<'_>),
    texts: &[Option<&str>],
    question: &Question,
    (stand, normalize): (Stand, bool),
) -> Result<(Array2<f32>, Vec<bool>), Problem> {
    let mut query = question.query;
    query.refuse_unscored |= stand == Stand::Error;
    let mut vectors = Array2::zeros((texts.len(), engine.embedding_dims(query.method)?));
    let mut valid = vec![false; texts.len()];
    let rows = vectors.axis_chunks_iter_mut(Axis(0), PER_PART);
    let answers = rows.zip(valid.chunks_mut(PER_PART));
    let parts = texts.chunks(PER_PART).zip(answers).enumerate();
    let count = texts.len().div_ceil(PER_PART);
    work::each(py, crew, count, parts, |(number, (texts, (mut rows, valid))), _| {
        let present = || texts.iter().enumerate().filter_map(|(row, text)| Some((row, (*text)?)));
        let asked: Vec<&str> = present().map(|(_, text)| text).collect();
        let embedded = engine.embed(&asked, &query).map_err(|error| {
            // Only present texts were asked for.
            let moved = error.place().and_then(|place| match place {
                cognate::engine::Place::Text(at) => present().nth(at).map(|(row, _)| row - at),
                _ => None,
            });
            error.moved(number * PER_PART + moved.unwrap_or(0))
        })?;
        for ((row, text), vector) in present().zip(embedded.iter()) {
            let out = rows.row_mut(row).into_slice().unwrap_or_default();
            match vector {
                Some(vector) => {
                    out.copy_from_slice(vector);
                    if normalize {
                        set_length_1(out);
                    }
                }
                None if stand == Stand::Null => continue,
                None if stand == Stand::Hash => hash_vector(text.trim(), 1.0, out),
                None => {}
            }
            if let Some(there) = valid.get_mut(row) {
                *there = true;
            }
        }
        Ok(())
    })?;
    Ok((vectors, valid))
}
