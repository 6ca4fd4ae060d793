//! Sums of rows, each times its weight, that never leave the registers: a few chunks of sixteen
//! dimensions at a time go through all rows of one text and of the other, and what comes of them goes
//! into the products of both sums at once. Every number is added in the same order as where the sums
//! are written down first, so the bits are the same.

use half::f16;

#[cfg(target_arch = "x86_64")]
use crate::simd::Width;
#[cfg(target_arch = "x86_64")]
use crate::simd::avx2;
#[cfg(target_arch = "x86_64")]
use crate::simd::avx512;
use crate::simd::{least, width};

/// `share · Σ weight · row`: rows of one type and of the same length, wherever they lie.
#[derive(Debug, Clone, Copy)]
pub struct Sum<'r> {
    pub rows: Rows<'r>,
    pub weights: &'r [f32],
    /// What the sum is multiplied by in the end.
    pub share: f32,
}

/// Rows of one type.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'r> {
    /// Of 32-bit floats.
    F32(&'r [&'r [f32]]),
    /// Of 16-bit floats.
    F16(&'r [&'r [f16]]),
    /// Of bytes.
    I8(&'r [&'r [i8]]),
}

impl Sum<'_> {
    /// Whether every row is of so many numbers.
    fn is_of(&self, dims: usize) -> bool {
        match self.rows {
            Rows::F32(rows) => rows.iter().all(|row| row.len() == dims),
            Rows::F16(rows) => rows.iter().all(|row| row.len() == dims),
            Rows::I8(rows) => rows.iter().all(|row| row.len() == dims),
        }
    }
}

/// `a · b`, `a · a` and `b · b` of two sums, each in the canonical order.
///
/// # Panics
///
/// Where a row is not of `dims` numbers.
pub fn products_of_sums(a: Sum<'_>, b: Sum<'_>, dims: usize) -> [f32; 3] {
    assert!(a.is_of(dims) && b.is_of(dims), "rows of the same length");
    match width() {
        // SAFETY: `width` names only what this processor was found to have.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { avx512::products_of_sums(a, b, dims) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { avx2::products_of_sums(a, b, dims) },
        _ => least::products_of_sums(a, b, dims),
    }
}

/// Defines `products_of_sums` over `Lanes`, sixteen numbers in registers, and `none`, `all`, `chunk`,
/// `rest_of_row`, `fused`, `scaled` and `fold`. So many chunks are summed at the same time as fit into
/// the registers; fewer than these are listed.
#[cfg(any(target_arch = "x86_64", target_arch = "wasm32"))]
macro_rules! sums {
    ($features:literal, $chunks:literal, [$($fewer:literal)*]) => {
        /// Chunks that are summed at the same time.
        const CHUNKS: usize = $chunks;

        #[target_feature(enable = $features)]
        pub(super) fn products_of_sums(a: Sum<'_>, b: Sum<'_>, dims: usize) -> [f32; 3] {
            let mut lanes = [none(); 3];
            let mut from = 0;
            while from < dims {
                let (x, y) = (part_of_sum(a, from), part_of_sum(b, from));
                for at in 0..CHUNKS.min((dims - from).div_ceil(LANES)) {
                    let (x, y) = (scaled(x[at], a.share), scaled(y[at], b.share));
                    lanes[0] = fused(x, y, lanes[0]);
                    lanes[1] = fused(x, x, lanes[1]);
                    lanes[2] = fused(y, y, lanes[2]);
                }
                from += CHUNKS * LANES;
            }
            [fold(lanes[0]), fold(lanes[1]), fold(lanes[2])]
        }

        /// The sum over the next chunks from `from` on; nothing where rows have ended.
        #[inline]
        #[target_feature(enable = $features)]
        fn part_of_sum(sum: Sum<'_>, from: usize) -> [Lanes; CHUNKS] {
            match sum.rows {
                SumRows::F32(rows) => part_of_rows(rows, sum.weights, from),
                SumRows::F16(rows) => part_of_rows(rows, sum.weights, from),
                SumRows::I8(rows) => part_of_rows(rows, sum.weights, from),
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn part_of_rows<A: Load>(rows: &[&[A]], weights: &[f32], from: usize) -> [Lanes; CHUNKS] {
            let left = rows.first().map_or(0, |row| row.len() - from);
            match (left / LANES, left.is_multiple_of(LANES)) {
                $(
                    ($fewer, true) => chunks::<A, $fewer, false>(rows, weights, from),
                    ($fewer, false) => chunks::<A, $fewer, true>(rows, weights, from),
                )*
                (0, _) => chunks::<A, 0, true>(rows, weights, from),
                (_, _) => chunks::<A, CHUNKS, false>(rows, weights, from),
            }
        }

        /// The sums over `N` whole chunks and, if so, over what is left after them.
        #[inline]
        #[target_feature(enable = $features)]
        fn chunks<A: Load, const N: usize, const REST: bool>(
            rows: &[&[A]],
            weights: &[f32],
            from: usize,
        ) -> [Lanes; CHUNKS] {
            let mut sums = [none(); CHUNKS];
            for (row, weight) in rows.iter().zip(weights) {
                let (row, weight) = (&row[from..], all(*weight));
                let (whole, rest) = row.split_at(N * LANES);
                let whole = whole.as_chunks::<LANES>().0;
                for at in 0..N {
                    sums[at] = fused(chunk(&whole[at]), weight, sums[at]);
                }
                if REST {
                    sums[N] = fused(rest_of_row(rest), weight, sums[N]);
                }
            }
            sums
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "wasm32"))]
pub(super) use sums;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd;
    use crate::simd::{LANES, plain, widest};

    /// The sum as it is where it is written down, and its rows in another type.
    fn written(rows: &[Vec<f32>], weights: &[f32], share: f32, dims: usize) -> Vec<f32> {
        let mut sum = vec![0.0; dims];
        for (row, weight) in rows.iter().zip(weights) {
            simd::add_scaled(&mut sum, [*weight], [row.as_slice()]);
        }
        sum.iter_mut().for_each(|number| *number *= share);
        sum
    }

    fn products(x: &[f32], y: &[f32]) -> [u32; 3] {
        [simd::dot(x, y), simd::dot(x, x), simd::dot(y, y)].map(f32::to_bits)
    }

    fn at_every_width(a: Sum<'_>, b: Sum<'_>, dims: usize) -> Vec<[u32; 3]> {
        let mut found = vec![plain::products_of_sums(a, b, dims)];
        #[cfg(target_arch = "x86_64")]
        {
            if widest() >= Width::Avx2 {
                // SAFETY: the width was just compared with what the processor has.
                found.push(unsafe { avx2::products_of_sums(a, b, dims) });
            }
            if widest() >= Width::Avx512 {
                // SAFETY: the width was just compared with what the processor has.
                found.push(unsafe { avx512::products_of_sums(a, b, dims) });
            }
        }
        found.into_iter().map(|products| products.map(f32::to_bits)).collect()
    }

    fn text(dims: usize) -> impl Strategy<Value = Vec<(Vec<f32>, f32)>> {
        prop::collection::vec((prop::collection::vec(-3.0_f32..3.0, dims), -1.0_f32..1.0), 1..9)
    }

    proptest! {
        #[test]
        fn sums_in_registers_have_the_bits_of_sums_written_down(
            (dims, a, b) in (1usize..18 * LANES).prop_flat_map(|dims| (Just(dims), text(dims), text(dims))),
            share in 0.1_f32..1.0,
        ) {
            let (rows, weights): (Vec<Vec<f32>>, Vec<f32>) = a.into_iter().unzip();
            let (others, other_weights): (Vec<Vec<f32>>, Vec<f32>) = b.into_iter().unzip();
            let y = written(&others, &other_weights, 1.0, dims);
            let borrowed: Vec<&[f32]> = others.iter().map(Vec::as_slice).collect();
            let other = Sum { rows: Rows::F32(&borrowed), weights: &other_weights, share: 1.0 };

            let floats: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
            let sum = Sum { rows: Rows::F32(&floats), weights: &weights, share };
            let x = written(&rows, &weights, share, dims);
            for found in at_every_width(sum, other, dims) {
                prop_assert_eq!(found, products(&x, &y));
            }

            let half = |row: &Vec<f32>| row.iter().map(|&n| f16::from_f32(n)).collect::<Vec<_>>();
            let halves: Vec<Vec<f16>> = rows.iter().map(half).collect();
            let back = |row: &Vec<f16>| row.iter().map(|n| n.to_f32()).collect::<Vec<_>>();
            let x = written(&halves.iter().map(back).collect::<Vec<_>>(), &weights, share, dims);
            let halves: Vec<&[f16]> = halves.iter().map(Vec::as_slice).collect();
            let sum = Sum { rows: Rows::F16(&halves), weights: &weights, share };
            for found in at_every_width(sum, other, dims) {
                prop_assert_eq!(found, products(&x, &y));
            }

            let byte = |row: &Vec<f32>| row.iter().map(|&n| (n * 40.0) as i8).collect::<Vec<_>>();
            let bytes: Vec<Vec<i8>> = rows.iter().map(byte).collect();
            let back = |row: &Vec<i8>| row.iter().map(|&n| f32::from(n)).collect::<Vec<_>>();
            let x = written(&bytes.iter().map(back).collect::<Vec<_>>(), &weights, share, dims);
            let bytes: Vec<&[i8]> = bytes.iter().map(Vec::as_slice).collect();
            let sum = Sum { rows: Rows::I8(&bytes), weights: &weights, share };
            for found in at_every_width(other, sum, dims) {
                prop_assert_eq!(found, products(&y, &x));
            }
        }
    }

    #[test]
    fn nothing_adds_up_to_nothing() {
        let none = Sum { rows: Rows::I8(&[]), weights: &[], share: 1.0 };
        assert_eq!(products_of_sums(none, none, 70), [0.0; 3]);
    }
}
