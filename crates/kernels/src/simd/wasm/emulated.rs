//! A fused multiply-add in double precision, for engines that have none or do not report it.
//!
//! The product of two single-precision numbers is exact in double precision. Its sum with a third
//! is rounded to double and then to single precision. That differs from one rounding only if the
//! first one lost something and ended halfway between two neighbouring singles. So [`fused`] checks
//! for conditions under which that is possible, and only then rounds the sum to odd
//! ([`rounded_to_odd`]).

use std::arch::wasm32::*;

use super::{Factor, Lanes};
use crate::simd::LANES;

type Wide = [v128; LANES / 2];

#[inline(always)]
pub(super) fn fused<A: Factor, B: Factor>(a: A, b: B, sum: Lanes) -> Lanes {
    let (x, y, start) = (wide(a.lanes()), wide(b.lanes()), wide(sum));
    let totals: Wide = std::array::from_fn(|at| f64x2_add(f64x2_mul(x[at], y[at]), start[at]));
    let in_doubt = match b.weight() {
        Some(weight) if A::IS_BYTES => may_be_inexact(weight, sum),
        _ => may_be_halfway(&totals, sum),
    };
    if v128_any_true(in_doubt) { rounded_to_odd(a.lanes(), b.lanes(), sum) } else { narrow(totals) }
}

/// Whether a sum with the product of a byte and a weight may not fit a double.
///
/// The product is a multiple of the weight's last digit, which is 2⁻²⁴ of its size or more, and at most 2⁷ of
/// its size. With a `sum` of 2⁻²⁰ to 2²⁰ of that size the total has at most 52 digits, and with a `sum` of
/// zero it is the product.
#[inline(always)]
fn may_be_inexact(weight: f32, sum: Lanes) -> v128 {
    // Numbers without their signs are in the order of their bits. Less by one, zero is the largest.
    let sizes = sum.map(|four| v128_and(four, i32x4_splat(i32::MAX)));
    let most = i32x4_max(i32x4_max(sizes[0], sizes[1]), i32x4_max(sizes[2], sizes[3]));
    let [a, b, c, d] = sizes.map(|four| i32x4_sub(four, i32x4_splat(1)));
    let least = u32x4_min(u32x4_min(a, b), u32x4_min(c, d));
    let (low, high) = (weight.abs() / SPAN, weight.abs() * SPAN);
    let low = u32x4_splat(low.to_bits().wrapping_sub(1));
    v128_or(i32x4_gt(most, f32x4_splat(high)), u32x4_lt(least, low))
}

const SPAN: f32 = 1_048_576.0;

/// Whether a total may be halfway between two singles and have lost something.
///
/// From 2⁻¹²⁶ on such a double ends in a one and 28 zeros. Singles below are 2⁻¹⁴⁹ apart. There a total
/// loses nothing if the product is 2⁻¹²⁶ or more, as both it and `sum` are multiples of 2⁻¹⁷³ then; so
/// both are smaller than 2⁻¹²⁵ where it does. Nor does it lose anything where `sum` is zero.
#[inline(always)]
fn may_be_halfway(totals: &Wide, sum: Lanes) -> v128 {
    // The last 29 digits moved to the top of signed numbers: a one and zeros is the least number.
    let end = |at: usize| {
        let words = i32x4_shuffle::<0, 2, 4, 6>(totals[2 * at], totals[2 * at + 1]);
        i32x4_shl(words, 3)
    };
    let least_end = i32x4_min(i32x4_min(end(0), end(1)), i32x4_min(end(2), end(3)));
    // Sizes less by one, so that zero is the largest.
    let [a, b, c, d] =
        sum.map(|four| i32x4_sub(v128_and(four, i32x4_splat(i32::MAX)), i32x4_splat(1)));
    let least = u32x4_min(u32x4_min(a, b), u32x4_min(c, d));
    let small = u32x4_lt(least, u32x4_splat(SMALL.to_bits() - 1));
    v128_or(i32x4_eq(least_end, i32x4_splat(i32::MIN)), small)
}

const SMALL: f32 = 2.0 * f32::MIN_POSITIVE;

/// `a b + sum`, rounded once by way of a sum rounded to odd: an inexact sum is truncated and its
/// last bit is set. Rounded once more, to single precision, that is the exact sum rounded once
/// (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
#[cold]
#[inline(never)]
fn rounded_to_odd(a: Lanes, b: Lanes, sum: Lanes) -> Lanes {
    let (x, y, start) = (wide(a), wide(b), wide(sum));
    narrow(std::array::from_fn(|at| to_odd(added(f64x2_mul(x[at], y[at]), start[at]))))
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
    // Infinite sums lose nothing: NaN is not above zero.
    let inexact = f64x2_gt(f64x2_abs(lost), f64x2_splat(0.0));
    // A loss of the other sign means that the total is too far from zero by less than its last bit.
    let too_far = v128_and(inexact, i64x2_lt(v128_xor(lost, total), i64x2_splat(0)));
    v128_or(i64x2_add(total, too_far), v128_and(inexact, i64x2_splat(1)))
}

#[inline(always)]
fn wide([a, b, c, d]: Lanes) -> Wide {
    let lower = |four| f64x2_promote_low_f32x4(four);
    let upper = |four| lower(i64x2_shuffle::<1, 1>(four, four));
    [lower(a), upper(a), lower(b), upper(b), lower(c), upper(c), lower(d), upper(d)]
}

/// Sixteen doubles as singles. Instead of the swizzle a shuffle would make the compiler convert
/// single numbers.
#[inline(always)]
fn narrow(numbers: Wide) -> Lanes {
    const NONE: u8 = 0x80;
    let places = u8x16(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0, 1, 2, 3, 4, 5, 6, 7);
    let two = |at: usize| f32x4_demote_f64x2_zero(numbers[at]);
    let four = |at: usize| v128_or(two(2 * at), i8x16_swizzle(two(2 * at + 1), places));
    [four(0), four(1), four(2), four(3)]
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use proptest::prelude::*;

    use super::*;
    use crate::simd::plain;
    use crate::simd::wasm::{Load, OfRow, all, store};

    fn lanes(numbers: [f32; LANES]) -> Lanes {
        f32::load(&numbers)
    }

    fn written(lanes: Lanes) -> [f32; LANES] {
        let mut numbers = [0.0; LANES];
        store(&mut numbers, lanes);
        numbers
    }

    fn is_rounded_once(a: [f32; LANES], b: [f32; LANES], sum: [f32; LANES], found: Lanes) {
        for (lane, found) in written(found).into_iter().enumerate() {
            let (a, b, sum) = (a[lane], b[lane], sum[lane]);
            let expected = plain::fused(a, b, sum);
            let is_same = found.to_bits() == expected.to_bits();
            assert!(
                is_same || found.is_nan() && expected.is_nan(),
                "{a:e} · {b:e} + {sum:e}: {found:e}, not {expected:e}"
            );
        }
    }

    fn number() -> impl Strategy<Value = f32> {
        let ends = [0.0, -0.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::INFINITY];
        prop_oneof![
            6 => any::<u32>().prop_map(f32::from_bits),
            3 => (any::<u32>(), -151_i32..-120).prop_map(|(bits, power)| {
                f32::from_bits(bits & 0x807F_FFFF | 0x3F80_0000) * (power as f32).exp2()
            }),
            1 => prop::sample::select(ends.to_vec()),
        ]
    }

    /// A third number that makes the sum with a product hard to round.
    fn hard(a: f32, b: f32, free: f32, pick: u8) -> f32 {
        let product = a * b;
        // A product that is half of the number's last digit, or just beside that.
        let of_half = product * 16_777_216.0;
        match pick % 8 {
            0 => free,
            1 => 0.0,
            2 => -product,
            3 => -product.next_up(),
            4 => of_half,
            5 => -of_half.next_down(),
            6 => f32::from_bits(of_half.to_bits() & 0xFF80_0001),
            _ => product * (f32::from(pick) - 128.0).exp2(),
        }
    }

    #[test]
    fn a_total_halfway_between_singles_is_rounded_by_what_it_lost() {
        let (one, half) = (1.0 + f32::EPSILON, f32::exp2(-24.0));
        // (1 + x)(1 - x) is a little below one, by so much that a double loses it.
        let (x, y, small) = (f32::exp2(-15.0), f32::exp2(-20.0), f32::exp2(-75.0));
        let cases = [
            (half * (1.0 + x), 1.0 - x, one),
            (-half * (1.0 + x), 1.0 - x, one),
            (half, 1.0, one),
            (half, 1.0, 1.0),
            // The same among subnormal numbers, whose last digit is 2⁻¹⁴⁹.
            (small * (1.0 + y), small * (1.0 - y), f32::exp2(-130.0) + f32::exp2(-149.0)),
            (-small * (1.0 + y), small * (1.0 - y), f32::exp2(-130.0) + f32::exp2(-149.0)),
            (small, small, f32::exp2(-130.0)),
            (f32::MAX, 1.0 + f32::EPSILON, f32::MAX),
            (f32::MAX, 1.0, f32::exp2(103.0)),
            (f32::INFINITY, 0.0, 1.0),
            (f32::INFINITY, -1.0, f32::INFINITY),
        ];
        let mut twice_differs = 0;
        for (a, b, sum) in cases {
            let twice = (f64::from(a) * f64::from(b) + f64::from(sum)) as f32;
            twice_differs += u32::from(twice.to_bits() != plain::fused(a, b, sum).to_bits());
            let (a, b, sum) = ([a; LANES], [b; LANES], [sum; LANES]);
            is_rounded_once(a, b, sum, fused(lanes(a), lanes(b), lanes(sum)));
        }
        assert_eq!(twice_differs, 4, "cases that two roundings get wrong are among them");
    }

    #[test]
    fn a_byte_times_a_weight_is_rounded_by_what_the_total_lost() {
        let one = 1.0 + f32::EPSILON;
        // 77 · 13,944,699 is 2³⁰ - 1: a little less than half of the last digit of `one`.
        let weight = 13_944_699.0 * f32::exp2(-54.0);
        // 3 · (2²³ + 1) is halfway between two singles by itself.
        let cases = [(77, weight, one), (-77, weight, one), (3, 8_388_609.0, -f32::exp2(-40.0))];
        for (byte, weight, sum) in cases {
            let twice = (f64::from(byte) * f64::from(weight) + f64::from(sum)) as f32;
            assert_ne!(
                twice,
                plain::fused(f32::from(byte), weight, sum),
                "two roundings get it wrong"
            );
            let row = OfRow(i8::load(&[byte; LANES]), PhantomData::<i8>);
            let (found, sum) = (fused(row, all(weight), lanes([sum; LANES])), [sum; LANES]);
            is_rounded_once([byte.into(); LANES], [weight; LANES], sum, found);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn sums_of_products_are_rounded_once(
            a in prop::array::uniform16(number()), b in prop::array::uniform16(number()),
            free in prop::array::uniform16(number()), picks in prop::array::uniform16(any::<u8>()),
        ) {
            let sum = std::array::from_fn(|lane| hard(a[lane], b[lane], free[lane], picks[lane]));
            is_rounded_once(a, b, sum, fused(lanes(a), lanes(b), lanes(sum)));
            // A doubtful lane decides for all sixteen, so each is also tested by itself.
            for lane in 0..LANES {
                let (a, b, sum) = ([a[lane]; LANES], [b[lane]; LANES], [sum[lane]; LANES]);
                is_rounded_once(a, b, sum, fused(lanes(a), lanes(b), lanes(sum)));
            }
        }

        #[test]
        fn rows_of_bytes_times_weights(
            row in prop::array::uniform16(any::<i8>()), weight in number(),
            free in prop::array::uniform16(number()), picks in prop::array::uniform16(any::<u8>()),
            near in -32_i32..32,
        ) {
            let factor = |row: [i8; LANES]| OfRow(i8::load(&row), PhantomData::<i8>);
            for weight in [weight, 1.0 / weight, free[0] * (near as f32).exp2()] {
                for (lane, &byte) in row.iter().enumerate() {
                    let sum = hard(byte.into(), weight, free[lane], picks[lane]);
                    let found = fused(factor([byte; LANES]), all(weight), lanes([sum; LANES]));
                    is_rounded_once([byte.into(); LANES], [weight; LANES], [sum; LANES], found);
                }
                // The limits of what counts as exact.
                let ends = [-21, -20, 20, 21].map(|power| weight.abs() * (power as f32).exp2());
                for sum in ends.into_iter().flat_map(|end| [end.next_down(), end, end.next_up(), -end]) {
                    let found = fused(factor(row), all(weight), lanes([sum; LANES]));
                    is_rounded_once(row.map(f32::from), [weight; LANES], [sum; LANES], found);
                }
            }
        }
    }
}
