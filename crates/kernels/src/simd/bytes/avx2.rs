//! The loops over bytes for processors with AVX2: bytes are widened to 16 bits, so that a product
//! is exact, and two neighbouring products are added to 32. A row that is multiplied often is
//! widened once.
//!
//! Every function here needs AVX2; `bytes` calls none before checking.

use std::arch::x86_64::*;

use crate::simd::Tile;
use crate::simd::bytes::blockwise::blockwise;
use crate::simd::bytes::{Block, Blocks, Prepared, SIDE, quantise_loop};

/// Bytes that fill a register once they are widened.
const CHUNK: usize = 16;

/// A chunk of a row in numbers of 16 bits.
pub(super) type Wide = __m256i;

/// The prepared rows of a block; empty if other loops prepared them.
#[inline(always)]
pub(super) fn of_block(wide: &[Wide], dims: usize, block: usize) -> &[Wide] {
    let chunks = SIDE * dims.div_ceil(CHUNK);
    wide.get(block * chunks..(block + 1) * chunks).unwrap_or_default()
}

#[inline(always)]
fn row(block: Block<'_>, at: usize) -> &[Wide] {
    let chunks = block.wide.len() / SIDE;
    &block.wide[at * chunks..(at + 1) * chunks]
}

#[inline]
#[target_feature(enable = "avx2")]
fn wide(chunk: &[i8; CHUNK]) -> __m256i {
    // SAFETY: there are sixteen bytes to read.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn wide_rest(row: &[i8]) -> __m256i {
    let rest = row.as_chunks::<CHUNK>().1;
    let mut chunk = [0; CHUNK];
    chunk[..rest.len()].copy_from_slice(rest);
    wide(&chunk)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_product(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn fold(lanes: __m256i) -> i32 {
    let [out, ..] = fold_four([lanes; SIDE]);
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(lanes: __m256i) -> __m128i {
    _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes))
}

/// The sums of either half of each of four registers.
#[inline]
#[target_feature(enable = "avx2")]
fn pairwise([a, b, c, d]: [__m256i; SIDE]) -> __m256i {
    _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d))
}

/// The sums of the numbers of each of four registers.
#[inline]
#[target_feature(enable = "avx2")]
fn fold_four(lanes: [__m256i; SIDE]) -> [i32; SIDE] {
    let all = halves(pairwise(lanes));
    let mut out = [0; SIDE];
    // SAFETY: there is room for four numbers.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), all) };
    out
}

#[target_feature(enable = "avx2")]
pub(super) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let (a_chunks, a_rest) = a.as_chunks::<CHUNK>();
    let (b_chunks, b_rest) = b.as_chunks::<CHUNK>();
    let mut lanes = _mm256_setzero_si256();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        lanes = add_product(lanes, wide(a), wide(b));
    }
    if !a_rest.is_empty() && !b_rest.is_empty() {
        lanes = add_product(lanes, wide_rest(a), wide_rest(b));
    }
    fold(lanes)
}

#[target_feature(enable = "avx2")]
pub(super) fn prepare(rows: &[[&[i8]; SIDE]], dims: usize, prepared: &mut Prepared) {
    let whole = dims.is_multiple_of(CHUNK);
    for row in rows.as_flattened() {
        for chunk in row.as_chunks().0 {
            prepared.wide.push(wide(chunk));
        }
        if !whole {
            prepared.wide.push(wide_rest(row));
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn squares(block: Block<'_>, _dims: usize) -> [i32; SIDE] {
    let mut lanes = [_mm256_setzero_si256(); SIDE];
    for (at, lanes) in lanes.iter_mut().enumerate() {
        for &chunk in row(block, at) {
            *lanes = add_product(*lanes, chunk, chunk);
        }
    }
    fold_four(lanes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn tile(a: Block<'_>, b: Block<'_>, _dims: usize) -> [__m256; 2] {
    let columns = [row(b, 0), row(b, 1), row(b, 2), row(b, 3)];
    let upper = two_rows([row(a, 0), row(a, 1)], columns);
    let lower = two_rows([row(a, 2), row(a, 3)], columns);
    scaled([upper, lower], a, b)
}

/// The products of four rows with themselves; those below the diagonal are mirror images.
#[inline]
#[target_feature(enable = "avx2")]
fn tile_with_itself(a: Block<'_>, _dims: usize) -> [__m256; 2] {
    let [.., third, last] = [row(a, 0), row(a, 1), row(a, 2), row(a, 3)];
    let upper = two_rows([row(a, 0), row(a, 1)], [row(a, 0), row(a, 1), third, last]);
    let mut lanes = [_mm256_setzero_si256(); 3];
    for (&third, &last) in third.iter().zip(last) {
        lanes[0] = add_product(lanes[0], third, third);
        lanes[1] = add_product(lanes[1], third, last);
        lanes[2] = add_product(lanes[2], last, last);
    }
    let right = halves(pairwise([lanes[0], lanes[1], lanes[1], lanes[2]]));
    let [first, second] = [_mm256_castsi256_si128(upper), _mm256_extracti128_si256::<1>(upper)];
    let left = _mm_unpackhi_epi32(first, second);
    let lower = _mm256_set_m128i(_mm_unpackhi_epi64(left, right), _mm_unpacklo_epi64(left, right));
    scaled([upper, lower], a, a)
}

/// The sums of the products of two rows with four columns: sixteen registers hold eight sums.
#[inline]
#[target_feature(enable = "avx2")]
fn two_rows([a, b]: [&[Wide]; 2], [c, d, e, f]: [&[Wide]; SIDE]) -> __m256i {
    let chunks = a.len();
    let (b, columns) = (&b[..chunks], [&c[..chunks], &d[..chunks], &e[..chunks], &f[..chunks]]);
    let mut sums = [[_mm256_setzero_si256(); SIDE]; 2];
    for at in 0..chunks {
        let (first, second) = (a[at], b[at]);
        for column in 0..SIDE {
            let numbers = columns[column][at];
            sums[0][column] = add_product(sums[0][column], first, numbers);
            sums[1][column] = add_product(sums[1][column], second, numbers);
        }
    }
    let [first, second] = [pairwise(sums[0]), pairwise(sums[1])];
    _mm256_add_epi32(
        _mm256_permute2x128_si256::<0x20>(first, second),
        _mm256_permute2x128_si256::<0x31>(first, second),
    )
}

/// The sums of a tile's products times the factors of rows and columns.
#[inline]
#[target_feature(enable = "avx2")]
fn scaled(sums: [__m256i; 2], a: Block<'_>, b: Block<'_>) -> [__m256; 2] {
    // SAFETY: there are four numbers to read.
    let of_columns = unsafe { _mm_loadu_ps(b.factors.as_ptr()) };
    let of_columns = _mm256_set_m128(of_columns, of_columns);
    let mut out = [_mm256_setzero_ps(); 2];
    for ((out, sums), [first, second]) in out.iter_mut().zip(sums).zip(a.factors.as_chunks::<2>().0)
    {
        let of_rows = _mm256_set_m128(_mm_set1_ps(*second), _mm_set1_ps(*first));
        *out = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_mul_ps(of_rows, of_columns));
    }
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn zeros() -> [__m256; 2] {
    [_mm256_setzero_ps(); 2]
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(tile: &Tile) -> [__m256; 2] {
    // SAFETY: there are sixteen numbers to read.
    unsafe { [_mm256_loadu_ps(tile.as_ptr()), _mm256_loadu_ps(tile.as_ptr().add(8))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(lanes: [__m256; 2]) -> Tile {
    let mut tile = [0.0; SIDE * SIDE];
    for (half, lanes) in tile.as_chunks_mut::<8>().0.iter_mut().zip(lanes) {
        // SAFETY: there is room for eight numbers.
        unsafe { _mm256_storeu_ps(half.as_mut_ptr(), lanes) };
    }
    tile
}

#[inline]
#[target_feature(enable = "avx2")]
fn larger(tile: [__m256; 2], other: [__m256; 2]) -> [__m256; 2] {
    [_mm256_max_ps(tile[0], other[0]), _mm256_max_ps(tile[1], other[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn turned(tile: [__m256; 2]) -> [__m256; 2] {
    let tile = store(tile);
    let mut turned = [0.0; SIDE * SIDE];
    for i in 0..SIDE {
        for j in 0..SIDE {
            turned[SIDE * j + i] = tile[SIDE * i + j];
        }
    }
    load(&turned)
}

#[inline]
#[target_feature(enable = "avx2")]
fn tallest(tile: [__m256; 2]) -> [f32; SIDE] {
    let two = _mm256_max_ps(tile[0], tile[1]);
    let one = _mm_max_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps::<1>(two));
    // Of two zeros the instruction returns the second, which is +0.
    let one = _mm_max_ps(one, _mm_setzero_ps());
    let mut out = [0.0; SIDE];
    // SAFETY: there is room for four numbers.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), one) };
    out
}

blockwise!("avx2");
