//! How registers are filled: sixteen numbers of a row as eight pairs of doubles.

use std::arch::wasm32::*;

use half::f16;

use crate::simd::LANES;

/// Sixteen numbers as doubles.
pub(super) type Wide = [v128; LANES / 2];

/// Numbers that registers are filled from.
pub(in crate::simd) trait Load: Copy {
    /// What stands where there is no number.
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
pub(super) fn singles(chunk: &[f32; LANES]) -> [v128; 4] {
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
pub(super) fn wide(quarters: [v128; 4]) -> Wide {
    pairs(quarters, |four| f64x2_promote_low_f32x4(four))
}

/// The lower and the upper two of each four numbers, widened.
#[inline(always)]
fn pairs([a, b, c, d]: [v128; 4], widen: impl Fn(v128) -> v128) -> Wide {
    let upper = |four| widen(i64x2_shuffle::<1, 1>(four, four));
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
pub(super) fn padded<A: Load>(rest: &[A]) -> [A; LANES] {
    let mut chunk = [A::ZERO; LANES];
    chunk[..rest.len()].copy_from_slice(rest);
    chunk
}
