//! Products, lengths and sums of rows of f32, f16 and int8. No words, no files.

use half::f16;

use crate::simd;
use crate::simd::sums::Sum;
use crate::simd::{Packed, Rows, bytes};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'m> {
    F32(&'m [f32]),
    F16(&'m [f16]),
    /// Signed bytes, each times the scale.
    I8(&'m [i8], f32),
}

impl<'m> Row<'m> {
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::I8(values, _) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the row's values into `out`, as many as fit.
    pub fn copy_to(self, out: &mut [f32]) {
        self.scale_to(1.0, out);
    }

    /// Writes the row's values times `weight` into `out`, as many as fit.
    pub fn scale_to(self, weight: f32, out: &mut [f32]) {
        match self {
            Self::F32(values) if weight == 1.0 && values.len() == out.len() => {
                out.copy_from_slice(values);
            }
            _ => {
                out.fill(0.0);
                add_scaled(out, weight, self);
            }
        }
    }
}

/// `Σ a_i b_i`; of bytes in whole numbers. Panics if both have more than [`bytes::MAX_DIMS`]
/// bytes.
#[inline]
pub fn dot(a: Row<'_>, b: Row<'_>) -> f32 {
    match (a, b) {
        (Row::F32(a), Row::F32(b)) => simd::dot(a, b),
        (Row::F32(a), Row::F16(b)) | (Row::F16(b), Row::F32(a)) => simd::dot(a, b),
        (Row::F16(a), Row::F16(b)) => simd::dot(a, b),
        // Scales are multiplied with each other first, so that exchanging the rows changes no bit.
        (Row::I8(a, scale), Row::I8(b, other)) => bytes::dot(a, b) as f32 * (scale * other),
        (Row::F32(a), Row::I8(b, scale)) | (Row::I8(b, scale), Row::F32(a)) => {
            simd::dot(a, b) * scale
        }
        (Row::F16(a), Row::I8(b, scale)) | (Row::I8(b, scale), Row::F16(a)) => {
            simd::dot(a, b) * scale
        }
    }
}

#[inline]
pub fn norm(row: Row<'_>) -> f32 {
    dot(row, row).sqrt()
}

#[inline]
pub fn add_scaled(sum: &mut [f32], weight: f32, row: Row<'_>) {
    match row {
        Row::F32(values) => simd::add_scaled(sum, [weight], [values]),
        Row::F16(values) => simd::add_scaled(sum, [weight], [values]),
        Row::I8(values, scale) => simd::add_scaled(sum, [weight * scale], [values]),
    }
}

/// `sum += Σ weight · row`, one row after the other: the bits of [`add_scaled`] for each row, with
/// a quarter of the traffic to the sum.
#[inline]
pub fn add_all<'m>(sum: &mut [f32], mut rows: impl Iterator<Item = (f32, Row<'m>)>) {
    while let Some(first) = rows.next() {
        let four = match [Some(first), rows.next(), rows.next(), rows.next()] {
            [Some(a), Some(b), Some(c), Some(d)] => [a, b, c, d],
            fewer => {
                for (weight, row) in fewer.into_iter().flatten() {
                    add_scaled(sum, weight, row);
                }
                return;
            }
        };
        match four {
            [(p, Row::F32(a)), (q, Row::F32(b)), (r, Row::F32(c)), (s, Row::F32(d))] => {
                simd::add_scaled(sum, [p, q, r, s], [a, b, c, d]);
            }
            [(p, Row::F16(a)), (q, Row::F16(b)), (r, Row::F16(c)), (s, Row::F16(d))] => {
                simd::add_scaled(sum, [p, q, r, s], [a, b, c, d]);
            }
            [(p, Row::I8(a, w)), (q, Row::I8(b, x)), (r, Row::I8(c, y)), (s, Row::I8(d, z))] => {
                simd::add_scaled(sum, [p * w, q * x, r * y, s * z], [a, b, c, d]);
            }
            mixed => {
                for (weight, row) in mixed {
                    add_scaled(sum, weight, row);
                }
            }
        }
    }
}

/// The cosine of the angle between two rows, from -1 to 1; 0 if either has length 0, NaN if their
/// lengths overflow.
#[inline]
pub fn cosine(a: Row<'_>, b: Row<'_>) -> f32 {
    cosine_by_lengths(a, b, norm(a) * norm(b))
}

/// The cosine from the known product of the rows' [lengths](norm).
#[inline]
pub fn cosine_by_lengths(a: Row<'_>, b: Row<'_>, lengths: f32) -> f32 {
    cosine_of(dot(a, b), lengths)
}

/// The cosine of two sums: bit for bit that of [`cosine`] after writing each with [`add_all`] and
/// scaling it by its share. Panics if the rows of one are longer than those of the other, or if a
/// number has no row.
pub fn cosine_of_sums(a: Sum<'_>, b: Sum<'_>) -> f32 {
    let [product, square, other] = simd::products_of_sums(a, b);
    cosine_of(product, square.sqrt() * other.sqrt())
}

/// The cosine from the product of two rows and the product of their lengths.
#[inline]
pub fn cosine_of(product: f32, lengths: f32) -> f32 {
    match lengths {
        f32::INFINITY => f32::NAN,
        lengths if lengths > 0.0 => (product / lengths).clamp(-1.0, 1.0),
        lengths if lengths.is_nan() => lengths,
        _ => 0.0,
    }
}

/// Writes `a_i · b_j` for all rows, a row of `out` for each row of `a`.
pub fn products(a: &[f32], b: &[f32], dims: usize, out: &mut Vec<f32>) {
    out.resize((a.len() / dims) * (b.len() / dims), 0.0);
    simd::products(Packed { values: a, dims }, Packed { values: b, dims }, dims, out);
}

/// Writes `a_i · a_j` for all rows, each product computed once.
pub fn gram(a: &[f32], dims: usize, out: &mut Vec<f32>) {
    gram_of(Packed { values: a, dims }, dims, out);
}

/// Writes the products of all pairs of rows, which may lie anywhere in memory.
pub fn gram_of(rows: impl Rows, dims: usize, out: &mut Vec<f32>) {
    out.resize(rows.count() * rows.count(), 0.0);
    simd::gram(rows, dims, out);
}

/// The maximum of each row, at least 0.
pub fn row_maxima(matrix: &[f32], columns: usize, out: &mut Vec<f32>) {
    out.clear();
    out.extend(matrix.chunks_exact(columns).map(most));
}

/// The maximum, at least 0.
pub fn most(numbers: &[f32]) -> f32 {
    numbers.iter().copied().fold(0.0, larger)
}

/// Raises each number to the number at the same index of the other list.
pub fn raise(numbers: &mut [f32], other: &[f32]) {
    let (fours, rest) = numbers.as_chunks_mut::<4>();
    let (other_fours, other_rest) = other.as_chunks::<4>();
    for (numbers, other) in fours.iter_mut().zip(other_fours) {
        for at in 0..4 {
            numbers[at] = larger(numbers[at], other[at]);
        }
    }
    for (number, &other) in rest.iter_mut().zip(other_rest) {
        *number = larger(*number, other);
    }
}

/// The maximum of each column, at least 0.
pub fn column_maxima(matrix: &[f32], columns: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(columns, 0.0);
    for row in matrix.chunks_exact(columns) {
        raise(out, row);
    }
}

/// The larger of two numbers that are not NaN, in one instruction; the first of two zeros.
#[inline]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_rows_agree() {
        let wide: Vec<f32> = (0..37).map(|i| (i as f32 - 18.0) / 8.0).collect();
        let half: Vec<f16> = wide.iter().map(|&value| f16::from_f32_const(value)).collect();
        let byte: Vec<i8> = wide.iter().map(|&value| (value * 8.0) as i8).collect();
        let rows = [Row::F32(&wide), Row::F16(&half), Row::I8(&byte, 0.125)];
        let expected = dot(rows[0], rows[0]);
        for a in rows {
            for b in rows {
                assert_eq!(dot(a, b), expected);
                assert_eq!(cosine(a, b), 1.0);
            }
            let mut copy = vec![9.0; 37];
            a.copy_to(&mut copy);
            assert_eq!(copy, wide);
        }
        assert_eq!(cosine(Row::F32(&[0.0; 37]), rows[0]), 0.0);
        assert!(cosine(Row::F32(&[1e30; 37]), rows[0]).is_nan());
        assert!(cosine(Row::F32(&[f32::NAN; 37]), rows[0]).is_nan());
    }
}

#[cfg(test)]
mod pairwise_tests {
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
