//! The loops over one row or two, the same for every width: the file that expands them defines the
//! registers.

use crate::simd::{LANES, Widen};

/// Defines `dot`, `squared_distance` and `add_scaled` over `Load`, `none`, `all`, `chunk`, `rest_of_row`,
/// `fused`, `difference`, `fold`, `store` and `store_rest`.
macro_rules! loops {
    ($features:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
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

        #[inline]
        #[target_feature(enable = $features)]
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

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn add_scaled<A: Load, const N: usize>(
            sum: &mut [f32],
            weights: [f32; N],
            rows: [&[A]; N],
        ) {
            let (chunks, rest) = sum.as_chunks_mut::<LANES>();
            let whole = chunks.len() * LANES;
            for (at, sum) in chunks.iter_mut().enumerate() {
                let mut lanes: Lanes = chunk(sum).into();
                for place in 0..N {
                    let row = &rows[place].as_chunks::<LANES>().0[at];
                    lanes = fused(chunk(row), all(weights[place]), lanes);
                }
                store(sum, lanes);
            }
            if !rest.is_empty() {
                let mut lanes: Lanes = rest_of_row(rest).into();
                for place in 0..N {
                    let row = rest_of_row(&rows[place][whole..]);
                    lanes = fused(row, all(weights[place]), lanes);
                }
                store_rest(rest, lanes);
            }
        }
    };
}

pub(super) use loops;

/// Defines loops that the compiler vectorises, for processors that round a fused multiply-add once.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! plain_loops {
    ($features:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn exchange(slope: f32, row: &mut [f32], hidden: &[f32], error: &mut [f32]) {
            exchange_loop(slope, row, hidden, error, f32::mul_add);
        }

        #[target_feature(enable = $features)]
        pub(super) fn largest_of_rows(matrix: &[f32], rows: &[u32], out: &mut [f32]) {
            largest_of_rows_loop(matrix, rows, out);
        }

        #[target_feature(enable = $features)]
        pub(super) fn sum_of_rows(matrix: &[f32], rows: &[u32], out: &mut [f64]) {
            sum_of_rows_loop(matrix, rows, out);
        }

        #[target_feature(enable = $features)]
        pub(super) fn image(matrix: &[f32], weights: &[f64], out: &mut [f64]) {
            image_by_rows(matrix, weights, out);
        }

        #[target_feature(enable = $features)]
        pub(super) fn raise_by<const N: usize>(
            best: &mut [f32],
            weights: [f32; N],
            rows: [&[f32]; N],
        ) {
            raise_by_loop(best, weights, rows, f32::mul_add);
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use plain_loops;

/// Fewer than sixteen numbers, with zeros after them.
#[inline(always)]
pub(super) fn padded<A: Widen>(rest: &[A]) -> [A; LANES] {
    let mut chunk = [A::ZERO; LANES];
    chunk[..rest.len()].copy_from_slice(rest);
    chunk
}
