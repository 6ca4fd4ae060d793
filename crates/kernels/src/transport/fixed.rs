//! Non-negative floating-point numbers as integers on a common grid, and sums of products of such
//! integers wider than 128 bits. It knows nothing of what the numbers mean.
//!
//! On integers a sum does not depend on the order of its terms, which is what makes the transport
//! cost independent of the order of words and sides.

/// A grid of equal steps, a power of two each, fine enough that the largest number it was made
/// for keeps `bits` significant bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    exponent: u32,
    dropped: u32,
}

/// Significant bits of a `f64`, the hidden one included.
const MANTISSA_BITS: u32 = 53;

impl Grid {
    /// The grid for numbers up to `largest`. `None` when there is nothing but zero to represent.
    pub(super) fn up_to(largest: f64, bits: u32) -> Option<Self> {
        let (mantissa, exponent) = decompose(largest);
        (mantissa > 0).then_some(Self { exponent, dropped: MANTISSA_BITS - bits })
    }

    /// The number of steps nearest to `number`: at most `2^bits`, as rounding may reach it.
    pub(super) fn steps(self, number: f64) -> u64 {
        let (mantissa, exponent) = decompose(number);
        let shift = self.exponent.saturating_sub(exponent) + self.dropped;
        match shift {
            0 => mantissa,
            1..=MANTISSA_BITS => (mantissa + (1 << (shift - 1))) >> shift,
            _ => 0,
        }
    }

    /// The length of one step.
    pub(super) fn step(self) -> f64 {
        // An exponent field E scales the mantissa by 2^(E - 1075); below 2^-1022 a power of two
        // is a single bit of a subnormal number.
        let power = i64::from(self.exponent) - 1075 + i64::from(self.dropped);
        if power >= -1022 {
            f64::from_bits(((power + 1023) as u64) << 52)
        } else {
            f64::from_bits(1 << (power + 1074))
        }
    }
}

/// Mantissa and exponent field. Negative numbers and NaN read as zero and infinity as the largest
/// finite number, so that no input can poison a sum.
fn decompose(number: f64) -> (u64, u32) {
    if number.is_nan() || number <= 0.0 {
        return (0, 1);
    }
    let bits = number.min(f64::MAX).to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52) as u32 {
        0 => (fraction, 1),
        exponent => (fraction | (1 << 52), exponent),
    }
}

/// An exact sum of products, held as `high * 2^64 + low`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WideSum {
    high: u128,
    low: u128,
}

impl WideSum {
    /// Adds `amount * price`. The halves cannot overflow for up to 2^13 terms of
    /// `amount < 2^115` and `price <= 2^50`, nor for one with `amount < 2^115` and any price below
    /// 2^60.
    pub(super) fn add_product(&mut self, amount: u128, price: u64) {
        self.high += (amount >> 64) * u128::from(price);
        self.low += u128::from(amount as u64) * u128::from(price);
    }

    /// The sum over `divisor`, rounded. Both are rounded to nearest before the division, hence a
    /// larger sum never gives a smaller quotient.
    pub(super) fn over(self, divisor: u128) -> f64 {
        let high = self.high + (self.low >> 64);
        let low = self.low as u64;
        let sum = if high >> 64 == 0 {
            ((high << 64) | u128::from(low)) as f64
        } else {
            // More than 64 significant bits: the lower half only decides whether a tie is one.
            (high | u128::from(low != 0)) as f64 * 2f64.powi(64)
        };
        sum / divisor as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_number_line_are_placed_without_overflow() {
        for largest in [f64::MAX, f64::INFINITY, 1.0, f64::MIN_POSITIVE, f64::from_bits(1)] {
            let grid = Grid::up_to(largest, 48).unwrap();
            // Rounding up may pass the last finite number.
            let back = (grid.steps(largest) as f64 * grid.step()).min(f64::MAX);
            let finite = largest.min(f64::MAX);
            // A number of a few bits at the very bottom cannot keep 48 of them.
            assert!((back - finite).abs() <= finite * 2f64.powi(-48) || finite < 1e-300);
            assert_eq!(grid.steps(0.0), 0);
            assert_eq!(grid.steps(-1.0), 0);
            assert_eq!(grid.steps(f64::NAN), 0);
        }
        assert!(Grid::up_to(0.0, 48).is_none());
        assert!(Grid::up_to(f64::NAN, 48).is_none());
    }

    proptest! {
        #[test]
        fn a_number_is_within_half_a_step_of_its_place(largest in 1e-9..1e9f64, share in 0.0..=1.0f64) {
            let grid = Grid::up_to(largest, 48).unwrap();
            let number = largest * share;
            let back = grid.steps(number) as f64 * grid.step();
            prop_assert!((back - number).abs() <= 0.5 * grid.step());
            prop_assert!(grid.steps(largest) <= 1 << 48);
        }

        #[test]
        fn a_wide_sum_agrees_with_128_bits_where_those_suffice(
            terms in prop::collection::vec((0u128..1 << 70, 0u64..1 << 50), 1..20),
            divisor in 1u128..1 << 100,
        ) {
            let mut wide = WideSum::default();
            let mut narrow = 0u128;
            for &(amount, price) in &terms {
                wide.add_product(amount, price);
                narrow += amount * u128::from(price);
            }
            prop_assert_eq!(wide.over(divisor), narrow as f64 / divisor as f64);
        }

        #[test]
        fn a_larger_wide_sum_never_rounds_below_a_smaller(
            amount in (1u128 << 100)..(1 << 114), price in (1u64 << 49)..(1 << 50), more in 1u64..u64::MAX,
        ) {
            let mut smaller = WideSum::default();
            smaller.add_product(amount, price);
            let mut larger = smaller;
            larger.add_product(u128::from(more), 1);
            prop_assert!(smaller.over(3) <= larger.over(3));
        }
    }
}
