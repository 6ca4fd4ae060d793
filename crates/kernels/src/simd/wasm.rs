//! The loops for WebAssembly with 128-bit vectors: four registers of four hold the sixteen lanes.
//!
//! WebAssembly has no fused multiply-add that gives the same bits everywhere, so one is made here. The
//! product of two numbers of single precision is exact in double precision. Its sum with a third is
//! rounded to odd: where it is not exact, it is cut towards zero and its last bit is set. Rounded once
//! more, to single precision, that is the exact sum rounded once (Boldo and Melquiond 2008, "Emulation
//! of FMA and correctly rounded sums").

use std::arch::wasm32::*;
use std::marker::PhantomData;

use half::f16;

use crate::simd::loops::loops;
pub(super) use crate::simd::plain::{exchange, image, largest_of_rows, sum_of_rows};
use crate::simd::sums::{Rows as SumRows, Sum, sums};
use crate::simd::tiles::{SIDE, Tile, put, tiles, turned};
use crate::simd::{LANES, Picked, Rows, four};

#[cfg(not(target_feature = "simd128"))]
compile_error!("for WebAssembly, build with RUSTFLAGS=\"-C target-feature=+simd128\"");

type Lanes = [v128; LANES / 4];

/// A factor, as doubles.
trait Factor: Copy {
    /// Whether it has so few digits that a sum with its product by a single is rarely inexact.
    const IS_SHORT: bool;

    fn wide(self) -> Wide;
}

impl Factor for Lanes {
    const IS_SHORT: bool = false;

    #[inline(always)]
    fn wide(self) -> Wide {
        wide(self)
    }
}

/// Sixteen numbers of a row of `A`.
#[derive(Clone, Copy)]
struct OfRow<A>(Wide, PhantomData<A>);

impl<A: Load> Factor for OfRow<A> {
    const IS_SHORT: bool = A::IS_SHORT;

    #[inline(always)]
    fn wide(self) -> Wide {
        self.0
    }
}

/// The same number sixteen times.
#[derive(Clone, Copy)]
struct Weight(v128);

impl Factor for Weight {
    const IS_SHORT: bool = false;

    #[inline(always)]
    fn wide(self) -> Wide {
        [self.0; LANES / 2]
    }
}

/// A sum and its exact rounding error (Knuth's two-sum).
#[inline(always)]
fn added(a: v128, b: v128) -> [v128; 2] {
    let total = f64x2_add(a, b);
    let back = f64x2_sub(total, a);
    [total, f64x2_add(f64x2_sub(a, f64x2_sub(total, back)), f64x2_sub(b, back))]
}

/// A sum that may have lost something, rounded to odd instead.
#[inline(always)]
fn to_odd([total, lost]: [v128; 2]) -> v128 {
    // Of infinite sums nothing is lost: what is no number is not above zero.
    let inexact = f64x2_gt(f64x2_abs(lost), f64x2_splat(0.0));
    // A loss of the other sign means that the total is too far from zero by less than its last bit.
    let too_far = v128_and(inexact, i64x2_lt(v128_xor(lost, total), i64x2_splat(0)));
    v128_or(i64x2_add(total, too_far), v128_and(inexact, i64x2_splat(1)))
}

/// `a b + sum` of singles, rounded once.
#[inline(always)]
fn fused<A: Factor, B: Factor>(a: A, b: B, sum: Lanes) -> Lanes {
    let (a, b) = (a.wide(), b.wide());
    let four = |at: usize| {
        let [low, high] = [2 * at, 2 * at + 1];
        let of_high = i64x2_shuffle::<1, 1>(sum[at], sum[at]);
        let low = added(f64x2_mul(a[low], b[low]), f64x2_promote_low_f32x4(sum[at]));
        let high = added(f64x2_mul(a[high], b[high]), f64x2_promote_low_f32x4(of_high));
        let is_exact = A::IS_SHORT && !v128_any_true(v128_or(low[1], high[1]));
        let [low, high] = if is_exact { [low[0], high[0]] } else { [to_odd(low), to_odd(high)] };
        narrow(low, high)
    };
    [four(0), four(1), four(2), four(3)]
}

/// Two and two doubles as four singles. Of a shuffle in the place of the swizzle the compiler would
/// make conversions of single numbers.
#[inline(always)]
fn narrow(low: v128, high: v128) -> v128 {
    const NONE: u8 = 0x80;
    let places = u8x16(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0, 1, 2, 3, 4, 5, 6, 7);
    let high = i8x16_swizzle(f32x4_demote_f64x2_zero(high), places);
    v128_or(f32x4_demote_f64x2_zero(low), high)
}

#[inline(always)]
fn none() -> Lanes {
    [f32x4_splat(0.0); LANES / 4]
}

#[inline(always)]
fn all(number: f32) -> Weight {
    Weight(f64x2_splat(f64::from(number)))
}

#[inline(always)]
fn chunk<A: Load>(chunk: &[A; LANES]) -> OfRow<A> {
    OfRow(A::load(chunk), PhantomData)
}

#[inline(always)]
fn rest_of_row<A: Load>(rest: &[A]) -> OfRow<A> {
    chunk(&padded(rest))
}

#[inline(always)]
fn scaled([a, b, c, d]: Lanes, by: f32) -> Lanes {
    let by = f32x4_splat(by);
    [f32x4_mul(a, by), f32x4_mul(b, by), f32x4_mul(c, by), f32x4_mul(d, by)]
}

/// A difference of two doubles that are singles, rounded twice, is that rounded once: doubles have more
/// than twice the digits.
#[inline(always)]
fn difference<A: Load, B: Load>(a: OfRow<A>, b: OfRow<B>) -> Lanes {
    let two = |at: usize| f64x2_sub(a.0[at], b.0[at]);
    let four = |at: usize| narrow(two(2 * at), two(2 * at + 1));
    [four(0), four(1), four(2), four(3)]
}

/// The canonical tree.
#[inline(always)]
fn fold([a, b, c, d]: Lanes) -> f32 {
    let four = f32x4_add(f32x4_add(a, c), f32x4_add(b, d));
    let two = f32x4_add(four, i64x2_shuffle::<1, 1>(four, four));
    f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
}

#[inline(always)]
fn store(chunk: &mut [f32; LANES], lanes: Lanes) {
    for (out, four) in chunk.as_chunks_mut::<4>().0.iter_mut().zip(lanes) {
        // SAFETY: there is room for four numbers.
        unsafe { v128_store(out.as_mut_ptr().cast(), four) };
    }
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

#[inline(always)]
fn lanes_of(chunk: &[f32; LANES]) -> Lanes {
    singles(chunk)
}

#[inline(always)]
fn lanes_of_rest(rest: &[f32]) -> Lanes {
    singles(&padded(rest))
}

#[inline(always)]
fn store_rest(rest: &mut [f32], lanes: Lanes) {
    let mut chunk = [0.0; LANES];
    store(&mut chunk, lanes);
    rest.copy_from_slice(&chunk[..rest.len()]);
}

loops!("simd128");
tiles!("simd128");
sums!("simd128", 1, []);

/// Sixteen numbers as doubles.
type Wide = [v128; LANES / 2];

/// Numbers that registers are filled from.
pub(in crate::simd) trait Load: Copy {
    /// The value for missing numbers.
    const ZERO: Self;

    /// Whether numbers have so few digits that a sum with one of their products is rarely inexact as
    /// a double.
    const IS_SHORT: bool;

    fn load(chunk: &[Self; LANES]) -> Wide;
}

impl Load for f32 {
    const ZERO: Self = 0.0;
    const IS_SHORT: bool = false;

    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Wide {
        wide(singles(chunk))
    }
}

impl Load for f16 {
    const ZERO: Self = Self::ZERO;
    const IS_SHORT: bool = true;

    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Wide {
        let start = chunk.as_ptr().cast::<v128>();
        // SAFETY: there are sixteen numbers of two bytes to read.
        let [lower, upper] = unsafe { [v128_load(start), v128_load(start.add(1))] };
        wide([
            of_halves(u32x4_extend_low_u16x8(lower)),
            of_halves(u32x4_extend_high_u16x8(lower)),
            of_halves(u32x4_extend_low_u16x8(upper)),
            of_halves(u32x4_extend_high_u16x8(upper)),
        ])
    }
}

impl Load for i8 {
    const ZERO: Self = 0;
    const IS_SHORT: bool = true;

    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Wide {
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

/// Sixteen singles as they lie.
#[inline(always)]
fn singles(chunk: &[f32; LANES]) -> [v128; 4] {
    let start = chunk.as_ptr().cast::<v128>();
    // SAFETY: there are sixteen numbers to read.
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
fn wide(quarters: [v128; 4]) -> Wide {
    pairs(quarters, |four| f64x2_promote_low_f32x4(four))
}

/// The lower and the upper two of each four numbers, widened.
#[inline(always)]
fn pairs([a, b, c, d]: [v128; 4], widen: impl Fn(v128) -> v128) -> Wide {
    let upper = |four| widen(i64x2_shuffle::<1, 1>(four, four));
    [widen(a), upper(a), widen(b), upper(b), widen(c), upper(c), widen(d), upper(d)]
}

/// Converts four numbers of 16 bits, each in 32, to f32. One multiplication adjusts the exponent, exactly even
/// for subnormal numbers; infinities and NaN are kept.
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
