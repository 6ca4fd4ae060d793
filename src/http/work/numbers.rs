//! JSON in which 32-bit floats, of which vectors are made, are written faster than by `serde_json`,
//! with the same digits: the fewest that are read as the same number, and of those the nearest.
//!
//! A number `c / 2^p` from 0.0001 to 1 is `c · 10^t / 2^p` units of `10^-t`, where `t` is the least
//! for which two neighbours differ by a unit or more. `c · 10^t` fits in 64 bits, so comparisons
//! are exact. All other numbers are left to `serde_json`.

use std::hint::select_unpredictable;
use std::io;
use std::num::Wrapping;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

pub(crate) fn to_writer(writer: impl io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(writer, Compact))
}

struct Compact;

/// Bits of 0.0001, and of the largest number below 1.
const MIN: u32 = 0x38D1_B717;
const MAX: u32 = 0x3F7F_FFFF;
/// Mask of a number's fraction.
const FRACTION: u32 = 0x7F_FFFF;
const DIGITS: usize = 12;
const ZEROS: u64 = 0x3030_3030_3030_3030;

const TENS: [u64; 16] = {
    let mut tens = [1; 16];
    let mut at = 1;
    while at < tens.len() {
        tens[at] = 10 * tens[at - 1];
        at += 1;
    }
    tens
};

impl Formatter for Compact {
    #[inline]
    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        let bits = value.to_bits();
        let size = bits & !(1 << 31);
        // Below a power of two neighbours are nearer than above.
        if !(MIN..=MAX).contains(&size) || size & FRACTION == 0 {
            return CompactFormatter.write_f32(writer, value);
        }
        let (high, low) = digits(size);
        let mut text = *b"-0.000000000000";
        text[3..11].copy_from_slice(&(high | ZEROS).to_le_bytes());
        text[11..].copy_from_slice(&(low | ZEROS as u32).to_le_bytes());
        // Trailing zeros are left out.
        let (short, long) = (11 - high.leading_zeros() / 8, 15 - low.leading_zeros() / 8);
        let end = select_unpredictable(low == 0, short, long) as usize;
        let begin = usize::from(bits == size);
        writer.write_all(text.get(begin..end).unwrap_or_default())
    }
}

/// The digits after the point of a number of these bits: eight and then four, the first in the
/// lowest byte.
#[inline(always)]
fn digits(size: u32) -> (u64, u32) {
    let n = Wrapping::<u64>;
    let power = (150 - (size >> 23)) as usize;
    let tens = ((power * 1233) >> 12) + 1;
    let ten = TENS[tens & 15];
    let whole = n(u64::from(size & FRACTION | (FRACTION + 1))) * n(ten);
    let units = whole >> power;
    // With a digit fewer: numbers no further away than half the distance to a neighbour, and only
    // if it is even at exactly half.
    let fewer = n(units.0 / 10) * n(10);
    let below = whole - (fewer << power);
    let above = (n(10) << power) - below;
    let reach = n(ten / 2) + n(u64::from(size & 1 == 0));
    // With all digits: the nearest, of two the even one.
    let (rest, middle) = (whole - (units << power), n(1) << (power - 1));
    let up = u64::from(rest > middle) | u64::from(rest == middle) & units.0;
    let nearest = units + n(up & 1);
    let shortest = select_unpredictable(above < reach, fewer + n(10), nearest);
    let shortest = select_unpredictable(below < reach, fewer, shortest);
    let all = (shortest * n(TENS[(DIGITS - tens) & 15])).0;
    let (high, low) = (all / TENS[4], all % TENS[4]);
    let fours = (high / TENS[4]) | ((high % TENS[4]) << 32);
    (apart(fours), apart(low) as u32)
}

/// The digits of two numbers of four digits, one in each half, a byte per digit.
#[inline(always)]
fn apart(fours: u64) -> u64 {
    let n = Wrapping::<u64>;
    let hundreds = ((n(fours) * n(10_486)) >> 20) & n(0x7F_0000_007F);
    let twos = hundreds | (n(fours) - n(100) * hundreds) << 16;
    let ones = ((twos * n(103)) >> 10) & n(0x000F_000F_000F_000F);
    (ones | (twos - n(10) * ones) << 8).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_serde_json() {
        let written = |value: f32| {
            let mut out = Vec::new();
            to_writer(&mut out, &[value, -value]).unwrap();
            out
        };
        let (mut bits, end, mut compared) = (0.000_09_f32.to_bits(), 1.1_f32.to_bits(), 0);
        while bits < end {
            let value = f32::from_bits(bits);
            assert_eq!(written(value), serde_json::to_vec(&[value, -value]).unwrap(), "{value}");
            // Varying steps, so that odd and even numbers and every length occur.
            (bits, compared) = (bits + 61 + compared % 97, compared + 1);
        }
        assert!(compared > 1_000_000, "{compared}");
        // Numbers halfway between two last digits, with few digits, and in ranges left to serde_json.
        for value in [0.001_464_843_8, 0.5, 0.25, 0.1, 0.000_1, 1e-9, 7.25, 0.0, -0.0, f32::MAX] {
            assert_eq!(written(value), serde_json::to_vec(&[value, -value]).unwrap(), "{value}");
        }
        assert_eq!(written(f32::NAN), b"[null,null]");
    }
}
