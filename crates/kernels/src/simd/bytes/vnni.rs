//! The loops over bytes for processors with AVX-512 VNNI: sixty-four products per instruction.
//!
//! The instruction takes one side unsigned, from 0 to 255. So 128 is added to the bytes of one
//! side, which flips their highest bit, and 128 times the sum of the other side's bytes is
//! subtracted from the result.
//!
//! Every function here needs AVX-512F, AVX-512BW and AVX-512 VNNI; `bytes` calls none before
//! checking.

use std::arch::x86_64::*;

use crate::simd::Tile;
use crate::simd::bytes::blockwise::blockwise;
use crate::simd::bytes::{Block, Blocks, Prepared, SIDE, quantise_loop};

const CHUNK: usize = 64;

const BY_128: u32 = 7;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn bytes(chunk: &[i8; CHUNK]) -> __m512i {
    // SAFETY: there are sixty-four bytes to read.
    unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn rest_of(row: &[i8]) -> __m512i {
    let rest = row.as_chunks::<CHUNK>().1;
    // SAFETY: the mask has a bit a byte; what it leaves out is not read.
    unsafe { _mm512_maskz_loadu_epi8((1 << rest.len()) - 1, rest.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn raised(bytes: __m512i) -> __m512i {
    _mm512_xor_si512(bytes, _mm512_set1_epi8(i8::MIN))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let (a_chunks, a_rest) = a.as_chunks::<CHUNK>();
    let (b_chunks, b_rest) = b.as_chunks::<CHUNK>();
    let ones = _mm512_set1_epi8(1);
    let (mut products, mut sums) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        products = _mm512_dpbusd_epi32(products, raised(bytes(a)), bytes(b));
        sums = _mm512_dpbusd_epi32(sums, ones, bytes(b));
    }
    if !a_rest.is_empty() && !b_rest.is_empty() {
        products = _mm512_dpbusd_epi32(products, raised(rest_of(a)), rest_of(b));
        sums = _mm512_dpbusd_epi32(sums, ones, rest_of(b));
    }
    _mm512_reduce_add_epi32(_mm512_sub_epi32(products, _mm512_slli_epi32::<BY_128>(sums)))
}

/// The sums of the four numbers of each of four registers' quarters: a quarter holds one of each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn quarters([a, b, c, d]: [__m512i; SIDE]) -> __m512i {
    let left = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let right = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    _mm512_add_epi32(_mm512_unpacklo_epi64(left, right), _mm512_unpackhi_epi64(left, right))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn four_sums(lanes: [__m512i; SIDE]) -> [i32; SIDE] {
    let quarters = quarters(lanes);
    let halves =
        _mm512_add_epi32(quarters, _mm512_shuffle_i32x4::<0b11_10_11_10>(quarters, quarters));
    let all = _mm512_add_epi32(halves, _mm512_shuffle_i32x4::<0b01_01_01_01>(halves, halves));
    let mut out = [0; SIDE];
    // SAFETY: there is room for four numbers.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm512_castsi512_si128(all)) };
    out
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn prepare(rows: &[[&[i8]; SIDE]], dims: usize, prepared: &mut Prepared) {
    let ones = _mm512_set1_epi8(1);
    let rest = dims % CHUNK;
    // Every number is written below.
    prepared.sums.resize(rows.len(), [0; SIDE]);
    for (rows, out) in rows.iter().zip(&mut prepared.sums) {
        let mut lanes = [_mm512_setzero_si512(); SIDE];
        for at in (0..dims - rest).step_by(CHUNK) {
            // SAFETY: as in `tile`.
            let parts = unsafe { parts(starts(rows), at) };
            for (lanes, part) in lanes.iter_mut().zip(parts) {
                *lanes = _mm512_dpbusd_epi32(*lanes, ones, part);
            }
        }
        if rest > 0 {
            // SAFETY: as in `tile`.
            let parts = unsafe { last_parts(starts(rows), dims - rest, rest) };
            for (lanes, part) in lanes.iter_mut().zip(parts) {
                *lanes = _mm512_dpbusd_epi32(*lanes, ones, part);
            }
        }
        *out = four_sums(lanes);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn squares(block: Block<'_>, dims: usize) -> [i32; SIDE] {
    let rows = block.rows;
    let rest = dims % CHUNK;
    let mut lanes = [_mm512_setzero_si512(); SIDE];
    for at in (0..dims - rest).step_by(CHUNK) {
        // SAFETY: as in `tile`.
        let parts = unsafe { parts(starts(rows), at) };
        for (lanes, part) in lanes.iter_mut().zip(parts) {
            *lanes = _mm512_dpbusd_epi32(*lanes, raised(part), part);
        }
    }
    if rest > 0 {
        // SAFETY: as in `tile`.
        let parts = unsafe { last_parts(starts(rows), dims - rest, rest) };
        for (lanes, part) in lanes.iter_mut().zip(parts) {
            *lanes = _mm512_dpbusd_epi32(*lanes, raised(part), part);
        }
    }
    let mut squares = four_sums(lanes);
    for (square, sum) in squares.iter_mut().zip(block.sums) {
        *square = square.wrapping_sub(sum.wrapping_shl(BY_128));
    }
    squares
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile(a: Block<'_>, b: Block<'_>, dims: usize) -> __m512 {
    let mut sums = [[_mm512_setzero_si512(); SIDE]; SIDE];
    let (rows, columns) = (starts(a.rows), starts(b.rows));
    let rest = dims % CHUNK;
    for at in (0..dims - rest).step_by(CHUNK) {
        // SAFETY: rows have `dims` bytes each, which `ByteRows` has seen to, and `at` is a chunk or more
        // before their end.
        let (rows, columns) = unsafe { (parts(rows, at), parts(columns, at)) };
        add_row(&mut sums[0], raised(rows[0]), columns);
        add_row(&mut sums[1], raised(rows[1]), columns);
        add_row(&mut sums[2], raised(rows[2]), columns);
        add_row(&mut sums[3], raised(rows[3]), columns);
    }
    if rest > 0 {
        let at = dims - rest;
        // SAFETY: as above; `rest` bytes follow `at`.
        let (rows, columns) =
            unsafe { (last_parts(rows, at, rest), last_parts(columns, at, rest)) };
        add_row(&mut sums[0], raised(rows[0]), columns);
        add_row(&mut sums[1], raised(rows[1]), columns);
        add_row(&mut sums[2], raised(rows[2]), columns);
        add_row(&mut sums[3], raised(rows[3]), columns);
    }
    scaled(&sums, a, b)
}

/// The products of four rows with themselves; six are mirror images of others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile_with_itself(a: Block<'_>, dims: usize) -> __m512 {
    let mut sums = [[_mm512_setzero_si512(); SIDE]; SIDE];
    let rows = starts(a.rows);
    let rest = dims % CHUNK;
    for at in (0..dims - rest).step_by(CHUNK) {
        // SAFETY: as in `tile`.
        add_upper(&mut sums, unsafe { parts(rows, at) });
    }
    if rest > 0 {
        // SAFETY: as in `tile`.
        add_upper(&mut sums, unsafe { last_parts(rows, dims - rest, rest) });
    }
    let tile = scaled(&sums, a, a);
    _mm512_mask_blend_ps(ON_AND_ABOVE_DIAGONAL, turned(tile), tile)
}

/// The numbers of a tile in row `i` and a column from `i` on.
const ON_AND_ABOVE_DIAGONAL: __mmask16 = 0b1000_1100_1110_1111;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add_upper(sums: &mut [[__m512i; SIDE]; SIDE], rows: [__m512i; SIDE]) {
    add_row(&mut sums[0], raised(rows[0]), rows);
    let [_, a, b, c] = rows;
    let second = raised(a);
    sums[1][1] = _mm512_dpbusd_epi32(sums[1][1], second, a);
    sums[1][2] = _mm512_dpbusd_epi32(sums[1][2], second, b);
    sums[1][3] = _mm512_dpbusd_epi32(sums[1][3], second, c);
    let third = raised(b);
    sums[2][2] = _mm512_dpbusd_epi32(sums[2][2], third, b);
    sums[2][3] = _mm512_dpbusd_epi32(sums[2][3], third, c);
    sums[3][3] = _mm512_dpbusd_epi32(sums[3][3], raised(c), c);
}

/// The sums of sixteen registers, less 128 times the sums of the columns' bytes, times the factors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn scaled(sums: &[[__m512i; SIDE]; SIDE], a: Block<'_>, b: Block<'_>) -> __m512 {
    let too_much = _mm512_slli_epi32::<BY_128>(_mm512_broadcast_i32x4(four_of_whole(b.sums)));
    let products = _mm512_cvtepi32_ps(_mm512_sub_epi32(sixteen_sums(sums), too_much));
    let each_four_times = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    let of_rows = _mm512_permutexvar_ps(each_four_times, _mm512_castps128_ps512(four(a.factors)));
    _mm512_mul_ps(products, _mm512_mul_ps(of_rows, _mm512_broadcast_f32x4(four(b.factors))))
}

#[inline(always)]
fn starts(rows: &[&[i8]; SIDE]) -> [*const i8; SIDE] {
    [rows[0].as_ptr(), rows[1].as_ptr(), rows[2].as_ptr(), rows[3].as_ptr()]
}

/// The sixty-four bytes of each row from `at` on.
///
/// # Safety
///
/// Every row has as many.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn parts([a, b, c, d]: [*const i8; SIDE], at: usize) -> [__m512i; SIDE] {
    // SAFETY: the caller's promise.
    unsafe {
        [
            _mm512_loadu_si512(a.add(at).cast()),
            _mm512_loadu_si512(b.add(at).cast()),
            _mm512_loadu_si512(c.add(at).cast()),
            _mm512_loadu_si512(d.add(at).cast()),
        ]
    }
}

/// The `rest` bytes of each row from `at` on, fewer than sixty-four; the others are zero.
///
/// # Safety
///
/// Every row has as many.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn last_parts([a, b, c, d]: [*const i8; SIDE], at: usize, rest: usize) -> [__m512i; SIDE] {
    let mask = (1 << rest) - 1;
    // SAFETY: the caller's promise; what the mask leaves out is not read.
    unsafe {
        [
            _mm512_maskz_loadu_epi8(mask, a.add(at)),
            _mm512_maskz_loadu_epi8(mask, b.add(at)),
            _mm512_maskz_loadu_epi8(mask, c.add(at)),
            _mm512_maskz_loadu_epi8(mask, d.add(at)),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add_row(sums: &mut [__m512i; SIDE], row: __m512i, columns: [__m512i; SIDE]) {
    sums[0] = _mm512_dpbusd_epi32(sums[0], row, columns[0]);
    sums[1] = _mm512_dpbusd_epi32(sums[1], row, columns[1]);
    sums[2] = _mm512_dpbusd_epi32(sums[2], row, columns[2]);
    sums[3] = _mm512_dpbusd_epi32(sums[3], row, columns[3]);
}

/// Two quarters a register, each the sum of two of either.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn halves(a: __m512i, b: __m512i) -> __m512i {
    let low = _mm512_shuffle_i32x4::<0b01_00_01_00>(a, b);
    _mm512_add_epi32(low, _mm512_shuffle_i32x4::<0b11_10_11_10>(a, b))
}

/// The sums of the numbers of sixteen registers: each step combines the halves of two registers in
/// one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sixteen_sums(sums: &[[__m512i; SIDE]; SIDE]) -> __m512i {
    let upper = halves(quarters(sums[0]), quarters(sums[1]));
    let lower = halves(quarters(sums[2]), quarters(sums[3]));
    let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(upper, lower);
    _mm512_add_epi32(even, _mm512_shuffle_i32x4::<0b11_01_11_01>(upper, lower))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn four(numbers: &[f32; SIDE]) -> __m128 {
    // SAFETY: there are four numbers to read.
    unsafe { _mm_loadu_ps(numbers.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn four_of_whole(numbers: &[i32; SIDE]) -> __m128i {
    // SAFETY: there are four numbers to read.
    unsafe { _mm_loadu_si128(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn zeros() -> __m512 {
    _mm512_setzero_ps()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn load(tile: &Tile) -> __m512 {
    // SAFETY: there are sixteen numbers to read.
    unsafe { _mm512_loadu_ps(tile.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn store(lanes: __m512) -> Tile {
    let mut tile = [0.0; SIDE * SIDE];
    // SAFETY: there is room for sixteen numbers.
    unsafe { _mm512_storeu_ps(tile.as_mut_ptr(), lanes) };
    tile
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn larger(tile: __m512, other: __m512) -> __m512 {
    _mm512_max_ps(tile, other)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn turned(tile: __m512) -> __m512 {
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_ps(order, tile)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tallest(tile: __m512) -> [f32; SIDE] {
    let two = larger(tile, _mm512_shuffle_f32x4::<0b11_10_11_10>(tile, tile));
    let one = larger(two, _mm512_shuffle_f32x4::<0b01_01_01_01>(two, two));
    let mut out = [0.0; SIDE];
    // SAFETY: there is room for four numbers.
    unsafe {
        // Of two zeros the instruction returns the second, which is +0.
        let one = _mm_max_ps(_mm512_castps512_ps128(one), _mm_setzero_ps());
        _mm_storeu_ps(out.as_mut_ptr(), one);
    }
    out
}

blockwise!("avx512f,avx512bw,avx512vnni");
