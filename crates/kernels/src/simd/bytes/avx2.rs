//! The loops over bytes for processors with AVX2: bytes are widened to 16 bits, so that a product is
//! exact, and two neighbouring products are added to 32.
//!
//! Every function here needs AVX2; `bytes` calls none before it has asked.

use std::arch::x86_64::*;

use crate::simd::Tile;
use crate::simd::bytes::blockwise::blockwise;
use crate::simd::bytes::{Block, Blocks, SIDE, quantise_loop};

/// Bytes that fill a register once they are widened.
const CHUNK: usize = 16;

#[inline]
#[target_feature(enable = "avx2")]
fn wide(chunk: &[i8; CHUNK]) -> __m256i {
    // SAFETY: there are sixteen bytes to read.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) })
}

/// The bytes after the last whole chunk, and zeros.
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

/// The whole chunks of a row.
#[inline(always)]
fn whole(row: &[i8], chunks: usize) -> &[[i8; CHUNK]] {
    &row.as_chunks().0[..chunks]
}

/// The sum of a register's numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(lanes: __m256i) -> i32 {
    let [out, ..] = fold_four([lanes; SIDE]);
    out
}

/// The sums of the numbers of each of four registers.
#[inline]
#[target_feature(enable = "avx2")]
fn fold_four(lanes: [__m256i; SIDE]) -> [i32; SIDE] {
    let halves = _mm256_hadd_epi32(
        _mm256_hadd_epi32(lanes[0], lanes[1]),
        _mm256_hadd_epi32(lanes[2], lanes[3]),
    );
    let all = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
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
pub(super) fn sums(rows: &[[&[i8]; SIDE]], dims: usize, out: &mut [[i32; SIDE]]) {
    for (rows, out) in rows.iter().zip(out) {
        *out = [sum(rows[0], dims), sum(rows[1], dims), sum(rows[2], dims), sum(rows[3], dims)];
    }
}

/// The sum of a row's bytes: each is raised by 128, so that there is an instruction for it.
#[inline]
#[target_feature(enable = "avx2")]
fn sum(row: &[i8], dims: usize) -> i32 {
    let (chunks, rest) = row.as_chunks::<32>();
    let (zero, raise) = (_mm256_setzero_si256(), _mm256_set1_epi8(i8::MIN));
    let mut lanes = zero;
    for chunk in chunks {
        // SAFETY: there are thirty-two bytes to read.
        let bytes = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
        lanes = _mm256_add_epi64(lanes, _mm256_sad_epu8(_mm256_xor_si256(bytes, raise), zero));
    }
    // Sums of eight bytes each in every other number of 32 bits.
    let raised = (dims - rest.len()) as i32 * 128;
    rest.iter().fold(fold(lanes) - raised, |sum, &byte| sum + i32::from(byte))
}

#[target_feature(enable = "avx2")]
pub(super) fn squares(
    rows: &[&[i8]; SIDE],
    _sums: &[i32; SIDE],
    _dims: usize,
    out: &mut [i32; SIDE],
) {
    *out = [
        dot(rows[0], rows[0]),
        dot(rows[1], rows[1]),
        dot(rows[2], rows[2]),
        dot(rows[3], rows[3]),
    ];
}

/// The products of four rows with four: those of row `i` are numbers `4 i` to `4 i + 3`.
///
/// Sixteen registers hold eight sums, so two columns are multiplied at a time.
#[inline]
#[target_feature(enable = "avx2")]
fn tile(a: Block<'_>, b: Block<'_>, dims: usize) -> [__m256; 2] {
    let left = strip(a.rows, [b.rows[0], b.rows[1]], dims);
    let right = strip(a.rows, [b.rows[2], b.rows[3]], dims);
    // SAFETY: there are four numbers to read.
    let of_columns = unsafe { _mm_loadu_ps(b.factors.as_ptr()) };
    let of_columns = _mm256_set_m128(of_columns, of_columns);
    let mut out = [_mm256_setzero_ps(); 2];
    for (pair, out) in out.iter_mut().enumerate() {
        let first = _mm256_hadd_epi32(left[2 * pair], right[2 * pair]);
        let second = _mm256_hadd_epi32(left[2 * pair + 1], right[2 * pair + 1]);
        let low = _mm256_permute2x128_si256::<0x20>(first, second);
        let high = _mm256_permute2x128_si256::<0x31>(first, second);
        let sums = _mm256_cvtepi32_ps(_mm256_add_epi32(low, high));
        let of_rows =
            _mm256_set_m128(_mm_set1_ps(a.factors[2 * pair + 1]), _mm_set1_ps(a.factors[2 * pair]));
        *out = _mm256_mul_ps(sums, _mm256_mul_ps(of_rows, of_columns));
    }
    out
}

/// The products of four rows with themselves.
#[inline]
#[target_feature(enable = "avx2")]
fn own_tile(a: Block<'_>, dims: usize) -> [__m256; 2] {
    tile(a, a, dims)
}

/// The products of four rows with two: for each row a register with two sums of two numbers each for
/// either column, in both its halves.
#[inline]
#[target_feature(enable = "avx2")]
fn strip(a: &[&[i8]; SIDE], b: [&[i8]; 2], dims: usize) -> [__m256i; SIDE] {
    let chunks = dims / CHUNK;
    let [a0, a1, a2, a3] =
        [whole(a[0], chunks), whole(a[1], chunks), whole(a[2], chunks), whole(a[3], chunks)];
    let [b0, b1] = [whole(b[0], chunks), whole(b[1], chunks)];
    let mut sums = [[_mm256_setzero_si256(); 2]; SIDE];
    for at in 0..chunks {
        let columns = [wide(&b0[at]), wide(&b1[at])];
        add_row(&mut sums[0], wide(&a0[at]), columns);
        add_row(&mut sums[1], wide(&a1[at]), columns);
        add_row(&mut sums[2], wide(&a2[at]), columns);
        add_row(&mut sums[3], wide(&a3[at]), columns);
    }
    if !dims.is_multiple_of(CHUNK) {
        let columns = [wide_rest(b[0]), wide_rest(b[1])];
        for i in 0..SIDE {
            add_row(&mut sums[i], wide_rest(a[i]), columns);
        }
    }
    let mut out = [_mm256_setzero_si256(); SIDE];
    for (out, [first, second]) in out.iter_mut().zip(sums) {
        *out = _mm256_hadd_epi32(first, second);
    }
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_row(sums: &mut [__m256i; 2], row: __m256i, columns: [__m256i; 2]) {
    sums[0] = add_product(sums[0], row, columns[0]);
    sums[1] = add_product(sums[1], row, columns[1]);
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

/// The tile with rows and columns exchanged.
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

/// The largest number of each column, none below 0.
#[inline]
#[target_feature(enable = "avx2")]
fn tallest(tile: [__m256; 2]) -> [f32; SIDE] {
    let two = _mm256_max_ps(tile[0], tile[1]);
    let one = _mm_max_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps::<1>(two));
    // Of two zeros the instruction gives the second, which has no sign.
    let one = _mm_max_ps(one, _mm_setzero_ps());
    let mut out = [0.0; SIDE];
    // SAFETY: there is room for four numbers.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), one) };
    out
}

#[target_feature(enable = "avx2")]
pub(super) fn quantise(row: &[f32], out: &mut [i8]) -> f32 {
    quantise_loop(row, out)
}

blockwise!("avx2");
