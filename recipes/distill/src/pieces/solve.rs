//! Solves sparse symmetric positive definite systems with many right sides by conjugate gradients
//! (Hestenes and Stiefel 1952) with the diagonal as preconditioner.
//!
//! The right sides are independent, but each step reads the matrix once for all of them. Sums are
//! computed in parts of fixed size and added in order.

use cognate_kernels::simd;
use rayon::prelude::*;

/// Maximum steps; a few dozen are usual.
const STEPS: usize = 300;
/// A right side is solved when its residual is this share of it.
const SOLVED: f64 = 1e-5;
/// Rows that a thread processes at a time.
const STRIPE: usize = 64;

#[derive(Debug)]
pub(super) struct Symmetric {
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
    diagonal: Vec<f32>,
}

impl Symmetric {
    /// Σ_w ω_w a_w a_w' + ridge, where a_w counts the unknowns in list w.
    pub(super) fn of_products(
        lists: &[Vec<u32>],
        weights: impl Iterator<Item = f32>,
        unknowns: usize,
        ridge: f32,
    ) -> Self {
        let mut pairs: Vec<((u32, u32), f32)> = Vec::new();
        for (list, weight) in lists.iter().zip(weights) {
            for &row in list {
                pairs.extend(list.iter().map(|&column| ((row, column), weight)));
            }
        }
        pairs.extend((0..unknowns as u32).map(|row| ((row, row), ridge)));
        // A stable sort, so that entries of one place are summed in the order of the lists.
        pairs.par_sort_by_key(|(place, _)| *place);
        let mut matrix =
            Self { starts: vec![0], entries: Vec::new(), diagonal: Vec::with_capacity(unknowns) };
        for alike in pairs.chunk_by(|a, b| a.0 == b.0) {
            let (row, column) = alike[0].0;
            while matrix.starts.len() <= row as usize {
                matrix.starts.push(matrix.entries.len());
            }
            let sum: f64 = alike.iter().map(|(_, weight)| f64::from(*weight)).sum();
            matrix.entries.push((column, sum as f32));
            if row == column {
                matrix.diagonal.push(sum as f32);
            }
        }
        matrix.starts.push(matrix.entries.len());
        matrix
    }

    /// Returns the solution: for each unknown a row with a number for each right side.
    pub(super) fn solve(&self, right: Vec<f32>, columns: usize) -> Vec<f32> {
        let mut unknown = vec![0.0_f32; right.len()];
        let wanted = sums(&right, &right, columns);
        let mut left = right;
        let mut scaled = self.scaled(&left, columns);
        let mut way = scaled.clone();
        let mut image = vec![0.0_f32; left.len()];
        let mut rho = sums(&left, &scaled, columns);
        for _ in 0..STEPS {
            let missing = sums(&left, &left, columns);
            let solved = |(missing, wanted): (&f64, &f64)| *missing <= SOLVED * SOLVED * wanted;
            if missing.iter().zip(&wanted).all(solved) {
                break;
            }
            self.apply(&way, &mut image, columns);
            let curvature = sums(&way, &image, columns);
            let step = shares(&rho, &curvature);
            add(&mut unknown, &step, &way, 1.0);
            add(&mut left, &step, &image, -1.0);
            scaled = self.scaled(&left, columns);
            let next = sums(&left, &scaled, columns);
            let keep = shares(&next, &rho);
            rho = next;
            let rows = way.par_chunks_mut(columns).zip(scaled.par_chunks(columns));
            rows.with_min_len(STRIPE).for_each(|(way, scaled)| {
                for ((way, scaled), keep) in way.iter_mut().zip(scaled).zip(&keep) {
                    *way = scaled + keep * *way;
                }
            });
        }
        unknown
    }

    /// Multiplies by the matrix.
    fn apply(&self, from: &[f32], to: &mut [f32], columns: usize) {
        let rows = to.par_chunks_mut(columns).enumerate();
        rows.with_min_len(STRIPE / 4).for_each(|(row, to)| {
            to.fill(0.0);
            for &(column, value) in &self.entries[self.starts[row]..self.starts[row + 1]] {
                let from = &from[column as usize * columns..][..columns];
                simd::add_scaled(to, [value], [from]);
            }
        });
    }

    /// Divides every row by the diagonal.
    fn scaled(&self, rows: &[f32], columns: usize) -> Vec<f32> {
        let mut scaled = rows.to_vec();
        for (row, diagonal) in scaled.chunks_exact_mut(columns).zip(&self.diagonal) {
            row.iter_mut().for_each(|number| *number /= diagonal);
        }
        scaled
    }
}

/// For each column, the sum of products of two tables.
fn sums(a: &[f32], b: &[f32], columns: usize) -> Vec<f64> {
    let part = |(a, b): (&[f32], &[f32])| {
        let mut sums = vec![0.0_f64; columns];
        for (a, b) in a.chunks_exact(columns).zip(b.chunks_exact(columns)) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum += f64::from(*a) * f64::from(*b);
            }
        }
        sums
    };
    let size = STRIPE * columns;
    let parts: Vec<Vec<f64>> = a.par_chunks(size).zip(b.par_chunks(size)).map(part).collect();
    let mut all = vec![0.0; columns];
    for part in parts {
        all.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    all
}

/// Quotients; 0 if the divisor is 0, as for a solved column.
fn shares(above: &[f64], below: &[f64]) -> Vec<f32> {
    let share =
        |(above, below): (&f64, &f64)| if *below > 0.0 { (above / below) as f32 } else { 0.0 };
    above.iter().zip(below).map(share).collect()
}

/// `to += sign · factor · from`, with a factor for each column.
fn add(to: &mut [f32], factors: &[f32], from: &[f32], sign: f32) {
    let columns = factors.len();
    let rows = to.par_chunks_mut(columns).zip(from.par_chunks(columns));
    rows.with_min_len(STRIPE).for_each(|(to, from)| {
        for ((to, from), factor) in to.iter_mut().zip(from).zip(factors) {
            *to += sign * factor * from;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve() {
        let lists: Vec<Vec<u32>> = (0..50)
            .map(|at: u32| (0..1 + at % 3).map(|part| (at * 7 + part * 5) % 9).collect())
            .collect();
        let weights = (0..50).map(|at| 1.0 + (at % 4) as f32);
        let matrix = Symmetric::of_products(&lists, weights, 9, 0.5);
        let right: Vec<f32> = (0..27).map(|at| (at as f32 * 1.7).sin()).collect();
        let unknown = matrix.solve(right.clone(), 3);
        let mut back = vec![0.0; 27];
        matrix.apply(&unknown, &mut back, 3);
        for (back, right) in back.iter().zip(&right) {
            assert!((back - right).abs() < 1e-4, "{back} {right}");
        }
        // Computed by hand: both unknowns in a list of weight 2, and the second twice in one of
        // weight 3.
        let matrix =
            Symmetric::of_products(&[vec![0, 1], vec![1, 1]], [2.0, 3.0].into_iter(), 2, 1.0);
        assert_eq!(matrix.entries, [(0, 3.0), (1, 2.0), (0, 2.0), (1, 15.0)]);
        assert_eq!(matrix.diagonal, [3.0, 15.0]);
    }
}
