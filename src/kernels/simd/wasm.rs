//! The loops for WebAssembly with 128-bit vectors: eight registers of two hold the sixteen lanes.
//!
//! WebAssembly has no fused multiply-add that gives the same bits everywhere, so one is made here. The
//! product of two numbers of single precision is exact in double precision. Its sum with a third is
//! rounded to odd: where it is not exact, it is cut towards zero and its last bit is set. Rounded once
//! more, to single precision, that is the exact sum rounded once (Boldo and Melquiond 2008, "Emulation
//! of FMA and correctly rounded sums"). So lanes are kept as doubles that hold singles.

use std::arch::wasm32::*;

use half::f16;

use crate::kernels::simd::LANES;
use crate::kernels::simd::Rows;
use crate::kernels::simd::four;
use crate::kernels::simd::sums::Rows as SumRows;
use crate::kernels::simd::sums::Sum;
use crate::kernels::simd::sums::sums;
use crate::kernels::simd::tiles::Blocks;
use crate::kernels::simd::tiles::SIDE;
use crate::kernels::simd::tiles::Tile;
use crate::kernels::simd::tiles::put;
use crate::kernels::simd::tiles::raise;
use crate::kernels::simd::tiles::tallest;
use crate::kernels::simd::tiles::tiles;
use crate::kernels::simd::tiles::turned;

pub(super) use crate::kernels::simd::plain::exchange;
pub(super) use crate::kernels::simd::plain::image;
pub(super) use crate::kernels::simd::plain::ranks;

#[cfg(not(target_feature = "simd128"))]
compile_error!("for WebAssembly, build with RUSTFLAGS=\"-C target-feature=+simd128\"");

/// Registers that hold the lanes.
const REGISTERS: usize = LANES / 2;

/// Sixteen numbers of single precision, each as a double.
type Lanes = [v128; REGISTERS];

/// Numbers that registers are filled from.
pub(in crate::kernels::simd) trait Load: Copy {
    /// What stands where there is no number.
    const ZERO: Self;

    /// Sixteen numbers, widened.
    fn load(chunk: &[Self; LANES]) -> Lanes;
}

impl Load for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Lanes {
        // SAFETY: there are sixteen numbers to read.
        of_singles(unsafe { quarters(chunk.as_ptr().cast()) })
    }
}

impl Load for f16 {
    const ZERO: Self = Self::ZERO;

    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Lanes {
        let start = chunk.as_ptr().cast::<v128>();
        // SAFETY: there are sixteen numbers of two bytes to read.
        let [lower, upper] = unsafe { [v128_load(start), v128_load(start.add(1))] };
        of_singles([
            of_halves(u32x4_extend_low_u16x8(lower)),
            of_halves(u32x4_extend_high_u16x8(lower)),
            of_halves(u32x4_extend_low_u16x8(upper)),
            of_halves(u32x4_extend_high_u16x8(upper)),
        ])
    }
}

impl Load for i8 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Lanes {
        // SAFETY: there are sixteen bytes to read.
        let bytes = unsafe { v128_load(chunk.as_ptr().cast()) };
        let (lower, upper) = (i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes));
        let quarters = [
            i32x4_extend_low_i16x8(lower),
            i32x4_extend_high_i16x8(lower),
            i32x4_extend_low_i16x8(upper),
            i32x4_extend_high_i16x8(upper),
        ];
        pairs(quarters, |four| f64x2_convert_low_i32x4(four))
    }
}

/// # Safety
///
/// There are sixteen numbers to read.
#[inline(always)]
unsafe fn quarters(start: *const v128) -> [v128; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        [
            v128_load(start),
            v128_load(start.add(1)),
            v128_load(start.add(2)),
            v128_load(start.add(3)),
        ]
    }
}

#[inline(always)]
fn of_singles(quarters: [v128; 4]) -> Lanes {
    pairs(quarters, |four| f64x2_promote_low_f32x4(four))
}

/// The lower and the upper two of each four numbers, widened.
#[inline(always)]
fn pairs(quarters: [v128; 4], widen: impl Fn(v128) -> v128) -> Lanes {
    let upper = |four| widen(i64x2_shuffle::<1, 1>(four, four));
    let [a, b, c, d] = quarters;
    [widen(a), upper(a), widen(b), upper(b), widen(c), upper(c), widen(d), upper(d)]
}

/// Four halves, each in 32 bits, as singles: the exponent is moved by a product, which is exact for
/// subnormal numbers, too, and what is infinite or no number stays so.
#[inline(always)]
fn of_halves(halves: v128) -> v128 {
    let rest = u32x4_shl(v128_and(halves, u32x4_splat(0x7fff)), 13);
    let sign = u32x4_shl(v128_and(halves, u32x4_splat(0x8000)), 16);
    let moved = f32x4_mul(rest, f32x4_splat(f32::from_bits(0x7780_0000)));
    let endless = v128_and(u32x4_ge(rest, u32x4_splat(0x0f80_0000)), u32x4_splat(0x7f80_0000));
    v128_or(v128_or(moved, endless), sign)
}

/// Fewer than sixteen numbers, with zeros after them.
#[inline(always)]
fn padded<A: Load>(rest: &[A]) -> [A; LANES] {
    let mut chunk = [A::ZERO; LANES];
    chunk[..rest.len()].copy_from_slice(rest);
    chunk
}

/// Doubles rounded to singles.
#[inline(always)]
fn rounded(doubles: v128) -> v128 {
    f64x2_promote_low_f32x4(f32x4_demote_f64x2_zero(doubles))
}

/// `a b + sum` of singles, rounded once.
#[inline(always)]
fn fused_two(a: v128, b: v128, sum: v128) -> v128 {
    let product = f64x2_mul(a, b);
    let total = f64x2_add(product, sum);
    // What the addition lost, exactly (Knuth's two-sum).
    let back = f64x2_sub(total, product);
    let lost = f64x2_add(f64x2_sub(product, f64x2_sub(total, back)), f64x2_sub(sum, back));
    // Of infinite sums nothing is lost: what is no number is not above zero.
    let inexact = f64x2_gt(f64x2_abs(lost), f64x2_splat(0.0));
    // A loss of the other sign means that the total is too far from zero by less than its last bit.
    let too_far = v128_and(inexact, i64x2_shr(v128_xor(lost, total), 63));
    let cut = i64x2_add(total, too_far);
    rounded(v128_or(cut, v128_and(inexact, i64x2_splat(1))))
}

#[inline(always)]
fn none() -> Lanes {
    [f64x2_splat(0.0); REGISTERS]
}

#[inline(always)]
fn all(number: f32) -> Lanes {
    [f64x2_splat(f64::from(number)); REGISTERS]
}

#[inline(always)]
fn chunk<A: Load>(chunk: &[A; LANES]) -> Lanes {
    A::load(chunk)
}

#[inline(always)]
fn rest_of_row<A: Load>(rest: &[A]) -> Lanes {
    A::load(&padded(rest))
}

#[inline(always)]
fn each(mut lanes: Lanes, change: impl Fn(usize, v128) -> v128) -> Lanes {
    for (at, two) in lanes.iter_mut().enumerate() {
        *two = change(at, *two);
    }
    lanes
}

#[inline(always)]
fn fused(a: Lanes, b: Lanes, sum: Lanes) -> Lanes {
    each(sum, |at, sum| fused_two(a[at], b[at], sum))
}

#[inline(always)]
fn scaled(lanes: Lanes, by: f32) -> Lanes {
    let by = f64x2_splat(f64::from(by));
    each(lanes, |_, two| rounded(f64x2_mul(two, by)))
}

/// A difference that is rounded twice is the one rounded once: doubles have more than twice the digits.
#[inline(always)]
fn difference(a: Lanes, b: Lanes) -> Lanes {
    each(a, |at, two| rounded(f64x2_sub(two, b[at])))
}

/// Four singles of two registers.
#[inline(always)]
fn singles(lanes: &Lanes, quarter: usize) -> v128 {
    let [lower, upper] = [lanes[2 * quarter], lanes[2 * quarter + 1]];
    i64x2_shuffle::<0, 2>(f32x4_demote_f64x2_zero(lower), f32x4_demote_f64x2_zero(upper))
}

/// The canonical tree.
#[inline(always)]
fn fold(lanes: Lanes) -> f32 {
    let lower = f32x4_add(singles(&lanes, 0), singles(&lanes, 2));
    let upper = f32x4_add(singles(&lanes, 1), singles(&lanes, 3));
    let four = f32x4_add(lower, upper);
    let two = f32x4_add(four, i64x2_shuffle::<1, 1>(four, four));
    f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
}

#[inline(always)]
fn store(chunk: &mut [f32; LANES], lanes: Lanes) {
    for (quarter, out) in chunk.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        // SAFETY: there is room for four numbers.
        unsafe { v128_store(out.as_mut_ptr().cast(), singles(&lanes, quarter)) };
    }
}

pub(super) fn dot<A: Load, B: Load>(a: &[A], b: &[B]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = none();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        lanes = fused(chunk(a), chunk(b), lanes);
    }
    if !a_rest.is_empty() {
        lanes = fused(rest_of_row(a_rest), rest_of_row(b_rest), lanes);
    }
    fold(lanes)
}

pub(super) fn squared_distance<A: Load, B: Load>(a: &[A], b: &[B]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = none();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        let difference = difference(chunk(a), chunk(b));
        lanes = fused(difference, difference, lanes);
    }
    if !a_rest.is_empty() {
        let difference = difference(rest_of_row(a_rest), rest_of_row(b_rest));
        lanes = fused(difference, difference, lanes);
    }
    fold(lanes)
}

/// `start + Σ weight · row`, for sixteen places from `from` on.
#[inline(always)]
fn combined<A: Load, const N: usize>(
    start: Lanes,
    weights: [f32; N],
    rows: [&[A]; N],
    from: usize,
) -> Lanes {
    let mut lanes = start;
    for (weight, row) in weights.into_iter().zip(rows) {
        let row = match row[from..].first_chunk() {
            Some(whole) => chunk(whole),
            None => rest_of_row(&row[from..]),
        };
        lanes = fused(row, all(weight), lanes);
    }
    lanes
}

pub(super) fn add_scaled<A: Load, const N: usize>(
    sum: &mut [f32],
    weights: [f32; N],
    rows: [&[A]; N],
) {
    let (chunks, rest) = sum.as_chunks_mut::<LANES>();
    let whole = chunks.len() * LANES;
    for (at, sum) in chunks.iter_mut().enumerate() {
        let lanes = combined(chunk(sum), weights, rows, at * LANES);
        store(sum, lanes);
    }
    if !rest.is_empty() {
        let mut sum = padded(rest);
        let lanes = combined(chunk(&sum), weights, rows, whole);
        store(&mut sum, lanes);
        rest.copy_from_slice(&sum[..rest.len()]);
    }
}

pub(super) fn raise_by<const N: usize>(best: &mut [f32], weights: [f32; N], rows: [&[f32]; N]) {
    for (at, best) in best.chunks_mut(LANES).enumerate() {
        let mut sums = [0.0; LANES];
        store(&mut sums, combined(none(), weights, rows, at * LANES));
        for (best, sum) in best.iter_mut().zip(sums) {
            *best = if sum > *best { sum } else { *best };
        }
    }
}

/// The products of four rows with four.
fn tile(a: [&[f32]; SIDE], b: [&[f32]; SIDE], dims: usize) -> Tile {
    let mut out = [0.0; SIDE * SIDE];
    for (i, a) in a.into_iter().enumerate() {
        for (j, b) in b.into_iter().enumerate() {
            out[SIDE * i + j] = dot(&a[..dims], &b[..dims]);
        }
    }
    out
}

/// The products of four rows with themselves.
fn own_tile(a: [&[f32]; SIDE], dims: usize) -> Tile {
    let mut out = [0.0; SIDE * SIDE];
    for i in 0..SIDE {
        for j in i..SIDE {
            let product = dot(&a[i][..dims], &a[j][..dims]);
            (out[SIDE * i + j], out[SIDE * j + i]) = (product, product);
        }
    }
    out
}

tiles!("simd128");
sums!("simd128", 1, []);
