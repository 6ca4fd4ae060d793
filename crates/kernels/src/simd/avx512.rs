//! The loops for processors with AVX-512: a register holds the sixteen lanes.
//!
//! Every function here needs AVX-512F, F16C and FMA; `simd` calls none before checking.

use std::arch::x86_64::*;

use half::f16;

use crate::simd::loops::{loops, padded, plain_loops};
use crate::simd::sums::{Rows as SumRows, Sum, sums};
use crate::simd::tiles::{SIDE, Tile, put, tiles};
use crate::simd::{
    LANES, Picked, Rows, Widen, exchange_loop, four, image_by_rows, largest_of_rows_loop,
    raise_by_loop, sum_of_rows_loop,
};

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn fold(lanes: __m512) -> f32 {
    let upper = _mm512_castpd_ps(_mm512_castpd256_pd512(_mm512_extractf64x4_pd::<1>(
        _mm512_castps_pd(lanes),
    )));
    let eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_castps512_ps256(upper));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn tile(a: [&[f32]; SIDE], b: [&[f32]; SIDE], dims: usize) -> Tile {
    folded(&sums_of::<false>(a, b, dims))
}

/// The products of four rows with each other; the six below the diagonal are copied from above it.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn tile_with_itself(a: [&[f32]; SIDE], dims: usize) -> Tile {
    let mut sums = sums_of::<true>(a, a, dims);
    sums[1][0] = sums[0][1];
    [sums[2][0], sums[2][1]] = [sums[0][2], sums[1][2]];
    [sums[3][0], sums[3][1], sums[3][2]] = [sums[0][3], sums[1][3], sums[2][3]];
    folded(&sums)
}

/// Returns the lanes of the products of four rows with four rows; with `OWN` only the products on and
/// above the diagonal. Products and rows together fit into the registers.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn sums_of<const OWN: bool>(
    a: [&[f32]; SIDE],
    b: [&[f32]; SIDE],
    dims: usize,
) -> [[__m512; SIDE]; SIDE] {
    let mut sums = [[_mm512_setzero_ps(); SIDE]; SIDE];
    let (rows, columns, rest) = (starts(a, dims), starts(b, dims), dims % LANES);
    for at in (0..dims - rest).step_by(LANES) {
        // SAFETY: `starts` has seen to it that rows have `dims` numbers, and `at` is sixteen or more
        // before their end.
        let (rows, columns) = unsafe { (parts(rows, at), parts(columns, at)) };
        add_products::<OWN>(&mut sums, rows, columns);
    }
    if rest > 0 {
        let at = dims - rest;
        // SAFETY: as above; `rest` numbers follow `at`.
        let (rows, columns) =
            unsafe { (last_parts(rows, at, rest), last_parts(columns, at, rest)) };
        add_products::<OWN>(&mut sums, rows, columns);
    }
    sums
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn add_products<const OWN: bool>(
    sums: &mut [[__m512; SIDE]; SIDE],
    rows: [__m512; SIDE],
    columns: [__m512; SIDE],
) {
    for i in 0..SIDE {
        for j in if OWN { i } else { 0 }..SIDE {
            sums[i][j] = _mm512_fmadd_ps(rows[i], columns[j], sums[i][j]);
        }
    }
}

/// Pointers to the beginning of rows of at least `dims` numbers.
#[inline(always)]
fn starts(rows: [&[f32]; SIDE], dims: usize) -> [*const f32; SIDE] {
    let [a, b, c, d] = rows;
    let shortest = a.len().min(b.len()).min(c.len()).min(d.len());
    assert!(shortest >= dims, "rows of as many numbers");
    [a.as_ptr(), b.as_ptr(), c.as_ptr(), d.as_ptr()]
}

/// The sixteen numbers of each row from `at` on.
///
/// # Safety
///
/// Every row has as many.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn parts([a, b, c, d]: [*const f32; SIDE], at: usize) -> [__m512; SIDE] {
    // SAFETY: the caller's promise.
    unsafe {
        [
            _mm512_loadu_ps(a.add(at)),
            _mm512_loadu_ps(b.add(at)),
            _mm512_loadu_ps(c.add(at)),
            _mm512_loadu_ps(d.add(at)),
        ]
    }
}

/// The `rest` numbers of each row from `at` on, fewer than sixteen; the others are zero.
///
/// # Safety
///
/// Every row has as many.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn last_parts([a, b, c, d]: [*const f32; SIDE], at: usize, rest: usize) -> [__m512; SIDE] {
    let mask = first(rest);
    // SAFETY: the caller's promise; what the mask leaves out is not read.
    unsafe {
        [
            _mm512_maskz_loadu_ps(mask, a.add(at)),
            _mm512_maskz_loadu_ps(mask, b.add(at)),
            _mm512_maskz_loadu_ps(mask, c.add(at)),
            _mm512_maskz_loadu_ps(mask, d.add(at)),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn turned(tile: Tile) -> Tile {
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    stored(permuted(order, chunk(&tile)))
}

/// `_mm512_permutexvar_ps`, which Miri supports only for whole numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn permuted(order: __m512i, lanes: __m512) -> __m512 {
    if cfg!(miri) {
        return _mm512_castsi512_ps(_mm512_permutexvar_epi32(order, _mm512_castps_si512(lanes)));
    }
    _mm512_permutexvar_ps(order, lanes)
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn stored(lanes: __m512) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    store(&mut out, lanes);
    out
}

/// The canonical tree over sixteen registers at once: each step combines the halves of two
/// registers in one, so that sixteen sums cost thirty shuffles.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn folded(sums: &[[__m512; SIDE]; SIDE]) -> Tile {
    let mut rows = [_mm512_setzero_ps(); SIDE];
    for j in 0..SIDE {
        // Lanes 0..8 with 8..16: quarters (row 0: 0 1, row 1: 0 1) and (row 2, row 3).
        let upper = quarter_sums::<0b01_00_01_00, 0b11_10_11_10>(sums[0][j], sums[1][j]);
        let lower = quarter_sums::<0b01_00_01_00, 0b11_10_11_10>(sums[2][j], sums[3][j]);
        // Four lanes with four: a quarter per row.
        rows[j] = quarter_sums::<0b10_00_10_00, 0b11_01_11_01>(upper, lower);
    }
    // Adds two lanes to two, then one to one, within every quarter: one column after the other.
    let left = lane_sums::<0b01_00_01_00, 0b11_10_11_10>(rows[0], rows[1]);
    let right = lane_sums::<0b01_00_01_00, 0b11_10_11_10>(rows[2], rows[3]);
    let all = lane_sums::<0b10_00_10_00, 0b11_01_11_01>(left, right);
    stored(all)
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn quarter_sums<const LOW: i32, const HIGH: i32>(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(_mm512_shuffle_f32x4::<LOW>(a, b), _mm512_shuffle_f32x4::<HIGH>(a, b))
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn lane_sums<const LOW: i32, const HIGH: i32>(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(_mm512_shuffle_ps::<LOW>(a, b), _mm512_shuffle_ps::<HIGH>(a, b))
}

tiles!("avx512f,avx2,fma");

type Lanes = __m512;

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn none() -> Lanes {
    _mm512_setzero_ps()
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn all(number: f32) -> Lanes {
    _mm512_set1_ps(number)
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn chunk<A: Load>(chunk: &[A; LANES]) -> Lanes {
    // SAFETY: this function needs what `load` needs.
    unsafe { A::load(chunk) }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn rest_of_row<A: Load>(rest: &[A]) -> Lanes {
    // SAFETY: this function needs what `load_rest` needs.
    unsafe { A::load_rest(rest) }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn fused(a: Lanes, b: Lanes, sum: Lanes) -> Lanes {
    _mm512_fmadd_ps(a, b, sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn scaled(lanes: Lanes, by: f32) -> Lanes {
    _mm512_mul_ps(lanes, _mm512_set1_ps(by))
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn difference(a: Lanes, b: Lanes) -> Lanes {
    _mm512_sub_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn store(chunk: &mut [f32; LANES], lanes: Lanes) {
    // SAFETY: there is room for sixteen numbers.
    unsafe { _mm512_storeu_ps(chunk.as_mut_ptr(), lanes) };
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn store_rest(rest: &mut [f32], lanes: Lanes) {
    // SAFETY: the mask has a bit a number; what it leaves out is not written.
    unsafe { _mm512_mask_storeu_ps(rest.as_mut_ptr(), first(rest.len()), lanes) };
}

loops!("avx512f,avx2,fma");
plain_loops!("avx512f,avx2,fma");
sums!("avx512f,avx2,fma", 8, [1 2 3 4 5 6 7]);

pub(in crate::simd) trait Load: Widen {
    /// Sixteen numbers, widened.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512F.
    unsafe fn load(chunk: &[Self; LANES]) -> __m512;

    /// Fewer than sixteen numbers, widened; the other lanes are zero.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_rest(rest: &[Self]) -> __m512 {
        // SAFETY: the caller's promise is handed on.
        unsafe { Self::load(&padded(rest)) }
    }
}

impl Load for f32 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(chunk: &[Self; LANES]) -> __m512 {
        // SAFETY: there are sixteen numbers to read.
        unsafe { _mm512_loadu_ps(chunk.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_rest(rest: &[Self]) -> __m512 {
        // SAFETY: the mask has a bit a number; what it leaves out is not read.
        unsafe { _mm512_maskz_loadu_ps(first(rest.len()), rest.as_ptr()) }
    }
}

impl Load for f16 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(chunk: &[Self; LANES]) -> __m512 {
        // SAFETY: there are sixteen numbers of two bytes to read.
        let halves = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
        if cfg!(miri) {
            // Miri does not know the conversion of sixteen.
            // SAFETY: there are sixteen numbers to read.
            return unsafe { _mm512_loadu_ps(chunk.map(f16::to_f32_const).as_ptr()) };
        }
        _mm512_cvtph_ps(halves)
    }
}

impl Load for i8 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(chunk: &[Self; LANES]) -> __m512 {
        // SAFETY: there are sixteen bytes to read.
        let bytes = unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) };
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
    }
}

/// A mask of the first `lanes` lanes, fewer than sixteen.
#[inline]
fn first(lanes: usize) -> __mmask16 {
    (1 << lanes) - 1
}
