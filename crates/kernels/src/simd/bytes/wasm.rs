//! The loops over bytes for WebAssembly with 128-bit vectors: bytes are widened to 16 bits, so that a
//! product is exact, and two neighbouring products are added to 32.

use std::arch::wasm32::*;

use crate::simd::Tile;
use crate::simd::bytes::blockwise::blockwise;
pub(super) use crate::simd::bytes::plain::prepare;
use crate::simd::bytes::{Block, Blocks, SIDE, quantise_loop};
use crate::simd::wasm::Load;

const CHUNK: usize = 8;

#[inline(always)]
fn wide(chunk: &[i8; CHUNK]) -> v128 {
    // SAFETY: there are eight bytes to read.
    unsafe { i16x8_load_extend_i8x8(chunk.as_ptr()) }
}

#[inline(always)]
fn wide_rest(row: &[i8]) -> v128 {
    let rest = row.as_chunks::<CHUNK>().1;
    let mut chunk = [0; CHUNK];
    chunk[..rest.len()].copy_from_slice(rest);
    wide(&chunk)
}

#[inline(always)]
fn add_product(sum: v128, a: v128, b: v128) -> v128 {
    i32x4_add(sum, i32x4_dot_i16x8(a, b))
}

#[inline(always)]
fn whole(row: &[i8], chunks: usize) -> &[[i8; CHUNK]] {
    &row.as_chunks().0[..chunks]
}

#[inline(always)]
fn fold_four(lanes: [v128; SIDE]) -> v128 {
    let two =
        |a, b| i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let (first, second) = (two(lanes[0], lanes[1]), two(lanes[2], lanes[3]));
    i32x4_add(i64x2_shuffle::<0, 2>(first, second), i64x2_shuffle::<1, 3>(first, second))
}

pub(super) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let (a_chunks, a_rest) = a.as_chunks::<CHUNK>();
    let (b_chunks, b_rest) = b.as_chunks::<CHUNK>();
    let mut lanes = i32x4_splat(0);
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        lanes = add_product(lanes, wide(a), wide(b));
    }
    if !a_rest.is_empty() && !b_rest.is_empty() {
        lanes = add_product(lanes, wide_rest(a), wide_rest(b));
    }
    i32x4_extract_lane::<0>(fold_four([lanes; SIDE]))
}

pub(super) fn squares(block: Block<'_>, _dims: usize) -> [i32; SIDE] {
    block.rows.map(|row| dot(row, row))
}

/// The products of four rows with four: a register per row.
///
/// Few processors have registers for sixteen sums, so two columns are multiplied at a time.
#[inline(always)]
fn tile(a: Block<'_>, b: Block<'_>, dims: usize) -> [v128; SIDE] {
    let left = strip(a.rows, [b.rows[0], b.rows[1]], dims);
    let right = strip(a.rows, [b.rows[2], b.rows[3]], dims);
    // SAFETY: there are four numbers to read.
    let of_columns = unsafe { v128_load(b.factors.as_ptr().cast()) };
    let mut out = zeros();
    for (row, out) in out.iter_mut().enumerate() {
        let sums = fold_four([left[row][0], left[row][1], right[row][0], right[row][1]]);
        let factors = f32x4_mul(f32x4_splat(a.factors[row]), of_columns);
        *out = f32x4_mul(f32x4_convert_i32x4(sums), factors);
    }
    out
}

#[inline(always)]
fn tile_with_itself(a: Block<'_>, dims: usize) -> [v128; SIDE] {
    tile(a, a, dims)
}

/// For each of four rows, four partial sums of its product with either of two columns.
#[inline(always)]
fn strip(a: &[&[i8]; SIDE], b: [&[i8]; 2], dims: usize) -> [[v128; 2]; SIDE] {
    let chunks = dims / CHUNK;
    let [a0, a1, a2, a3] =
        [whole(a[0], chunks), whole(a[1], chunks), whole(a[2], chunks), whole(a[3], chunks)];
    let [b0, b1] = [whole(b[0], chunks), whole(b[1], chunks)];
    let mut sums = [[i32x4_splat(0); 2]; SIDE];
    for at in 0..chunks {
        let columns = [wide(&b0[at]), wide(&b1[at])];
        add_row(&mut sums[0], wide(&a0[at]), columns);
        add_row(&mut sums[1], wide(&a1[at]), columns);
        add_row(&mut sums[2], wide(&a2[at]), columns);
        add_row(&mut sums[3], wide(&a3[at]), columns);
    }
    if !dims.is_multiple_of(CHUNK) {
        let columns = [wide_rest(b[0]), wide_rest(b[1])];
        for (sums, row) in sums.iter_mut().zip(a) {
            add_row(sums, wide_rest(row), columns);
        }
    }
    sums
}

#[inline(always)]
fn add_row(sums: &mut [v128; 2], row: v128, columns: [v128; 2]) {
    sums[0] = add_product(sums[0], row, columns[0]);
    sums[1] = add_product(sums[1], row, columns[1]);
}

#[inline(always)]
fn zeros() -> [v128; SIDE] {
    [f32x4_splat(0.0); SIDE]
}

#[inline(always)]
fn load(tile: &Tile) -> [v128; SIDE] {
    f32::load(tile)
}

#[inline(always)]
fn store(lanes: [v128; SIDE]) -> Tile {
    let mut tile = [0.0; SIDE * SIDE];
    for (row, lanes) in tile.as_chunks_mut::<SIDE>().0.iter_mut().zip(lanes) {
        // SAFETY: there is room for four numbers.
        unsafe { v128_store(row.as_mut_ptr().cast(), lanes) };
    }
    tile
}

#[inline(always)]
fn larger(tile: [v128; SIDE], other: [v128; SIDE]) -> [v128; SIDE] {
    let [a, b, c, d] = tile;
    let [e, f, g, h] = other;
    [f32x4_pmax(a, e), f32x4_pmax(b, f), f32x4_pmax(c, g), f32x4_pmax(d, h)]
}

#[inline(always)]
fn turned([a, b, c, d]: [v128; SIDE]) -> [v128; SIDE] {
    let (low, high) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let (other_low, other_high) =
        (i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    [
        i64x2_shuffle::<0, 2>(low, other_low),
        i64x2_shuffle::<1, 3>(low, other_low),
        i64x2_shuffle::<0, 2>(high, other_high),
        i64x2_shuffle::<1, 3>(high, other_high),
    ]
}

#[inline(always)]
fn tallest([a, b, c, d]: [v128; SIDE]) -> [f32; SIDE] {
    let best = f32x4_pmax(f32x4_pmax(a, b), f32x4_pmax(c, d));
    // The first of two zeros stays, which is +0.
    let best = f32x4_pmax(f32x4_splat(0.0), best);
    let mut out = [0.0; SIDE];
    // SAFETY: there is room for four numbers.
    unsafe { v128_store(out.as_mut_ptr().cast(), best) };
    out
}

blockwise!("simd128");
