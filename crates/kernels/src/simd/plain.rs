//! The loops in plain code, for every processor: the reference for the others, bit for bit. They
//! have no branches, so that the compiler vectorises them.

use crate::simd::sums::{Rows as SumRows, Sum};
use crate::simd::{Element, LANES, Picked, Rows, exchange_loop, raise_by_loop};
pub(super) use crate::simd::{
    image_by_rows as image, largest_of_rows_loop as largest_of_rows,
    sum_of_rows_loop as sum_of_rows,
};

/// Whether every processor of the target multiplies and adds with one rounding. Otherwise `mul_add`
/// is a function of the C library, which takes some fifty times as long.
const HAS_FUSED: bool = cfg!(any(
    target_feature = "fma",
    target_arch = "aarch64",
    target_arch = "powerpc64",
    all(target_arch = "riscv64", target_feature = "f"),
    target_arch = "s390x"
));

/// `a b + sum` rounded once. The product of two singles is exact in double precision. Its sum with
/// a third is rounded to odd: an inexact sum is truncated and its last bit is set. Rounded once
/// more, to single precision, that is the exact sum rounded once (Boldo and Melquiond 2008,
/// "Emulation of FMA and correctly rounded sums").
#[inline(always)]
pub(super) fn fused(a: f32, b: f32, sum: f32) -> f32 {
    if HAS_FUSED {
        return a.mul_add(b, sum);
    }
    let (product, sum) = (f64::from(a) * f64::from(b), f64::from(sum));
    // The sum and its exact rounding error (Knuth's two-sum).
    let total = product + sum;
    let back = total - product;
    let lost = (product - (total - back)) + (sum - back);
    // Infinite sums lose nothing: NaN is not above zero.
    let inexact = u64::from(lost.abs() > 0.0);
    // A loss of the other sign means that the total is too far from zero by less than its last bit.
    let too_far = inexact & ((lost.to_bits() ^ total.to_bits()) >> 63);
    f64::from_bits((total.to_bits() - too_far) | inexact) as f32
}

fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

pub(super) fn dot<A: Element, B: Element>(a: &[A], b: &[B]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] = fused(a[lane].widen(), b[lane].widen(), lanes[lane]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = fused(a.widen(), b.widen(), *lane);
    }
    fold(lanes)
}

pub(super) fn squared_distance<A: Element, B: Element>(a: &[A], b: &[B]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            let difference = a[lane].widen() - b[lane].widen();
            lanes[lane] = fused(difference, difference, lanes[lane]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        let difference = a.widen() - b.widen();
        *lane = fused(difference, difference, *lane);
    }
    fold(lanes)
}

pub(super) fn exchange(slope: f32, row: &mut [f32], hidden: &[f32], error: &mut [f32]) {
    exchange_loop(slope, row, hidden, error, fused);
}

pub(super) fn add_scaled<A: Element, const N: usize>(
    sum: &mut [f32],
    weights: [f32; N],
    rows: [&[A]; N],
) {
    for (at, sum) in sum.iter_mut().enumerate() {
        for (weight, row) in weights.iter().zip(rows) {
            *sum = fused(row[at].widen(), *weight, *sum);
        }
    }
}

pub(super) fn products<A: Rows, B: Rows>(a: A, b: B, _dims: usize, out: &mut [f32]) {
    for i in 0..a.count() {
        for j in 0..b.count() {
            out[i * b.count() + j] = dot(a.row(i), b.row(j));
        }
    }
}

pub(super) fn gram<A: Rows>(a: A, _dims: usize, out: &mut [f32]) {
    let side = a.count();
    for i in 0..side {
        for j in i..side {
            let product = dot(a.row(i), a.row(j));
            out[i * side + j] = product;
            out[j * side + i] = product;
        }
    }
}

pub(super) fn raise_by<const N: usize>(best: &mut [f32], weights: [f32; N], rows: [&[f32]; N]) {
    raise_by_loop(best, weights, rows, fused);
}

pub(super) fn products_of_sums(a: Sum<'_>, b: Sum<'_>, dims: usize) -> [f32; 3] {
    let (a, b) = (written_down(a, dims), written_down(b, dims));
    [dot(&a, &b), dot(&a, &a), dot(&b, &b)]
}

fn written_down(sum: Sum<'_>, dims: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; dims];
    match sum.rows {
        SumRows::F32(rows) => add_rows(&mut numbers, sum.weights, rows),
        SumRows::F16(rows) => add_rows(&mut numbers, sum.weights, rows),
        SumRows::I8(rows) => add_rows(&mut numbers, sum.weights, rows),
    }
    numbers.iter_mut().for_each(|number| *number *= sum.share);
    numbers
}

fn add_rows<A: Element>(sum: &mut [f32], weights: &[f32], rows: Picked<'_, A>) {
    for (&number, weight) in rows.numbers.iter().zip(weights) {
        add_scaled(sum, [*weight], [rows.numbered(number)]);
    }
}
