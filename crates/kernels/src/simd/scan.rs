//! Which of many rows of signed bytes may reach a query: sixty-four rows against one query or four
//! at a time, in whole numbers, compared with a bound at the end.
//!
//! Rows are interleaved sixteen at a time: four numbers of the first, four of the second and so on,
//! then the next four of each. The processor's product of bytes takes this order, and no sum has to
//! be folded. That product takes a query's bytes unsigned, so queries are stored 128 higher, and
//! each row's `bias` subtracts what that adds to its sum.

#[cfg(target_arch = "x86_64")]
use super::Width;
#[cfg(target_arch = "x86_64")]
use super::width;

/// Rows of a block, which lie side by side.
pub const BLOCK: usize = 16;
/// Rows that are compared together.
pub const TILE: usize = 4 * BLOCK;
/// Most queries that are compared together.
pub const PROBES: usize = 4;
/// Consecutive numbers of a row.
pub const GROUP: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct Tile<'t> {
    pub bytes: &'t [i8],
    /// Subtracted from each sum.
    pub biases: &'t [i32; TILE],
    pub scales: &'t [f32; TILE],
    pub errors: &'t [f32; TILE],
}

#[derive(Debug, Clone, Copy)]
pub struct Probe<'p> {
    /// Its numbers, each raised by 128.
    pub bytes: &'p [u8],
    /// The factor of a row's error.
    pub gain: f32,
    pub least: f32,
}

pub type Sums<const N: usize> = [[i32; TILE]; N];

/// For each query, as bits, the rows with `sum · scale + error · gain` of at least its least.
/// `sums` are returned if given. Panics if rows and queries differ in length, or if the length is
/// not a multiple of four.
#[inline]
pub fn reach<const N: usize>(
    tile: &Tile<'_>,
    probes: &[Probe<'_>; N],
    sums: Option<&mut Sums<N>>,
) -> [u64; N] {
    let dims = tile.bytes.len() / TILE;
    assert!(dims.is_multiple_of(GROUP) && tile.bytes.len() == dims * TILE, "whole groups");
    assert!(probes.iter().all(|probe| probe.bytes.len() == dims), "as long as the rows");
    #[cfg(target_arch = "x86_64")]
    if width() == Width::Avx512 && super::bytes::has_vnni() {
        // SAFETY: the processor was just found to have both, and lengths were checked above.
        return unsafe { vnni(tile, probes, dims / GROUP, sums) };
    }
    #[cfg(target_arch = "x86_64")]
    if width() >= Width::Avx2 {
        // SAFETY: `width` names only what this processor was found to have.
        return unsafe { avx2(tile, probes, dims / GROUP, sums) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        if super::bytes::has_sdot() {
            // SAFETY: the processor was just found to have `sdot`, and lengths were checked above.
            return unsafe { by_sdot(tile, probes, dims / GROUP, sums) };
        }
        // SAFETY: every processor of 64 bits has what it needs, and lengths were checked above.
        return unsafe { by_neon(tile, probes, dims / GROUP, sums) };
    }
    #[cfg(not(target_arch = "aarch64"))]
    plain(tile, probes, dims / GROUP, sums)
}

/// Defines a loop for processors with these features, over a function that adds the products of
/// four bytes with four to each of four numbers. Sixteen sums stay in registers; the query's bytes
/// are taken with their signs, so no bias has to be subtracted.
#[cfg(target_arch = "aarch64")]
macro_rules! by_groups {
    ($name:ident, $features:literal, $add_product:path) => {
        #[target_feature(enable = $features)]
        fn $name<const N: usize>(
            tile: &Tile<'_>,
            probes: &[Probe<'_>; N],
            groups: usize,
            mut told: Option<&mut Sums<N>>,
        ) -> [u64; N] {
            use std::arch::aarch64::*;
            const LANES: usize = 4;
            const REGISTERS: usize = BLOCK / LANES;
            // SAFETY: there are four numbers to read.
            let places = unsafe { vld1q_u32([1_u32, 2, 4, 8].as_ptr()) };
            let mut found = [0; N];
            for (number, block) in tile.bytes.chunks_exact(groups * GROUP * BLOCK).enumerate() {
                let mut sums = [[vdupq_n_s32(0); REGISTERS]; N];
                for (group, rows) in block.as_chunks::<{ GROUP * BLOCK }>().0.iter().enumerate() {
                    // SAFETY: each part of a group has sixteen bytes to read.
                    let load = |part: &[i8; GROUP * LANES]| unsafe { vld1q_s8(part.as_ptr()) };
                    let parts = rows.as_chunks().0;
                    let rows = [load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3])];
                    for (sums, probe) in sums.iter_mut().zip(probes) {
                        let word =
                            u32::from_ne_bytes(probe.bytes.as_chunks().0[group]) ^ 0x8080_8080;
                        let query = vreinterpretq_s8_u32(vdupq_n_u32(word));
                        for (sum, row) in sums.iter_mut().zip(rows) {
                            *sum = $add_product(*sum, row, query);
                        }
                    }
                }
                for (at, ((found, sums), probe)) in
                    found.iter_mut().zip(sums).zip(probes).enumerate()
                {
                    let (gain, least) = (vdupq_n_f32(probe.gain), vdupq_n_f32(probe.least));
                    for (place, sum) in sums.into_iter().enumerate() {
                        let row = number * BLOCK + place * LANES;
                        if let Some(told) = told.as_deref_mut() {
                            // SAFETY: four numbers follow the first of each register's rows.
                            unsafe { vst1q_s32(told[at][row..].as_mut_ptr(), sum) };
                        }
                        // SAFETY: four numbers follow the first of each register's rows.
                        let (scales, errors) = unsafe {
                            (
                                vld1q_f32(tile.scales[row..].as_ptr()),
                                vld1q_f32(tile.errors[row..].as_ptr()),
                            )
                        };
                        let slack = vmulq_f32(errors, gain);
                        let reached =
                            vcgeq_f32(vfmaq_f32(slack, vcvtq_f32_s32(sum), scales), least);
                        let bits = vandq_u32(reached, places);
                        *found |= u64::from(vaddvq_u32(bits)) << row;
                    }
                }
            }
            found
        }
    };
}

#[cfg(target_arch = "aarch64")]
by_groups!(by_sdot, "neon,dotprod", super::bytes::neon::sdot::add_product);
#[cfg(target_arch = "aarch64")]
by_groups!(by_neon, "neon", products_of_groups);

/// Adds the products of four bytes with four to each of four numbers.
#[cfg(target_arch = "aarch64")]
#[inline]
#[target_feature(enable = "neon")]
fn products_of_groups(
    sum: std::arch::aarch64::int32x4_t,
    a: std::arch::aarch64::int8x16_t,
    b: std::arch::aarch64::int8x16_t,
) -> std::arch::aarch64::int32x4_t {
    use std::arch::aarch64::*;
    let low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    let high = vpaddlq_s16(vmull_high_s8(a, b));
    vaddq_s32(sum, vpaddq_s32(low, high))
}

/// Eight sums of sixteen rows stay in registers. The product of bytes adds two of them in sixteen
/// bits, which do not overflow if no byte exceeds 127 in size: so the query's bytes are taken with
/// their signs, and the signs are moved to the row's bytes, because one side must be unsigned. Then
/// no bias has to be subtracted.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<const N: usize>(
    tile: &Tile<'_>,
    probes: &[Probe<'_>; N],
    groups: usize,
    mut told: Option<&mut Sums<N>>,
) -> [u64; N] {
    use std::arch::x86_64::*;
    const HALF: usize = BLOCK / 2;
    let bytes = tile.bytes.as_ptr();
    let mut found = [0; N];
    for block in 0..TILE / BLOCK {
        let mut sums = [[_mm256_setzero_si256(); 2]; N];
        let ones = _mm256_set1_epi16(1);
        // SAFETY: a block has `groups` times 64 bytes, a query as many times four; each of the arrays
        // holds four times sixteen numbers. Loads need no alignment.
        unsafe {
            for group in 0..groups {
                let at = (block * groups + group) * GROUP * BLOCK;
                let rows = [
                    _mm256_loadu_si256(bytes.add(at).cast()),
                    _mm256_loadu_si256(bytes.add(at + GROUP * HALF).cast()),
                ];
                for (sums, probe) in sums.iter_mut().zip(probes) {
                    let word = probe.bytes.as_ptr().add(group * GROUP).cast::<u32>();
                    let signed = (word.read_unaligned() ^ 0x8080_8080).cast_signed();
                    let query = _mm256_set1_epi32(signed);
                    let size = _mm256_abs_epi8(query);
                    for (sum, row) in sums.iter_mut().zip(rows) {
                        let pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(row, query));
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
                    }
                }
            }
            for (at, ((found, sums), probe)) in found.iter_mut().zip(sums).zip(probes).enumerate() {
                let (gain, least) = (_mm256_set1_ps(probe.gain), _mm256_set1_ps(probe.least));
                for (half, sum) in sums.into_iter().enumerate() {
                    let row = block * BLOCK + half * HALF;
                    if let Some(told) = told.as_deref_mut() {
                        _mm256_storeu_si256(told[at].as_mut_ptr().add(row).cast(), sum);
                    }
                    let scales = _mm256_loadu_ps(tile.scales.as_ptr().add(row));
                    let errors = _mm256_loadu_ps(tile.errors.as_ptr().add(row));
                    let slack = _mm256_mul_ps(errors, gain);
                    let reached = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scales, slack);
                    let mask = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(reached, least));
                    *found |= u64::from(mask.cast_unsigned()) << row;
                }
            }
        }
    }
    found
}

#[cfg_attr(target_arch = "aarch64", allow(dead_code, reason = "what others are held against"))]
#[inline(always)]
fn plain<const N: usize>(
    tile: &Tile<'_>,
    probes: &[Probe<'_>; N],
    groups: usize,
    mut told: Option<&mut Sums<N>>,
) -> [u64; N] {
    let mut found = [0; N];
    for (at, (found, probe)) in found.iter_mut().zip(probes).enumerate() {
        for (number, block) in tile.bytes.chunks_exact(groups * GROUP * BLOCK).enumerate() {
            let mut sums = [0_i32; BLOCK];
            let lanes = block.as_chunks::<{ GROUP * BLOCK }>().0;
            for (lanes, query) in lanes.iter().zip(probe.bytes.as_chunks::<GROUP>().0) {
                for (sum, row) in sums.iter_mut().zip(lanes.as_chunks::<GROUP>().0) {
                    for (&number, &of_query) in row.iter().zip(query) {
                        // Far from overflow, so no check at each step is needed.
                        let product = i32::from(number).wrapping_mul(i32::from(of_query));
                        *sum = sum.wrapping_add(product);
                    }
                }
            }
            for (lane, sum) in sums.iter().enumerate() {
                let row = number * BLOCK + lane;
                let sum = sum + tile.biases[row];
                if let Some(told) = told.as_deref_mut() {
                    told[at][row] = sum;
                }
                let reached = sum as f32 * tile.scales[row] + tile.errors[row] * probe.gain;
                *found |= u64::from(reached >= probe.least) << row;
            }
        }
    }
    found
}

/// Several queries are in the cache with the rows, and each load of a query serves four blocks. A
/// single query waits for memory, which is read fastest in order: block after block.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
fn vnni<const N: usize>(
    tile: &Tile<'_>,
    probes: &[Probe<'_>; N],
    groups: usize,
    mut told: Option<&mut Sums<N>>,
) -> [u64; N] {
    const BLOCKS: usize = TILE / BLOCK;
    let mut found = [0; N];
    if N > 1 {
        vnni_blocks::<N, BLOCKS>(tile, probes, (0, groups), told, &mut found);
    } else {
        for block in 0..BLOCKS {
            let told = told.as_deref_mut();
            vnni_blocks::<N, 1>(tile, probes, (block, groups), told, &mut found);
        }
    }
    found
}

/// The rows of `B` blocks. A sum of sixteen rows for each block and query stays in registers; each
/// load of a row serves all queries.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn vnni_blocks<const N: usize, const B: usize>(
    tile: &Tile<'_>,
    probes: &[Probe<'_>; N],
    (first, groups): (usize, usize),
    mut told: Option<&mut Sums<N>>,
    found: &mut [u64; N],
) {
    use std::arch::x86_64::*;
    let mut sums = [[_mm512_setzero_si512(); B]; N];
    let (bytes, biases) = (tile.bytes.as_ptr(), tile.biases.as_ptr());
    // SAFETY: a block has `groups` times 64 bytes, a query as many times four; each of the arrays
    // holds four times sixteen numbers, and there are `B` blocks from the first on. Loads need no alignment.
    unsafe {
        for number in 0..B {
            let bias = _mm512_loadu_si512(biases.add((first + number) * BLOCK).cast());
            for sums in &mut sums {
                sums[number] = bias;
            }
        }
        for group in 0..groups {
            let mut rows = [_mm512_setzero_si512(); B];
            for (number, row) in rows.iter_mut().enumerate() {
                let at = ((first + number) * groups + group) * GROUP * BLOCK;
                *row = _mm512_loadu_si512(bytes.add(at).cast());
            }
            for (sums, probe) in sums.iter_mut().zip(probes) {
                let word = probe.bytes.as_ptr().add(group * GROUP).cast::<i32>();
                let query = _mm512_set1_epi32(word.read_unaligned());
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_dpbusd_epi32(*sum, query, row);
                }
            }
        }
        for (at, ((found, sums), probe)) in found.iter_mut().zip(sums).zip(probes).enumerate() {
            let (gain, least) = (_mm512_set1_ps(probe.gain), _mm512_set1_ps(probe.least));
            for (number, sum) in sums.into_iter().enumerate() {
                let row = (first + number) * BLOCK;
                if let Some(told) = told.as_deref_mut() {
                    _mm512_storeu_si512(told[at].as_mut_ptr().add(row).cast(), sum);
                }
                let scales = _mm512_loadu_ps(tile.scales.as_ptr().add(row));
                let errors = _mm512_loadu_ps(tile.errors.as_ptr().add(row));
                let slack = _mm512_mul_ps(errors, gain);
                let reached = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scales, slack);
                let mask = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(reached, least);
                *found |= u64::from(mask) << row;
            }
        }
    }
}
