//! Products of all rows of one matrix with all rows of another, and their largest.
//!
//! Rows lie one after another, `dims` numbers each.

use crate::simd;
use crate::simd::{Columns, Packed, Rows};

/// Writes `a_i · b_j` for all rows, a row of `out` for each row of `a`.
pub fn products(a: &[f32], b: &[f32], dims: usize, out: &mut Vec<f32>) {
    out.resize((a.len() / dims) * (b.len() / dims), 0.0);
    simd::products(Packed { values: a, dims }, Packed { values: b, dims }, dims, out);
}

/// Writes `a_i · a_j` for all rows, each product computed once.
pub fn gram(a: &[f32], dims: usize, out: &mut Vec<f32>) {
    let rows = a.len() / dims;
    out.resize(rows * rows, 0.0);
    simd::gram(Packed { values: a, dims }, dims, out);
}

/// For every row its largest product with the first `split` rows, and that with the others; 0 where
/// all are below.
pub fn memberships(
    rows: impl Rows,
    split: usize,
    dims: usize,
    columns: &mut Columns,
    [first, second]: &mut [Vec<f32>; 2],
) {
    first.resize(rows.count(), 0.0);
    second.resize(rows.count(), 0.0);
    simd::memberships(rows, split, dims, columns, [first, second]);
}

/// The largest number of each row, or 0 if all are below.
pub fn row_maxima(matrix: &[f32], columns: usize, out: &mut Vec<f32>) {
    out.clear();
    out.extend(matrix.chunks_exact(columns).map(most));
}

/// The largest number, or 0 if all are below.
pub fn most(numbers: &[f32]) -> f32 {
    numbers.iter().copied().fold(0.0, larger)
}

/// Raises each number to the one that stands in the same place of the other list.
pub fn raise(numbers: &mut [f32], other: &[f32]) {
    for (number, &other) in numbers.iter_mut().zip(other) {
        *number = larger(*number, other);
    }
}

/// The largest number of each column, or 0 if all are below.
pub fn column_maxima(matrix: &[f32], columns: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(columns, 0.0);
    for row in matrix.chunks_exact(columns) {
        raise(out, row);
    }
}

/// The larger of two numbers that are none of them NaN, in one instruction.
#[inline]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_their_maxima() {
        let a = [1.0, 0.0, 0.0, 2.0];
        let b = [3.0, 1.0, -1.0, -1.0, 0.5, 4.0];
        let mut out = Vec::new();
        products(&a, &b, 2, &mut out);
        assert_eq!(out, [3.0, -1.0, 0.5, 2.0, -2.0, 8.0]);
        let mut most = Vec::new();
        row_maxima(&out, 3, &mut most);
        assert_eq!(most, [3.0, 8.0]);
        column_maxima(&out, 3, &mut most);
        assert_eq!(most, [3.0, 0.0, 8.0]);
        gram(&b, 2, &mut out);
        assert_eq!(out, [10.0, -4.0, 5.5, -4.0, 2.0, -4.5, 5.5, -4.5, 16.25]);
    }
}
