//! Rotations of word vectors and targets: to the principal axes of texts, and from one set of axes
//! to another.

use cognate_kernels::linalg::{Eigen, Moments, symmetric_eigen};
use cognate_kernels::{simd, vector};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use crate::space;
use crate::space::Targets;
use crate::student::{Bags, Student};

/// Maximum texts for computing a rotation.
const MEASURED: usize = 60_000;
/// Texts that a thread processes at a time; partial sums are added in order.
const PART: usize = 8192;
/// Rows rotated at a time.
const STRIPE: usize = 64;
/// Singular values below this share of the largest count as 0.
const EMPTY: f64 = 1e-7;

/// At most [`MEASURED`] of these texts, evenly spaced.
fn measured(texts: &[u32]) -> Vec<u32> {
    let step = texts.len().div_ceil(MEASURED).max(1);
    texts.iter().copied().step_by(step).collect()
}

/// The unit sum of a text's words.
fn unit_sum(rows: &[f32], words: &[u32], sum: &mut [f32]) {
    sum.fill(0.0);
    for &word in words {
        let from = word as usize * sum.len();
        simd::add_scaled(sum, [1.0], [&rows[from..from + sum.len()]]);
    }
    space::unit(sum);
}

/// Rotates vectors to the principal axes of the unit sums of texts, the strongest axis first, so
/// that the first columns alone are good vectors, too.
pub fn to_principal_axes(student: &mut Student, bags: &Bags, texts: &[u32]) {
    let dims = student.dims;
    let texts = measured(texts);
    let of_part = |texts: &[u32]| {
        let (mut moments, mut sum) = (Moments::new(dims), vec![0.0; dims]);
        for &text in texts {
            unit_sum(&student.rows, bags.text(text as usize), &mut sum);
            moments.add(&sum);
        }
        moments
    };
    let parts: Vec<Moments> = texts.par_chunks(PART).map(of_part).collect();
    let moments = parts.into_iter().reduce(|mut all, part| {
        all.merge(part);
        all
    });
    let Some(moments) = moments else { return };
    let Eigen { vectors, .. } = symmetric_eigen(moments.second_moment().view());
    let axes: Vec<f32> = vectors.iter().map(|&number| number as f32).collect();
    turn(&mut student.rows, &axes, dims);
}

pub fn turn(rows: &mut [f32], matrix: &[f32], dims: usize) {
    rows.par_chunks_mut(STRIPE * dims).for_each_init(Vec::new, |turned, rows| {
        vector::products(rows, matrix, dims, turned);
        rows.copy_from_slice(turned);
    });
}

/// The rotation, for [`turn`], that brings the targets of texts nearest to the unit sums of their
/// words: orthogonal Procrustes (Schönemann 1966).
pub fn onto_sums(targets: &Targets, rows: &[f32], bags: &Bags, texts: &[u32]) -> Vec<f32> {
    let dims = targets.dims;
    let of_part = |texts: &[u32]| {
        let mut products = vec![0.0_f64; dims * dims];
        let (mut sum, mut target) = (vec![0.0; dims], vec![0.0_f32; dims]);
        for &text in texts {
            unit_sum(rows, bags.text(text as usize), &mut sum);
            for (to, from) in target.iter_mut().zip(targets.row(text as usize)) {
                *to = from.to_f32();
            }
            for (line, &wanted) in products.chunks_exact_mut(dims).zip(&sum) {
                for (to, &given) in line.iter_mut().zip(&target) {
                    *to += f64::from(wanted) * f64::from(given);
                }
            }
        }
        products
    };
    let texts = measured(texts);
    let parts: Vec<Vec<f64>> = texts.par_chunks(PART).map(of_part).collect();
    let mut all = Array2::zeros((dims, dims));
    for part in parts {
        all.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    nearest_rotation(all.view()).iter().map(|&number| number as f32).collect()
}

/// The orthogonal matrix nearest to a square one: A B' of its singular value decomposition A S B'.
/// Directions with singular value 0 are completed, so that the result is orthogonal.
fn nearest_rotation(matrix: ArrayView2<'_, f64>) -> Array2<f64> {
    let dims = matrix.nrows();
    let Eigen { values, vectors } = symmetric_eigen(matrix.t().dot(&matrix).view());
    let strongest = values.first().copied().unwrap_or(0.0).max(0.0).sqrt();
    let mut lefts: Vec<Vec<f64>> = Vec::with_capacity(dims);
    let mut units = 0;
    for (right, value) in vectors.rows().into_iter().zip(&values) {
        let mut left = matrix.dot(&right).to_vec();
        if value.max(0.0).sqrt() <= EMPTY * strongest || !orthonormal(&mut left, &lefts) {
            // Some axis is always outside the span of fewer than `dims` directions.
            loop {
                left = (0..dims).map(|at| if at == units { 1.0 } else { 0.0 }).collect();
                units += 1;
                if orthonormal(&mut left, &lefts) || units >= dims {
                    break;
                }
            }
        }
        lefts.push(left);
    }
    let lefts = Array2::from_shape_fn((dims, dims), |(row, column)| lefts[column][row]);
    lefts.dot(&vectors)
}

/// Makes a direction orthogonal to others and scales it to length 1; `false` if almost nothing is
/// left.
fn orthonormal(direction: &mut [f64], others: &[Vec<f64>]) -> bool {
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let before = length(direction);
    // Twice, because rounding leaves a part after the first pass.
    for _ in 0..2 {
        for other in others {
            let along: f64 = direction.iter().zip(other).map(|(a, b)| a * b).sum();
            direction.iter_mut().zip(other).for_each(|(x, other)| *x -= along * other);
        }
    }
    let after = length(direction);
    let has_direction = after > 1e-6 * before;
    if has_direction {
        direction.iter_mut().for_each(|x| *x /= after);
    }
    has_direction
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;
    use cognate_train::sampling;

    use super::*;

    fn random(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::seeded(seed);
        (0..count).map(|_| sampling::normal(&mut random) as f32).collect()
    }

    fn is_orthogonal(matrix: &Array2<f64>) -> bool {
        let product = matrix.dot(&matrix.t());
        product.indexed_iter().all(|((i, j), &x)| (x - f64::from(u8::from(i == j))).abs() < 1e-9)
    }

    #[test]
    fn the_nearest_rotation_is_one_whatever_the_matrix() {
        for rank in [0, 1, 5, 8] {
            let numbers = random(64, 1);
            let matrix = Array2::from_shape_fn((8, 8), |(row, column)| {
                if column < rank { f64::from(numbers[row * 8 + column]) } else { 0.0 }
            });
            let rotation = nearest_rotation(matrix.view());
            assert!(is_orthogonal(&rotation), "rank {rank}");
            // Of all rotations this one has the largest trace of Q'M, the sum of singular values;
            // no swap of axes or signs makes it larger.
            let trace = |q: &Array2<f64>| q.t().dot(&matrix).diag().sum();
            let best = trace(&rotation);
            for axis in 0..8 {
                let mut other = rotation.clone();
                other.row_mut(axis).mapv_inplace(|x| -x);
                assert!(trace(&other) <= best + 1e-9);
            }
        }
    }

    #[test]
    fn targets_are_turned_onto_sums_that_are_turned_targets() {
        // 40 words, each a text of its own; targets are the words' directions on other axes.
        let dims = 6;
        let mut rows = random(40 * dims, 2);
        rows.chunks_exact_mut(dims).for_each(space::unit);
        let numbers = random(dims * dims, 3);
        let shape = (dims, dims);
        let other = Array2::from_shape_fn(shape, |(i, j)| f64::from(numbers[i * dims + j]));
        let other = nearest_rotation(other.view());
        let matrix: Vec<f32> = other.iter().map(|&x| x as f32).collect();
        let mut given = rows.clone();
        turn(&mut given, &matrix, dims);
        let targets = Targets::of(given.clone(), dims);
        let mut bags = Bags::default();
        (0..40).for_each(|word| bags.push(&[word]));
        let texts: Vec<u32> = (0..40).collect();
        let back = onto_sums(&targets, &rows, &bags, &texts);
        turn(&mut given, &back, dims);
        for (given, row) in given.iter().zip(&rows) {
            assert!((given - row).abs() < 2e-3, "{given} {row}");
        }
    }

    #[test]
    fn principal_axes_come_in_order_and_keep_all_products() {
        let dims = 5;
        let mut rows = random(30 * dims, 4);
        rows.chunks_exact_mut(dims).for_each(|row| row[3] *= 4.0);
        let mut student = Student::new(rows.clone(), dims);
        let mut bags = Bags::default();
        (0..30).for_each(|word| bags.push(&[word, (word + 1) % 30]));
        let texts: Vec<u32> = (0..30).collect();
        to_principal_axes(&mut student, &bags, &texts);
        for (a, b) in [(0, 1), (4, 9), (7, 7)] {
            let dot = |rows: &[f32]| -> f32 {
                (0..dims).map(|at| rows[a * dims + at] * rows[b * dims + at]).sum()
            };
            assert!((dot(&student.rows) - dot(&rows)).abs() < 1e-3);
        }
        let mut weights = vec![0.0; dims];
        let mut sum = vec![0.0; dims];
        for &text in &texts {
            unit_sum(&student.rows, bags.text(text as usize), &mut sum);
            weights.iter_mut().zip(&sum).for_each(|(weight, x)| *weight += x * x);
        }
        assert!(weights.is_sorted_by(|a, b| a + 1e-4 >= *b), "{weights:?}");
        assert!(weights[0] > 15.0, "{weights:?}");
    }
}
