//! The cosine of two texts' vectors, and what each word adds to it.

use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::methods::{Embed, Shares};
use crate::model::Phrase;

/// What each word adds to the cosine of two texts' vectors, if the vectors come apart into words.
/// A cosine comes apart twice, into the words of either text, so half of it is laid on each.
pub(crate) fn shares(
    embedder: &dyn Embed,
    texts: [&Phrase<'_>; 2],
    vectors: [&[f32]; 2],
) -> Option<Shares> {
    let [one, other] = texts;
    let lengths = vector::norm(Row::F32(vectors[0])) * vector::norm(Row::F32(vectors[1]));
    let mut shares = Shares {
        one: vec![0.0; one.words().len()],
        other: vec![0.0; other.words().len()],
        memberships: None,
    };
    let apart = embedder.shares(one, vectors[1], &mut shares.one)
        && embedder.shares(other, vectors[0], &mut shares.other);
    if !apart || lengths <= 0.0 {
        return None;
    }
    let all = shares.one.iter_mut().chain(&mut shares.other);
    all.for_each(|share| *share /= 2.0 * lengths);
    Some(shares)
}
