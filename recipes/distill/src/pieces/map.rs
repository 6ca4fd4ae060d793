//! A linear map from the teachers' vectors of a word to the word's vector: ridge regression over
//! words that have both.
//!
//! Vectors of rare words are almost such a map already, because few texts changed their initial
//! values. It gives vectors to words that were not trained: misspellings, names, compounds.

use ndarray::Array2;
use rayon::prelude::*;

const RIDGE: f64 = 1.0;
/// Words that a thread processes at a time; partial sums are added in order.
const PART: usize = 4096;

/// A linear map with an offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// A row for each input number, and a last row for the offset.
    weights: Array2<f64>,
}

/// Writes the input vector of the word at an index.
pub type Fill<'f> = &'f (dyn Fn(usize, &mut [f32]) + Sync);

impl Map {
    /// The map with the least squared error for the rows of these words.
    pub fn fit(words: &[usize], fill: Fill<'_>, width: usize, rows: &[f32], dims: usize) -> Self {
        let inputs = width + 1;
        let of_part = |words: &[usize]| {
            let mut moments = Array2::<f64>::zeros((inputs, inputs + dims));
            let mut input = vec![1.0; inputs];
            for &word in words {
                fill(word, &mut input[..width]);
                let row = &rows[word * dims..(word + 1) * dims];
                for (line, &factor) in moments.rows_mut().into_iter().zip(&input) {
                    let numbers = input.iter().chain(row);
                    for (sum, &number) in line.into_iter().zip(numbers) {
                        *sum += f64::from(factor) * f64::from(number);
                    }
                }
            }
            moments
        };
        let parts: Vec<Array2<f64>> = words.par_chunks(PART).map(of_part).collect();
        let mut all = Array2::<f64>::zeros((inputs, inputs + dims));
        parts.iter().for_each(|part| all += part);
        for at in 0..inputs {
            all[[at, at]] += RIDGE;
        }
        Self { weights: solve(all, inputs) }
    }

    pub fn apply(&self, input: &[f32]) -> Vec<f32> {
        let inputs = self.weights.nrows();
        let mut sums = self.weights.row(inputs - 1).to_vec();
        for (line, &factor) in self.weights.rows().into_iter().zip(input) {
            sums.iter_mut().zip(line).for_each(|(sum, weight)| *sum += f64::from(factor) * weight);
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    }
}

/// Solves a positive definite system by Cholesky decomposition; the right sides are extra columns.
/// The ridge keeps the diagonal above 0.
fn solve(mut system: Array2<f64>, size: usize) -> Array2<f64> {
    let all = system.ncols();
    for at in 0..size {
        // The pivot's row, divided by its root, is a row of L' and of the solution of L y = b.
        let root = system[[at, at]].max(f64::MIN_POSITIVE).sqrt();
        for column in at..all {
            system[[at, column]] /= root;
        }
        let pivot = system.row(at).to_owned();
        for below in at + 1..size {
            let factor = pivot[below];
            for column in below..all {
                system[[below, column]] -= factor * pivot[column];
            }
        }
    }
    let mut solution = Array2::zeros((size, all - size));
    for at in (0..size).rev() {
        for right in 0..all - size {
            let known: f64 =
                (at + 1..size).map(|later| system[[at, later]] * solution[[later, right]]).sum();
            solution[[at, right]] = (system[[at, size + right]] - known) / system[[at, at]];
        }
    }
    solution
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;
    use cognate_train::sampling;

    use super::*;

    #[test]
    fn a_map_that_made_the_rows_is_found_again() {
        let (words, width, dims) = (5000, 4, 3);
        let mut random = Random::seeded(1);
        let mut normal = |count: usize| -> Vec<f32> {
            (0..count).map(|_| sampling::normal(&mut random) as f32).collect()
        };
        let (inputs, weights) = (normal(words * width), normal((width + 1) * dims));
        let row = |input: &[f32]| -> Vec<f32> {
            let of = |column: usize| {
                let product = (0..width).map(|at| input[at] * weights[at * dims + column]);
                product.sum::<f32>() + weights[width * dims + column]
            };
            (0..dims).map(of).collect()
        };
        let rows: Vec<f32> = inputs.chunks_exact(width).flat_map(row).collect();
        let fill = |word: usize, to: &mut [f32]| {
            to.copy_from_slice(&inputs[word * width..(word + 1) * width]);
        };
        let all: Vec<usize> = (0..words).collect();
        let map = Map::fit(&all, &fill, width, &rows, dims);
        let input = [0.3, -1.0, 2.0, 0.5];
        for (found, expected) in map.apply(&input).iter().zip(row(&input)) {
            assert!((found - expected).abs() < 5e-3, "{found} {expected}");
        }
    }
}
