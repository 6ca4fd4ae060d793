//! Compares every width with the plain code, bit for bit.

use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use super::*;
use crate::simd;

/// The results at each width that this processor has; one test at a time.
pub(crate) fn at_every_width<T>(find: impl Fn() -> T) -> [T; 3] {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = [Width::Least, Width::Avx2, Width::Avx512].map(|width| {
        limit(width);
        find()
    });
    limit(widest());
    found
}

fn naive(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[derive(Debug, PartialEq)]
struct Outcome(Vec<u32>);

/// The results of all loops for two lists of numbers, by the modules `$from`.
macro_rules! outcome {
    ($from:ident, $a:expr, $b:expr) => {{
        let (a, b): (&[f32], &[f32]) = ($a, $b);
        let half: Vec<f16> = b.iter().map(|&value| f16::from_f32_const(value)).collect();
        let byte: Vec<i8> = b.iter().map(|&value| (value * 20.0) as i8).collect();
        let mut found = vec![
            $from::dot(a, b),
            $from::dot(a, &half),
            $from::dot(&byte, &half),
            $from::dot(&byte, &byte),
            $from::squared_distance(a, &half),
            $from::squared_distance(&byte, a),
        ];
        let mut sum = a.to_vec();
        $from::add_scaled(&mut sum, [0.7], [&half[..]]);
        $from::add_scaled(&mut sum, [1.5, -0.3, 0.1], [b, a, b]);
        $from::add_scaled(&mut sum, [-0.01, 0.02], [&byte[..], &byte[..]]);
        $from::raise_by(&mut sum, [0.9, -1.1], [b, a]);
        $from::raise_by(&mut sum, [-2.0], [b]);
        let mut error = b.to_vec();
        $from::exchange(0.3, &mut sum, a, &mut error);
        found.extend(sum);
        found.extend(error);
        Outcome(found.into_iter().map(f32::to_bits).collect())
    }};
}

macro_rules! matrices {
    ($from:ident, $a:expr, $b:expr, $dims:expr) => {{
        let (a, b, dims): (&[f32], &[f32], usize) = ($a, $b, $dims);
        let (height, width) = (a.len() / dims, b.len() / dims);
        let (mut products, mut gram) = (vec![9.0; height * width], vec![9.0; height * height]);
        let (a, b) = (Packed { values: a, dims }, Packed { values: b, dims });
        let apart: Vec<&[f32]> = (0..width).map(|at| b.row(at)).collect();
        $from::products(a, apart.as_slice(), dims, &mut products);
        $from::gram(a, dims, &mut gram);
        products.extend(gram);
        Outcome(products.into_iter().map(f32::to_bits).collect())
    }};
}

fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 40) as f32 / 4_194_304.0 - 2.0
    };
    (0..count).map(step).collect()
}

proptest! {
    #[test]
    fn every_width_gives_the_same_bits(
        a in prop::collection::vec(-3.0_f32..3.0, 0..130),
        seed in -2.0_f32..2.0,
    ) {
        let b: Vec<f32> = a.iter().rev().map(|value| value * seed).collect();
        let plain = outcome!(plain, &a, &b);
        for found in at_every_width(|| outcome!(simd, &a, &b)) {
            prop_assert_eq!(&found, &plain);
        }
        let close = 1e-5 * (1.0 + naive(&a, &a).abs() + naive(&b, &b).abs());
        prop_assert!((f64::from(f32::from_bits(plain.0[0])) - naive(&a, &b)).abs() < close);
    }

    #[test]
    fn tiles_give_what_single_products_give(
        height in 1usize..14, width in 1usize..14, dims in 1usize..70, seed: u64,
    ) {
        let (a, b) = (numbers(seed, height * dims), numbers(!seed, width * dims));
        let plain = matrices!(plain, &a, &b, dims);
        for found in at_every_width(|| matrices!(simd, &a, &b, dims)) {
            prop_assert_eq!(&found, &plain);
        }
        let of_rows = a.chunks(dims).flat_map(|a| b.chunks(dims).map(move |b| plain::dot(a, b)));
        let bits: Vec<u32> = of_rows.map(f32::to_bits).collect();
        prop_assert_eq!(&plain.0[..bits.len()], &bits[..]);
    }

    #[test]
    fn columns_of_some_rows_are_the_same_at_every_width(
        height in 1_u32..20, width in 1usize..40, picks in prop::collection::vec(any::<u32>(), 0..40),
        seed: u64,
    ) {
        let matrix = numbers(seed, height as usize * width);
        let rows: Vec<u32> = picks.into_iter().map(|pick| pick % height).collect();
        let column = |at: usize| rows.iter().map(move |&row| (row as usize) * width + at);
        let outcome = |largest: fn(&[f32], &[u32], &mut [f32]), sum: fn(&[f32], &[u32], &mut [f64])| {
            let (mut best, mut sums) = (vec![9.0; width], vec![9.0; width]);
            largest(&matrix, &rows, &mut best);
            sum(&matrix, &rows, &mut sums);
            (best, sums)
        };
        let (best, sums) = outcome(plain::largest_of_rows, plain::sum_of_rows);
        for at in 0..width {
            let most = column(at).map(|at| matrix[at]).fold(0.0, f32::max);
            prop_assert_eq!(best[at], most);
            let sum: f64 = column(at).map(|at| f64::from(matrix[at])).sum();
            prop_assert!((sums[at] - sum).abs() < 1e-4);
        }
        for found in at_every_width(|| outcome(largest_of_rows, sum_of_rows)) {
            prop_assert_eq!(&found, &(best.clone(), sums.clone()));
        }
    }

    #[test]
    fn images_are_the_same_at_every_width(rows in 0usize..40, width in 1usize..40, seed: u64) {
        let matrix = numbers(seed, rows * width);
        let weights: Vec<f64> = numbers(!seed, rows).into_iter().map(f64::from).collect();
        let mut expected = vec![0.0; width];
        for (at, sum) in expected.iter_mut().enumerate() {
            for (row, weight) in weights.iter().enumerate() {
                *sum += weight * f64::from(matrix[row * width + at]);
            }
        }
        let by = |image: fn(&[f32], &[f64], &mut [f64])| {
            let mut found = vec![0.0; width];
            image(&matrix, &weights, &mut found);
            found
        };
        prop_assert_eq!(by(plain::image), expected.clone());
        for found in at_every_width(|| by(image)) {
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn plain_code_rounds_a_product_and_a_sum_once(a: u32, b: u32, c: u32, near in -30_i32..30) {
        let [a, b, c] = [a, b, c].map(f32::from_bits);
        // A third number of the product's size, and one that all but cancels it.
        let [scaled, opposite] = [a * b * (near as f32).exp2(), -(a * b)];
        for c in [c, scaled, opposite, opposite.next_up(), 0.0] {
            let (found, expected) = (plain::fused(a, b, c), a.mul_add(b, c));
            prop_assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                "{a:e} · {b:e} + {c:e}: {found:e}, not {expected:e}");
        }
    }

    #[test]
    fn half_widens_as_the_processor_does(bits: u16) {
        let half = f16::from_bits(bits);
        prop_assert_eq!(half.widen().to_bits(), half.to_f32().to_bits());
    }
}

#[test]
fn rows_of_different_lengths_are_read_as_far_as_both_go() {
    // Opaque: of loads from constants shorter than a register, LLVM 22 would try every address of 32 bits.
    let [short, long] = std::hint::black_box([&[1.0_f32][..], &[4.0, 5.0]]);
    assert_eq!(dot(&[1.0_f32, 2.0, 3.0], long), 14.0);
    assert_eq!(squared_distance(short, long), 9.0);
    let (mut sum, mut error) = ([1.0; 3], [1.0; 2]);
    add_scaled(&mut sum, [2.0, 1.0], [&[1.0_f32, 1.0], &[0.5, 0.5, 0.5]]);
    assert_eq!(sum, [3.5, 3.5, 1.0]);
    raise_by(&mut sum[..2], [2.0, -1.0], [&[1.0_f32, 3.0], &[0.5, 0.5]]);
    assert_eq!(sum, [3.5, 5.5, 1.0], "only where it is larger");
    exchange(2.0, &mut sum, &[1.0], &mut error);
    assert_eq!((sum, error), ([5.5, 5.5, 1.0], [8.0, 1.0]));
}
