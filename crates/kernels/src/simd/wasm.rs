//! The loops for WebAssembly with 128-bit vectors: four registers of four hold the sixteen lanes.
//!
//! WebAssembly lets the engine decide whether its multiply-add is fused. Modules built with
//! `relaxed-simd` use that, and must run only where it is fused, which the loader has to test
//! (`wasm/lib/fused.js`). All others emulate it in double precision ([`emulated`]). Both give the
//! same bits.

#[cfg(not(target_feature = "relaxed-simd"))]
mod emulated;

use std::arch::wasm32::*;
use std::marker::PhantomData;

#[cfg(not(target_feature = "relaxed-simd"))]
use emulated::fused;
use half::f16;

use crate::simd::loops::{loops, padded};
pub(super) use crate::simd::plain::{exchange, image, largest_of_rows, sum_of_rows};
use crate::simd::sums::{Rows as SumRows, Sum, sums};
use crate::simd::tiles::{SIDE, Tile, put, tiles, turned};
use crate::simd::{LANES, Picked, Rows, Widen, four};

#[cfg(not(target_feature = "simd128"))]
compile_error!("for WebAssembly, build with RUSTFLAGS=\"-C target-feature=+simd128\"");

type Lanes = [v128; LANES / 4];

/// A factor of a multiply-add, with properties that make the emulation faster.
#[cfg_attr(target_feature = "relaxed-simd", allow(dead_code, reason = "the emulation asks for it"))]
trait Factor: Copy {
    /// Whether it consists of whole numbers from -128 to 127.
    const IS_BYTES: bool = false;

    fn lanes(self) -> Lanes;

    /// The number that all lanes hold, if they are equal.
    fn weight(self) -> Option<f32> {
        None
    }
}

impl Factor for Lanes {
    #[inline(always)]
    fn lanes(self) -> Lanes {
        self
    }
}

#[derive(Clone, Copy)]
struct OfRow<A>(Lanes, PhantomData<A>);

impl From<OfRow<f32>> for Lanes {
    #[inline(always)]
    fn from(row: OfRow<f32>) -> Self {
        row.0
    }
}

impl<A: Load> Factor for OfRow<A> {
    const IS_BYTES: bool = size_of::<A>() == 1;

    #[inline(always)]
    fn lanes(self) -> Lanes {
        self.0
    }
}

#[derive(Clone, Copy)]
struct Weight(f32);

impl Factor for Weight {
    #[inline(always)]
    fn lanes(self) -> Lanes {
        [f32x4_splat(self.0); LANES / 4]
    }

    #[inline(always)]
    fn weight(self) -> Option<f32> {
        Some(self.0)
    }
}

/// `a b + sum`, rounded once, as the engine was tested to do.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn fused<A: Factor, B: Factor>(a: A, b: B, sum: Lanes) -> Lanes {
    let (a, b) = (a.lanes(), b.lanes());
    let four = |at: usize| f32x4_relaxed_madd(a[at], b[at], sum[at]);
    [four(0), four(1), four(2), four(3)]
}

#[inline(always)]
fn none() -> Lanes {
    [f32x4_splat(0.0); LANES / 4]
}

#[inline(always)]
fn all(number: f32) -> Weight {
    Weight(number)
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

#[inline(always)]
fn difference<A: Load, B: Load>(OfRow(a, _): OfRow<A>, OfRow(b, _): OfRow<B>) -> Lanes {
    [f32x4_sub(a[0], b[0]), f32x4_sub(a[1], b[1]), f32x4_sub(a[2], b[2]), f32x4_sub(a[3], b[3])]
}

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

/// `start + Σ weight · row`, for sixteen dimensions from `from` on.
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

fn tile(a: [&[f32]; SIDE], b: [&[f32]; SIDE], dims: usize) -> Tile {
    let mut out = [0.0; SIDE * SIDE];
    for (i, a) in a.into_iter().enumerate() {
        for (j, b) in b.into_iter().enumerate() {
            out[SIDE * i + j] = dot(&a[..dims], &b[..dims]);
        }
    }
    out
}

fn tile_with_itself(a: [&[f32]; SIDE], dims: usize) -> Tile {
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
fn store_rest(rest: &mut [f32], lanes: Lanes) {
    let mut chunk = [0.0; LANES];
    store(&mut chunk, lanes);
    rest.copy_from_slice(&chunk[..rest.len()]);
}

loops!("simd128");
tiles!("simd128");
sums!("simd128", 1, []);

pub(in crate::simd) trait Load: Widen {
    fn load(chunk: &[Self; LANES]) -> Lanes;
}

impl Load for f32 {
    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Lanes {
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
}

impl Load for f16 {
    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Lanes {
        let start = chunk.as_ptr().cast::<v128>();
        // SAFETY: there are sixteen numbers of two bytes to read.
        let [lower, upper] = unsafe { [v128_load(start), v128_load(start.add(1))] };
        [
            of_halves(u32x4_extend_low_u16x8(lower)),
            of_halves(u32x4_extend_high_u16x8(lower)),
            of_halves(u32x4_extend_low_u16x8(upper)),
            of_halves(u32x4_extend_high_u16x8(upper)),
        ]
    }
}

impl Load for i8 {
    #[inline(always)]
    fn load(chunk: &[Self; LANES]) -> Lanes {
        // SAFETY: there are sixteen bytes to read.
        let bytes = unsafe { v128_load(chunk.as_ptr().cast()) };
        let (lower, upper) = (i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes));
        [
            f32x4_convert_i32x4(i32x4_extend_low_i16x8(lower)),
            f32x4_convert_i32x4(i32x4_extend_high_i16x8(lower)),
            f32x4_convert_i32x4(i32x4_extend_low_i16x8(upper)),
            f32x4_convert_i32x4(i32x4_extend_high_i16x8(upper)),
        ]
    }
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
