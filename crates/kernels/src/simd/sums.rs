//! Sums of rows, each times its weight, that never leave the registers: a few chunks of sixteen
//! dimensions at a time pass over all rows of one text and of the other, and the results go into
//! the products of both sums at once. Every number is added in the same order as when the sums are
//! written to memory first, so the bits are the same.

use half::f16;

use crate::simd::Picked;

/// `share · Σ weight · row`.
#[derive(Debug, Clone, Copy)]
pub struct Sum<'r> {
    pub rows: Rows<'r>,
    pub weights: &'r [f32],
    pub share: f32,
}

#[derive(Debug, Clone, Copy)]
pub enum Rows<'r> {
    F32(Picked<'r, f32>),
    F16(Picked<'r, f16>),
    I8(Picked<'r, i8>),
}

impl Rows<'_> {
    pub(super) fn dims(&self) -> usize {
        match self {
            Rows::F32(rows) => rows.dims,
            Rows::F16(rows) => rows.dims,
            Rows::I8(rows) => rows.dims,
        }
    }
}

/// Defines `products_of_sums` over `Lanes`, sixteen numbers in registers, and `none`, `all`,
/// `chunk`, `rest_of_row`, `fused`, `scaled` and `fold`. As many chunks are summed at the same time
/// as fit into the registers; smaller numbers are listed.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
macro_rules! sums {
    ($features:literal, $chunks:literal, [$($fewer:literal)*]) => {
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

        /// The sum over the next chunks from `from` on; zeros after the end of a row.
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
        fn part_of_rows<A: Load>(
            rows: Picked<'_, A>,
            weights: &[f32],
            from: usize,
        ) -> [Lanes; CHUNKS] {
            let left = rows.dims - from;
            match (left / LANES, left.is_multiple_of(LANES)) {
                $(
                    ($fewer, true) => chunks::<A, $fewer, false>(rows, weights, from),
                    ($fewer, false) => chunks::<A, $fewer, true>(rows, weights, from),
                )*
                (0, _) => chunks::<A, 0, true>(rows, weights, from),
                (_, _) => chunks::<A, CHUNKS, false>(rows, weights, from),
            }
        }

        /// Sums over `N` whole chunks, and over the rest if `REST` is set.
        #[inline]
        #[target_feature(enable = $features)]
        fn chunks<A: Load, const N: usize, const REST: bool>(
            rows: Picked<'_, A>,
            weights: &[f32],
            from: usize,
        ) -> [Lanes; CHUNKS] {
            let mut sums = [none(); CHUNKS];
            for (&number, weight) in rows.numbers.iter().zip(weights) {
                let (row, weight) = (&rows.numbered(number)[from..], all(*weight));
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

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
pub(super) use sums;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd;
    use crate::simd::tests::at_every_width;
    use crate::simd::{LANES, plain, products_of_sums};

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

    fn found(a: Sum<'_>, b: Sum<'_>) -> Vec<[u32; 3]> {
        let mut found = vec![plain::products_of_sums(a, b, a.rows.dims())];
        found.extend(at_every_width(|| products_of_sums(a, b)));
        found.into_iter().map(|products| products.map(f32::to_bits)).collect()
    }

    fn text(dims: usize) -> impl Strategy<Value = Vec<(Vec<f32>, f32)>> {
        prop::collection::vec((prop::collection::vec(-3.0_f32..3.0, dims), -1.0_f32..1.0), 1..9)
    }

    /// Rows of another type, the first two in a table and the others in a second one, with the
    /// index of each.
    fn table<A: Copy>(rows: &[Vec<f32>], of: impl Fn(f32) -> A) -> ([Vec<A>; 2], Vec<u32>) {
        let (first, behind) = rows.split_at(2.min(rows.len()));
        let all = |rows: &[Vec<f32>]| rows.iter().flatten().map(|&number| of(number)).collect();
        ([all(first), all(behind)], (0..rows.len() as u32).collect())
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
            let ([first, behind], numbers) = table(&others, |n| n);
            let picked = Picked { tables: [&first, &behind], numbers: &numbers, dims };
            let other = Sum { rows: Rows::F32(picked), weights: &other_weights, share: 1.0 };

            let ([first, behind], numbers) = table(&rows, |n| n);
            let picked = Picked { tables: [&first, &behind], numbers: &numbers, dims };
            let sum = Sum { rows: Rows::F32(picked), weights: &weights, share };
            let x = written(&rows, &weights, share, dims);
            for found in found(sum, other) {
                prop_assert_eq!(found, products(&x, &y));
            }

            let ([first, behind], numbers) = table(&rows, f16::from_f32_const);
            let picked = Picked { tables: [&first, &behind], numbers: &numbers, dims };
            let sum = Sum { rows: Rows::F16(picked), weights: &weights, share };
            let back: Vec<Vec<f32>> = rows
                .iter()
                .map(|row| row.iter().map(|&n| f16::from_f32_const(n).to_f32()).collect())
                .collect();
            let x = written(&back, &weights, share, dims);
            for found in found(sum, other) {
                prop_assert_eq!(found, products(&x, &y));
            }

            let byte = |n: f32| (n * 40.0) as i8;
            let ([first, behind], numbers) = table(&rows, byte);
            let picked = Picked { tables: [&first, &behind], numbers: &numbers, dims };
            let sum = Sum { rows: Rows::I8(picked), weights: &weights, share };
            let back: Vec<Vec<f32>> =
                rows.iter().map(|row| row.iter().map(|&n| f32::from(byte(n))).collect()).collect();
            let x = written(&back, &weights, share, dims);
            for found in found(other, sum) {
                prop_assert_eq!(found, products(&y, &x));
            }
        }
    }

    #[test]
    fn nothing_adds_up_to_nothing() {
        let none = Picked { tables: [&[], &[]], numbers: &[], dims: 70 };
        let none = Sum { rows: Rows::I8(none), weights: &[], share: 1.0 };
        assert_eq!(products_of_sums(none, none), [0.0; 3]);
    }
}
