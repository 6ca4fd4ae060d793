//! How registers of AVX-512 are filled from numbers of each type.

use std::arch::x86_64::*;

use half::f16;

use crate::simd::LANES;

/// Numbers that a register is filled from.
pub(in crate::simd) trait Load: Copy {
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
    unsafe fn load_rest(rest: &[Self]) -> __m512;
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
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_rest(rest: &[Self]) -> __m512 {
        let mut chunk = [f16::ZERO; LANES];
        chunk[..rest.len()].copy_from_slice(rest);
        // SAFETY: the caller's promise is handed on.
        unsafe { Self::load(&chunk) }
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

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_rest(rest: &[Self]) -> __m512 {
        let mut chunk = [0; LANES];
        chunk[..rest.len()].copy_from_slice(rest);
        // SAFETY: the caller's promise is handed on.
        unsafe { Self::load(&chunk) }
    }
}

/// A mask of the first `lanes` lanes, fewer than sixteen.
#[inline]
pub(super) fn first(lanes: usize) -> __mmask16 {
    (1 << lanes) - 1
}
