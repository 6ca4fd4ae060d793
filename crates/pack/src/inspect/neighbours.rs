//! The words whose vectors point most nearly the same way, by looking at all of them.

use cognate::model::{Model, WordId};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::Serialize;

/// A word and how alike its vector is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    pub word: String,
    /// The cosine of the two vectors.
    pub cosine: f32,
}

/// The length of every row.
pub(crate) fn norms(model: &Model) -> Vec<f32> {
    let vectors = model.vectors();
    let ids = 0..vectors.len() as WordId;
    ids.map(|id| vectors.row(id).map_or(0.0, vector::norm)).collect()
}

/// The `most` words nearest to `row` by cosine, best first, without the word itself.
pub(crate) fn nearest(
    model: &Model,
    norms: &[f32],
    row: Row<'_>,
    own: Option<WordId>,
    most: usize,
) -> Vec<Neighbour> {
    let vectors = model.vectors();
    let length = vector::norm(row);
    let mut best: Vec<(f32, WordId)> = Vec::with_capacity(most.min(norms.len()) + 1);
    for (id, &norm) in norms.iter().enumerate() {
        let id = id as WordId;
        let Some(other) = vectors.row(id).filter(|_| Some(id) != own && norm > 0.0 && most > 0)
        else {
            continue;
        };
        let cosine = (vector::dot(row, other) / (length * norm)).clamp(-1.0, 1.0);
        if cosine.is_nan() || best.len() == most && best.last().is_some_and(|last| cosine <= last.0)
        {
            continue;
        }
        let place = best.partition_point(|kept| kept.0 >= cosine);
        best.insert(place, (cosine, id));
        best.truncate(most);
    }
    let vocabulary = model.vocabulary();
    let named = |(cosine, id)| Neighbour { word: vocabulary.word(id).to_owned(), cosine };
    best.into_iter().map(named).collect()
}
