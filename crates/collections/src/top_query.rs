//! The items that a ranking wants, as far as vectors tell.

use std::ops::RangeInclusive;

use cognate::engine::{Engine, Likes, Measure, Query, QueryError, Strategy};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::SHORTLIST_METHOD;

/// The best items of a ranking by the cosine of the vectors of [`SHORTLIST_METHOD`].
pub struct TopQuery<'b> {
    pub engine: &'b Engine,
    pub texts: Vec<(&'b str, f32)>,
    /// How several texts are combined.
    pub several: Several,
    /// Number of results; items that tie with the last result are added.
    pub length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Several {
    /// A ranking for each text.
    Each,
    /// The items whose best weighted score is highest.
    Best,
    /// The items whose sum of weighted scores is highest.
    Sum,
}

/// Weights of liked texts at which scores lose no digits.
const PLAIN_WEIGHTS: RangeInclusive<f32> = 1e-3..=1e3;

/// The least share of the weights that the sum of liked texts must keep. A shorter sum says too
/// little: the texts contradict each other.
const MIN_SUM: f32 = 0.25;

impl<'b> TopQuery<'b> {
    /// The `length` best items for liked texts.
    pub fn of_liked(engine: &'b Engine, likes: &'b Likes<'_>, length: usize) -> Self {
        let texts = likes.liked.iter().map(|liked| (&*liked.text, liked.weight.get())).collect();
        let several = match likes.strategy {
            Strategy::Best => Several::Best,
            Strategy::Mean | Strategy::Sum => Several::Sum,
        };
        Self { engine, texts, several, length }
    }

    /// The `length` best items for each of several queries.
    pub fn of_each(
        engine: &'b Engine,
        texts: impl Iterator<Item = &'b str>,
        length: usize,
    ) -> Self {
        let texts = texts.map(|text| (text, 1.0)).collect();
        Self { engine, texts, several: Several::Each, length }
    }

    /// Whether bounds of the stored vectors can tell which items a ranking wants: not for scores
    /// other than the cosine of [`SHORTLIST_METHOD`], nor with weights that cost a score digits.
    pub fn is_bounded(&self, query: &Query) -> bool {
        let by_cosine = query.measure.is_none_or(|measure| measure == Measure::Cosine);
        query.method == SHORTLIST_METHOD
            && by_cosine
            && self.engine.ranks_kept(query)
            && self.texts.iter().all(|(_, weight)| PLAIN_WEIGHTS.contains(weight))
    }

    /// The vector of each text at length 1; `None` for a text without a direction.
    pub(crate) fn directions(&self) -> Result<Vec<Option<Vec<f32>>>, QueryError> {
        let texts: Vec<&str> = self.texts.iter().map(|(text, _)| *text).collect();
        let made = self.engine.embed(&texts, &Query::new(SHORTLIST_METHOD))?;
        Ok(made.iter().map(|vector| vector.and_then(unit)).collect())
    }

    /// The direction of the weighted sum of these; `None` if it says too little.
    pub(crate) fn sum(&self, directions: &[Option<Vec<f32>>]) -> Option<Vec<f32>> {
        let rows = directions.iter().zip(&self.texts);
        let rows = rows.filter_map(|(row, (_, weight))| Some((row.as_ref()?, weight)));
        let (mut sum, mut weights) = (Vec::new(), 0.0_f32);
        for (row, weight) in rows {
            sum.resize(row.len(), 0.0_f32);
            sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += weight * number);
            weights += weight;
        }
        let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
        let says_enough = length.is_finite() && length >= MIN_SUM * weights;
        says_enough.then(|| unit(&sum)).flatten()
    }

    /// The vectors that items of a shortlist are near to, with weights: the sum if scores are
    /// summed and it says enough, else each text that has a direction.
    pub(crate) fn targets(&self) -> Result<Vec<(Vec<f32>, f32)>, QueryError> {
        let directions = self.directions()?;
        if self.several == Several::Sum
            && let Some(sum) = self.sum(&directions)
        {
            return Ok(vec![(sum, 1.0)]);
        }
        let rows = directions.into_iter().zip(&self.texts);
        Ok(rows.filter_map(|(row, (_, weight))| Some((row?, *weight))).collect())
    }
}

/// A vector at length 1, if it has a direction.
pub(crate) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector::norm(Row::F32(vector));
    let sound = length.is_finite() && length > 0.0;
    sound.then(|| vector.iter().map(|number| number / length).collect())
}
