//! The steps that a network is made of: rows of words, products with rows of weights, and what is
//! done to sums. They know numbers and no order of steps.

use cognate_kernels::simd::Packed;
use cognate_kernels::{elementary, simd};

use crate::methods::ranker::section::{Encoding, Weights};
use crate::model::{Phrase, WordId};

/// The words of a text that were trained: those whose vectors were made for it are left out.
pub(super) fn known(phrase: &Phrase<'_>) -> impl Iterator<Item = WordId> {
    phrase.words().iter().filter_map(|word| word.id)
}

/// Replaces `out` by the vectors of words, in their order.
pub(super) fn read_rows(phrase: &Phrase<'_>, ids: &[WordId], dims: usize, out: &mut Vec<f32>) {
    let vectors = phrase.model().vectors();
    out.clear();
    out.resize(ids.len() * dims, 0.0);
    for (&id, out) in ids.iter().zip(out.chunks_exact_mut(dims)) {
        if let Some(row) = vectors.row(id) {
            row.copy_to(out);
        }
    }
}

/// Replaces `out` by the products of each row of `a` with each of `b`, a row for each of `a`.
pub(super) fn products(a: &[f32], b: &[f32], dims: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize((a.len() / dims) * (b.len() / dims), 0.0);
    simd::products(Packed { values: a, dims }, Packed { values: b, dims }, dims, out);
}

/// Replaces `out` by the layer above a convolution for each row of answers: products with the
/// layer's rows plus its offsets, never below 0.
pub(super) fn encode(encoding: &Encoding, pooled: &[f32], out: &mut Vec<f32>) {
    products(pooled, &encoding.weight, encoding.bias.len(), out);
    for row in out.chunks_exact_mut(encoding.offset.len()) {
        for (number, offset) in row.iter_mut().zip(&encoding.offset) {
            *number = positive(*number + offset);
        }
    }
}

/// Writes the mean of rows into `out`, which is one of them long.
pub(super) fn mean(rows: &[f32], out: &mut [f32]) {
    let count = rows.len() / out.len().max(1);
    out.fill(0.0);
    for row in rows.chunks_exact(out.len().max(1)) {
        for (sum, number) in out.iter_mut().zip(row) {
            *sum += number;
        }
    }
    for sum in out {
        *sum /= count as f32;
    }
}

/// Appends a row times another, number by number.
pub(super) fn scale(row: &[f32], by: &[f32], out: &mut Vec<f32>) {
    out.extend(row.iter().zip(by).map(|(number, by)| number * by));
}

/// The length of a row.
pub(super) fn length(row: &[f32]) -> f32 {
    simd::dot(row, row).sqrt()
}

/// So many more numbers at the end of a list.
pub(super) fn more(list: &mut Vec<f32>, count: usize) -> &mut [f32] {
    let start = list.len();
    list.resize(start + count, 0.0);
    list.get_mut(start..).unwrap_or_default()
}

/// The logarithm of the chance that a post is relevant, from what the joint layer makes of the
/// post and of the query.
pub(super) fn conclude(weights: &Weights, of_post: &[f32], of_query: &[f32]) -> f32 {
    let sums = of_post.iter().zip(of_query).map(|(post, query)| positive(post + query));
    let norm = weights.scale.iter().zip(&weights.shift);
    let terms = sums.zip(norm).zip(&weights.output);
    let difference = terms.fold(weights.output_offset, |sum, ((joint, (scale, shift)), output)| {
        sum + f64::from(scale * joint + shift) * output
    });
    log_chance(difference)
}

/// `-ln(1 + e^x)`, never above 0 and never without end.
fn log_chance(x: f64) -> f32 {
    let log = 0.0 - (x.max(0.0) + elementary::ln_1p(elementary::exp(-x.abs())));
    (log as f32).max(f32::MIN)
}

/// The number, or 0 if it is below.
fn positive(number: f32) -> f32 {
    if number > 0.0 { number } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_have_finite_logarithms() {
        let ln = |x: f64| (-(1.0 + x.exp()).ln()) as f32;
        for x in [-9.0, -2.5, 0.0, 0.1, 3.0, 40.0] {
            assert!((log_chance(x) - ln(x)).abs() <= 1e-6 * ln(x).abs(), "{x}");
        }
        assert_eq!(log_chance(-1e300).to_bits(), 0.0_f32.to_bits(), "no negative zero");
        assert_eq!(log_chance(1e300), f32::MIN);
        assert_eq!(log_chance(800.0), -800.0);
    }

    #[test]
    fn a_mean_of_rows_is_that_of_each_column() {
        let mut out = [9.0; 2];
        mean(&[1.0, 2.0, 3.0, 8.0], &mut out);
        assert_eq!(out, [2.0, 5.0]);
    }

    #[test]
    fn what_is_no_number_counts_as_nothing_above_a_sum() {
        assert_eq!([positive(f32::NAN), positive(-1.0), positive(2.0)], [0.0, 0.0, 2.0]);
    }
}
