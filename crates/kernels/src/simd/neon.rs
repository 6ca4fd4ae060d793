//! The loops for 64-bit ARM, whose processors all have NEON: four registers of four hold the
//! sixteen lanes.

use std::arch::aarch64::*;
use std::arch::asm;

use half::f16;

use crate::simd::loops::{loops, padded, plain_loops};
use crate::simd::sums::{Rows as SumRows, Sum, sums};
use crate::simd::tiles::{SIDE, Tile, put, tiles, turned, whole};
use crate::simd::{
    LANES, Picked, Rows, Widen, exchange_loop, four, image_by_rows, largest_of_rows_loop,
    raise_by_loop, sum_of_rows_loop,
};

const QUARTER: usize = LANES / 4;

type Lanes = [float32x4_t; LANES / QUARTER];

pub(in crate::simd) trait Load: Widen {
    fn load(quarter: &[Self; QUARTER]) -> float32x4_t;

    #[inline(always)]
    fn load_all(chunk: &[Self; LANES]) -> Lanes {
        let quarters = chunk.as_chunks::<QUARTER>().0;
        [
            Self::load(&quarters[0]),
            Self::load(&quarters[1]),
            Self::load(&quarters[2]),
            Self::load(&quarters[3]),
        ]
    }
}

impl Load for f32 {
    #[inline(always)]
    fn load(quarter: &[Self; QUARTER]) -> float32x4_t {
        // SAFETY: there are four numbers to read.
        unsafe { vld1q_f32(quarter.as_ptr()) }
    }
}

impl Load for f16 {
    #[inline(always)]
    fn load(quarter: &[Self; QUARTER]) -> float32x4_t {
        let wide: float32x4_t;
        // SAFETY: there are four numbers of two bytes to read; every processor of 64 bits widens them.
        unsafe {
            let halves = vld1_u16(quarter.as_ptr().cast());
            asm!(
                "fcvtl {wide:v}.4s, {halves:v}.4h",
                wide = lateout(vreg) wide,
                halves = in(vreg) halves,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        wide
    }
}

impl Load for i8 {
    #[inline(always)]
    fn load(quarter: &[Self; QUARTER]) -> float32x4_t {
        // SAFETY: every processor of 64 bits has these.
        unsafe {
            let bytes =
                vreinterpret_s8_s32(vdup_n_s32(i32::from_ne_bytes(quarter.map(i8::cast_unsigned))));
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))
        }
    }

    #[inline(always)]
    fn load_all(chunk: &[Self; LANES]) -> Lanes {
        // SAFETY: there are sixteen bytes to read.
        unsafe {
            let bytes = vld1q_s8(chunk.as_ptr());
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
            [
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                vcvtq_f32_s32(vmovl_high_s16(low)),
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                vcvtq_f32_s32(vmovl_high_s16(high)),
            ]
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn none() -> Lanes {
    [vdupq_n_f32(0.0); 4]
}

#[inline]
#[target_feature(enable = "neon")]
fn all(number: f32) -> Lanes {
    [vdupq_n_f32(number); 4]
}

#[inline(always)]
fn chunk<A: Load>(chunk: &[A; LANES]) -> Lanes {
    A::load_all(chunk)
}

#[inline(always)]
fn rest_of_row<A: Load>(rest: &[A]) -> Lanes {
    chunk(&padded(rest))
}

#[inline]
#[target_feature(enable = "neon")]
fn fused(a: Lanes, b: Lanes, sum: Lanes) -> Lanes {
    [
        vfmaq_f32(sum[0], a[0], b[0]),
        vfmaq_f32(sum[1], a[1], b[1]),
        vfmaq_f32(sum[2], a[2], b[2]),
        vfmaq_f32(sum[3], a[3], b[3]),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn scaled([a, b, c, d]: Lanes, by: f32) -> Lanes {
    [vmulq_n_f32(a, by), vmulq_n_f32(b, by), vmulq_n_f32(c, by), vmulq_n_f32(d, by)]
}

#[inline]
#[target_feature(enable = "neon")]
fn difference(a: Lanes, b: Lanes) -> Lanes {
    [vsubq_f32(a[0], b[0]), vsubq_f32(a[1], b[1]), vsubq_f32(a[2], b[2]), vsubq_f32(a[3], b[3])]
}

#[inline]
#[target_feature(enable = "neon")]
fn fold([a, b, c, d]: Lanes) -> f32 {
    let four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
    let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    vpadds_f32(two)
}

#[inline]
#[target_feature(enable = "neon")]
fn store(chunk: &mut [f32; LANES], lanes: Lanes) {
    for (quarter, lanes) in chunk.as_chunks_mut::<QUARTER>().0.iter_mut().zip(lanes) {
        // SAFETY: there is room for four numbers.
        unsafe { vst1q_f32(quarter.as_mut_ptr(), lanes) };
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_rest(rest: &mut [f32], lanes: Lanes) {
    let mut chunk = [0.0; LANES];
    store(&mut chunk, lanes);
    rest.copy_from_slice(&chunk[..rest.len()]);
}

/// The products of four rows with four.
///
/// Sixteen sums of four lanes fill half of the registers, so the sixteen lanes are processed four
/// at a time: lanes are added to each other only at the end.
#[inline]
#[target_feature(enable = "neon")]
fn tile(a: [&[f32]; SIDE], b: [&[f32]; SIDE], dims: usize) -> Tile {
    let [first, second] = [quarter(a, b, dims, 0), quarter(a, b, dims, 1)];
    let [third, last] = [quarter(a, b, dims, 2), quarter(a, b, dims, 3)];
    let mut out = [0.0; SIDE * SIDE];
    for (place, out) in out.iter_mut().enumerate() {
        *out = fold([first[place], second[place], third[place], last[place]]);
    }
    out
}

#[inline]
#[target_feature(enable = "neon")]
fn tile_with_itself(a: [&[f32]; SIDE], dims: usize) -> Tile {
    tile(a, a, dims)
}

/// One of the four registers of each product's lanes.
#[inline]
#[target_feature(enable = "neon")]
fn quarter(
    a: [&[f32]; SIDE],
    b: [&[f32]; SIDE],
    dims: usize,
    place: usize,
) -> [float32x4_t; SIDE * SIDE] {
    let chunks = dims / LANES;
    let (rows, columns) = (a.map(|row| whole(row, chunks)), b.map(|row| whole(row, chunks)));
    let mut sums = [vdupq_n_f32(0.0); SIDE * SIDE];
    for at in 0..chunks {
        let of = |row: &[[f32; LANES]]| f32::load(&row[at].as_chunks().0[place]);
        add_products(&mut sums, rows.map(of), columns.map(of));
    }
    if !dims.is_multiple_of(LANES) {
        let of = |row: &[f32]| f32::load(&padded(&row[chunks * LANES..dims]).as_chunks().0[place]);
        add_products(&mut sums, a.map(of), b.map(of));
    }
    sums
}

#[inline]
#[target_feature(enable = "neon")]
fn add_products(
    sums: &mut [float32x4_t; SIDE * SIDE],
    rows: [float32x4_t; SIDE],
    columns: [float32x4_t; SIDE],
) {
    for (row, sums) in rows.into_iter().zip(sums.as_chunks_mut::<SIDE>().0) {
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = vfmaq_f32(*sum, row, column);
        }
    }
}

loops!("neon");
plain_loops!("neon");
tiles!("neon");
sums!("neon", 4, [1 2 3]);
