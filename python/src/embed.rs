//! The vectors of a column of texts.

use cognate::Engine;
use cognate::model::unknown::hash_vector;
use pyo3::prelude::*;

use crate::asked::Question;
use crate::error::Problem;
use crate::work;
use crate::work::Crew;

/// Texts that a thread takes at once: about a millisecond's work.
const PER_PART: usize = 512;

/// What stands in the place of the vector of a text that has none. A missing text never has one.
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

/// A vector a row, one after the other, and whether it is one.
pub(crate) struct Embedded {
    pub numbers: Vec<f32>,
    pub dims: usize,
    pub valid: Vec<bool>,
}

/// The vectors of texts.
pub(crate) fn rows(
    py: Python<'_>,
    (engine, crew): (&Engine, Crew<'_>),
    texts: &[Option<&str>],
    question: &Question,
    stand: Stand,
) -> Result<Embedded, Problem> {
    let mut query = question.query;
    query.refuse_unscored |= stand == Stand::Error;
    let dims = engine.embedding_dims(query.method)?;
    let mut numbers = vec![0.0; texts.len() * dims];
    let mut valid = vec![false; texts.len()];
    let answers = numbers.chunks_mut(PER_PART * dims.max(1)).zip(valid.chunks_mut(PER_PART));
    let parts = texts.chunks(PER_PART).zip(answers).enumerate();
    let count = texts.len().div_ceil(PER_PART);
    work::each(py, crew, count, parts, |(number, (texts, (numbers, valid))), _| {
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
        for ((row, text), vector) in present().zip(embedded.vectors) {
            let Some(out) = numbers.get_mut(row * dims..(row + 1) * dims) else { continue };
            match vector {
                Some(vector) => out.copy_from_slice(&vector),
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
    Ok(Embedded { numbers, dims, valid })
}
