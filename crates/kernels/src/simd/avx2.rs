//! The loops for processors with AVX2: two registers hold the sixteen lanes, the lower and the
//! upper eight.
//!
//! Every function here needs AVX2, FMA and F16C; `simd` calls none before checking.

use std::arch::x86_64::*;

use half::f16;

use crate::simd::loops::{loops, padded, plain_loops};
use crate::simd::sums::{Rows as SumRows, Sum, sums};
use crate::simd::tiles::{SIDE, Tile, put, tiles, turned, whole};
use crate::simd::{
    LANES, Picked, Rows, Widen, exchange_loop, four, image_by_rows, largest_of_rows_loop,
    raise_by_loop, sum_of_rows_loop,
};

const HALF: usize = LANES / 2;

pub(in crate::simd) trait Load: Widen {
    /// Eight numbers, widened.
    ///
    /// # Safety
    ///
    /// The processor has AVX2 and F16C.
    unsafe fn load(half: &[Self; HALF]) -> __m256;
}

impl Load for f32 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(half: &[Self; HALF]) -> __m256 {
        // SAFETY: there are eight numbers to read.
        unsafe { _mm256_loadu_ps(half.as_ptr()) }
    }
}

impl Load for f16 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(half: &[Self; HALF]) -> __m256 {
        // SAFETY: there are eight numbers of two bytes to read.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(half.as_ptr().cast()) })
    }
}

impl Load for i8 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(half: &[Self; HALF]) -> __m256 {
        // SAFETY: there are eight bytes to read.
        let bytes = unsafe { _mm_loadl_epi64(half.as_ptr().cast()) };
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
    }
}

/// Sixteen numbers: the lower and the upper eight.
type Lanes = [__m256; 2];

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn chunk<A: Load>(chunk: &[A; LANES]) -> Lanes {
    let halves = chunk.as_chunks::<HALF>().0;
    // SAFETY: this function needs what `Load::load` needs.
    unsafe { [A::load(&halves[0]), A::load(&halves[1])] }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn fold([lower, upper]: Lanes) -> f32 {
    let eight = _mm256_add_ps(lower, upper);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn difference(a: Lanes, b: Lanes) -> Lanes {
    [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store(chunk: &mut [f32; LANES], lanes: Lanes) {
    for (half, lanes) in chunk.as_chunks_mut::<HALF>().0.iter_mut().zip(lanes) {
        // SAFETY: there is room for eight numbers.
        unsafe { _mm256_storeu_ps(half.as_mut_ptr(), lanes) };
    }
}

/// A mask of those of the eight lanes from `from` on that are among the first `count`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn mask(from: usize, count: usize) -> __m256i {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32 - from as i32), places)
}

/// Returns the products of four rows with four rows.
///
/// Sixteen registers hold eight sums, so two columns are multiplied at a time, and first the lower
/// halves of the lanes, then the upper: lanes are added to each other only at the end.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile(a: [&[f32]; SIDE], b: [&[f32]; SIDE], dims: usize) -> Tile {
    let [left, right] = [strip(a, [b[0], b[1]], dims), strip(a, [b[2], b[3]], dims)];
    // Adds two lanes to two, then one to one, within every quarter.
    let mut out = [0.0; SIDE * SIDE];
    for (pair, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let columns = lane_sums::<0b01_00_01_00, 0b11_10_11_10>(left[pair][0], left[pair][1]);
        let others = lane_sums::<0b01_00_01_00, 0b11_10_11_10>(right[pair][0], right[pair][1]);
        let all = lane_sums::<0b10_00_10_00, 0b11_01_11_01>(columns, others);
        // SAFETY: there is room for eight numbers.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), all) };
    }
    out
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile_with_itself(a: [&[f32]; SIDE], dims: usize) -> Tile {
    tile(a, a, dims)
}

/// The products of four rows with two, folded to four lanes: for each pair of rows and each column
/// a register with a quarter per row.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn strip(a: [&[f32]; SIDE], b: [&[f32]; 2], dims: usize) -> [[__m256; 2]; 2] {
    let lower = half_strip(a, b, dims, 0);
    let upper = half_strip(a, b, dims, HALF);
    let mut out = [[_mm256_setzero_ps(); 2]; 2];
    for pair in 0..2 {
        for column in 0..2 {
            let first = _mm256_add_ps(lower[2 * pair][column], upper[2 * pair][column]);
            let second = _mm256_add_ps(lower[2 * pair + 1][column], upper[2 * pair + 1][column]);
            let low = _mm256_permute2f128_ps::<0x20>(first, second);
            let high = _mm256_permute2f128_ps::<0x31>(first, second);
            out[pair][column] = _mm256_add_ps(low, high);
        }
    }
    out
}

/// The sums of eight of the sixteen lanes, from lane `from` on, for four rows and two columns.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn half_strip(a: [&[f32]; SIDE], b: [&[f32]; 2], dims: usize, from: usize) -> [[__m256; 2]; SIDE] {
    let chunks = dims / LANES;
    let [a0, a1, a2, a3] =
        [whole(a[0], chunks), whole(a[1], chunks), whole(a[2], chunks), whole(a[3], chunks)];
    let [b0, b1] = [whole(b[0], chunks), whole(b[1], chunks)];
    let mut sums = [[_mm256_setzero_ps(); 2]; SIDE];
    for at in 0..chunks {
        let columns = [half(&b0[at], from), half(&b1[at], from)];
        add_row(&mut sums[0], half(&a0[at], from), columns);
        add_row(&mut sums[1], half(&a1[at], from), columns);
        add_row(&mut sums[2], half(&a2[at], from), columns);
        add_row(&mut sums[3], half(&a3[at], from), columns);
    }
    let rest = dims % LANES;
    if rest > from {
        let mask = mask(from, rest);
        let rest = chunks * LANES + from..dims;
        // SAFETY: lanes past the end of a row are masked out and not read.
        unsafe {
            let columns = [
                _mm256_maskload_ps(b[0][rest.clone()].as_ptr(), mask),
                _mm256_maskload_ps(b[1][rest.clone()].as_ptr(), mask),
            ];
            for i in 0..SIDE {
                let row = _mm256_maskload_ps(a[i][rest.clone()].as_ptr(), mask);
                add_row(&mut sums[i], row, columns);
            }
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_row(sums: &mut [__m256; 2], row: __m256, columns: [__m256; 2]) {
    sums[0] = _mm256_fmadd_ps(row, columns[0], sums[0]);
    sums[1] = _mm256_fmadd_ps(row, columns[1], sums[1]);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn half(chunk: &[f32; LANES], from: usize) -> __m256 {
    // SAFETY: eight numbers follow number 0 as well as number 8; this function needs what
    // `Load::load` needs.
    unsafe { f32::load(&chunk.as_chunks::<HALF>().0[from / HALF]) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn lane_sums<const LOW: i32, const HIGH: i32>(a: __m256, b: __m256) -> __m256 {
    _mm256_add_ps(_mm256_shuffle_ps::<LOW>(a, b), _mm256_shuffle_ps::<HIGH>(a, b))
}

tiles!("avx2,fma,f16c");

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn none() -> Lanes {
    [_mm256_setzero_ps(); 2]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn all(number: f32) -> Lanes {
    [_mm256_set1_ps(number); 2]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn rest_of_row<A: Load>(rest: &[A]) -> Lanes {
    chunk(&padded(rest))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn fused(a: Lanes, b: Lanes, sum: Lanes) -> Lanes {
    [_mm256_fmadd_ps(a[0], b[0], sum[0]), _mm256_fmadd_ps(a[1], b[1], sum[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn scaled(lanes: Lanes, by: f32) -> Lanes {
    [_mm256_mul_ps(lanes[0], _mm256_set1_ps(by)), _mm256_mul_ps(lanes[1], _mm256_set1_ps(by))]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store_rest(rest: &mut [f32], lanes: Lanes) {
    let mut chunk = [0.0; LANES];
    store(&mut chunk, lanes);
    rest.copy_from_slice(&chunk[..rest.len()]);
}

loops!("avx2,fma,f16c");
plain_loops!("avx2,fma,f16c");
sums!("avx2,fma,f16c", 4, [1 2 3]);
