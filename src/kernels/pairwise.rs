//! Products of all rows of one matrix with all rows of another, and their largest.
//!
//! Rows lie one after another, `dims` numbers each.

use crate::kernels::simd;

/// Writes `a_i · b_j` for all rows, a row of `out` for each row of `a`.
pub fn products(a: &[f32], b: &[f32], dims: usize, out: &mut Vec<f32>) {
    out.clear();
    for row in a.chunks_exact(dims) {
        out.extend(b.chunks_exact(dims).map(|other| simd::dot(row, other)));
    }
}

/// Writes `a_i · a_j` for all rows, each product computed once.
pub fn gram(a: &[f32], dims: usize, out: &mut Vec<f32>) {
    let rows = a.len() / dims;
    out.clear();
    out.resize(rows * rows, 0.0);
    for (i, row) in a.chunks_exact(dims).enumerate() {
        for (j, other) in a.chunks_exact(dims).enumerate().skip(i) {
            let product = simd::dot(row, other);
            out[i * rows + j] = product;
            out[j * rows + i] = product;
        }
    }
}

/// The largest number of each row, or 0 if all are below.
pub fn row_maxima(matrix: &[f32], columns: usize, out: &mut Vec<f32>) {
    out.clear();
    out.extend(matrix.chunks_exact(columns).map(|row| row.iter().copied().fold(0.0, f32::max)));
}

/// The largest number of each column, or 0 if all are below.
pub fn column_maxima(matrix: &[f32], columns: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(columns, 0.0);
    for row in matrix.chunks_exact(columns) {
        for (most, &value) in out.iter_mut().zip(row) {
            *most = most.max(value);
        }
    }
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
