//! The rows of a text's words, in the order of its bag: as one matrix of f32, or where they lie.

use cognate_kernels::simd::bytes::ByteRows;
use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};

use crate::model::Phrase;
use crate::model::phrase::Word;

/// Arora et al. 2017: how quickly a word's weight falls as it gets more frequent.
pub(crate) const SIF_A: f64 = 1e-3;

/// The SIF weight of a word (SCIENCE: Arora et al. 2017, equation 1): `a / (a + p(w))`; 1 for a
/// word that was not counted.
pub(crate) fn sif_weight(phrase: &Phrase<'_>, word: &Word) -> f32 {
    (SIF_A / (SIF_A + phrase.probability(word))) as f32
}

/// Writes the rows of a text one after another.
pub(crate) fn plain(phrase: &Phrase<'_>, out: &mut Vec<f32>) {
    let dims = phrase.model().vectors().dims();
    out.resize(phrase.words().len() * dims, 0.0);
    for (word, row) in phrase.bag().zip(out.chunks_exact_mut(dims)) {
        phrase.row(word).copy_to(row);
    }
}

/// Lists the rows of a text where they lie, if they are all of f32; `false` if one is not.
pub(crate) fn borrowed<'p>(phrase: &'p Phrase<'_>, out: &mut Vec<&'p [f32]>) -> bool {
    phrase.bag().all(|word| match phrase.row(word) {
        Row::F32(row) => {
            // It is read when all are listed; until then it can come near.
            simd::prefetch(row);
            out.push(row);
            true
        }
        Row::F16(_) | Row::I8(..) => false,
    })
}

/// Takes the rows of a text where they lie, each with its scale times its weight, if they are all of
/// bytes; `false` if one is not.
pub(crate) fn bytes<'p>(
    phrase: &'p Phrase<'_>,
    weight: impl Fn(&Word) -> f32,
    out: &mut ByteRows<'p>,
) -> bool {
    let rows = phrase.bag().map_while(|word| match phrase.row(word) {
        Row::I8(row, scale) => Some((row, weight(word) * scale)),
        Row::F32(_) | Row::F16(_) => None,
    });
    out.fill(phrase.model().vectors().dims(), rows);
    out.count() == phrase.words().len()
}

/// Adds the rows of a text to others, one after another, each times its weight.
pub(crate) fn append(phrase: &Phrase<'_>, weight: impl Fn(&Word) -> f32, out: &mut Vec<f32>) {
    let (start, dims) = (out.len(), phrase.model().vectors().dims());
    out.resize(start + phrase.words().len() * dims, 0.0);
    let rows = out.get_mut(start..).unwrap_or_default();
    for (word, row) in phrase.bag().zip(rows.chunks_exact_mut(dims)) {
        phrase.row(word).scale_to(weight(word), row);
    }
}

/// Writes the rows of a text one after another, each times its weight.
pub(crate) fn weighted(phrase: &Phrase<'_>, weight: impl Fn(&Word) -> f32, out: &mut Vec<f32>) {
    out.clear();
    append(phrase, weight, out);
}

/// Writes the rows of a text one after another, each brought to length 1. A row without length
/// becomes zeros.
pub(crate) fn unit(phrase: &Phrase<'_>, out: &mut Vec<f32>) {
    weighted(phrase, |word| inverse(vector::norm(phrase.row(word))), out);
}

/// The factor that brings a row of this length to length 1; 0 for a row without length.
pub(crate) fn inverse(norm: f32) -> f32 {
    let factor = 1.0 / norm;
    if factor.is_finite() { factor } else { 0.0 }
}

/// Puts numbers that stand in the order of the bag into the order of the text.
pub(crate) fn in_text_order<T: Copy + Default>(phrase: &Phrase<'_>, of_bag: &[T]) -> Vec<T> {
    let mut of_text = vec![T::default(); phrase.words().len()];
    for (place, &number) in phrase.bag_order().zip(of_bag) {
        of_text[place] = number;
    }
    of_text
}
