//! Weighted sums of rows, compared with each other without being written down.

use half::f16;

use crate::simd::sums;
use crate::simd::sums::Sum;
use crate::vector::Row;
use crate::{simd, vector};

/// `share · Σ weight · row` over rows of one type.
#[derive(Debug, Default)]
pub struct RowSum<'r> {
    rows: Rows<'r>,
    weights: Vec<f32>,
    share: f32,
}

#[derive(Debug)]
enum Rows<'r> {
    F32(Vec<&'r [f32]>),
    F16(Vec<&'r [f16]>),
    I8(Vec<&'r [i8]>),
}

impl Default for Rows<'_> {
    fn default() -> Self {
        Self::F32(Vec::new())
    }
}

impl<'r> RowSum<'r> {
    /// Takes rows, each with its weight. `false` where they are not all of one type: then the sum is
    /// that of the rows before the first of another type.
    pub fn fill(&mut self, share: f32, mut rows: impl Iterator<Item = (f32, Row<'r>)>) -> bool {
        self.share = share;
        self.weights.clear();
        let Some((weight, first)) = rows.next() else {
            self.rows = Rows::default();
            return true;
        };
        match (&mut self.rows, first) {
            (Rows::F32(list), Row::F32(_)) => list.clear(),
            (Rows::F16(list), Row::F16(_)) => list.clear(),
            (Rows::I8(list), Row::I8(..)) => list.clear(),
            (list, Row::F32(_)) => *list = Rows::F32(Vec::new()),
            (list, Row::F16(_)) => *list = Rows::F16(Vec::new()),
            (list, Row::I8(..)) => *list = Rows::I8(Vec::new()),
        }
        let mut rows = std::iter::once((weight, first)).chain(rows);
        let weights = &mut self.weights;
        match &mut self.rows {
            Rows::F32(list) => rows.all(|(weight, row)| {
                let Row::F32(row) = row else { return false };
                take(list, row, weights, weight)
            }),
            Rows::F16(list) => rows.all(|(weight, row)| {
                let Row::F16(row) = row else { return false };
                take(list, row, weights, weight)
            }),
            Rows::I8(list) => rows.all(|(weight, row)| {
                let Row::I8(row, scale) = row else { return false };
                take(list, row, weights, weight * scale)
            }),
        }
    }

    /// The memory of the lists, without what they held, for rows that lie elsewhere.
    pub fn emptied(self) -> RowSum<'static> {
        let rows = match self.rows {
            Rows::F32(rows) => Rows::F32(emptied(rows)),
            Rows::F16(rows) => Rows::F16(emptied(rows)),
            Rows::I8(rows) => Rows::I8(emptied(rows)),
        };
        RowSum { rows, weights: self.weights, share: self.share }
    }

    fn dims(&self) -> usize {
        let first = match &self.rows {
            Rows::F32(rows) => rows.first().map(|row| row.len()),
            Rows::F16(rows) => rows.first().map(|row| row.len()),
            Rows::I8(rows) => rows.first().map(|row| row.len()),
        };
        first.unwrap_or(0)
    }

    fn sum(&self) -> Sum<'_> {
        let rows = match &self.rows {
            Rows::F32(rows) => sums::Rows::F32(rows),
            Rows::F16(rows) => sums::Rows::F16(rows),
            Rows::I8(rows) => sums::Rows::I8(rows),
        };
        Sum { rows, weights: &self.weights, share: self.share }
    }
}

/// Takes a row, which will be read soon, and its weight.
#[inline]
fn take<'r, A>(list: &mut Vec<&'r [A]>, row: &'r [A], weights: &mut Vec<f32>, weight: f32) -> bool {
    simd::prefetch(row);
    list.push(row);
    weights.push(weight);
    true
}

/// The list's memory without what it held.
fn emptied<A>(mut rows: Vec<&[A]>) -> Vec<&'static [A]> {
    rows.clear();
    // Collecting nothing in place is what hands the memory on to a list of another lifetime.
    rows.into_iter().map(|_| -> &'static [A] { &[] }).collect()
}

/// The cosine of two sums: bit for bit that of [`vector::cosine`] where they are written down by
/// [`vector::add_all`] and then multiplied by their shares.
///
/// # Panics
///
/// Where a row is not of as many numbers as the others.
pub fn cosine(a: &RowSum<'_>, b: &RowSum<'_>) -> f32 {
    let [product, square, other] = sums::products_of_sums(a.sum(), b.sum(), a.dims());
    vector::cosine_of(product, square.sqrt() * other.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_is_that_of_sums_that_are_written_down() {
        let floats: Vec<f32> = (0..300).map(|n| (n as f32 * 0.7).sin()).collect();
        let bytes: Vec<i8> = floats.iter().map(|n| (n * 100.0) as i8).collect();
        let halves: Vec<f16> = floats.iter().map(|&n| f16::from_f32(n)).collect();
        let rows = [
            floats.chunks(100).map(Row::F32).collect::<Vec<_>>(),
            halves.chunks(100).map(Row::F16).collect(),
            bytes.chunks(100).map(|row| Row::I8(row, 0.013)).collect(),
        ];
        let mut sums = [RowSum::default(), RowSum::default()];
        for one in &rows {
            for other in &rows {
                let written = |rows: &[Row<'_>], share: f32| {
                    let mut sum = vec![0.0; 100];
                    vector::add_all(
                        &mut sum,
                        [0.5, -1.0, 2.0].into_iter().zip(rows.iter().copied()),
                    );
                    sum.iter_mut().for_each(|number| *number *= share);
                    sum
                };
                let (x, y) = (written(one, 0.25), written(&other[1..], 1.0));
                let [mut a, mut b] = std::mem::take(&mut sums);
                assert!(a.fill(0.25, [0.5, -1.0, 2.0].into_iter().zip(one.iter().copied())));
                assert!(b.fill(1.0, [0.5, -1.0].into_iter().zip(other[1..].iter().copied())));
                assert_eq!(cosine(&a, &b), vector::cosine(Row::F32(&x), Row::F32(&y)));
                sums = [a.emptied(), b.emptied()];
            }
        }
        let mixed = [(1.0, rows[0][0]), (1.0, rows[2][0])];
        assert!(!RowSum::default().fill(1.0, mixed.into_iter()));
        let mut none = RowSum::default();
        assert!(none.fill(1.0, std::iter::empty()));
        assert_eq!(cosine(&none, &none), 0.0);
    }
}
