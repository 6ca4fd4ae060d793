//! How many fused multiply-adds of f32 this core does at most, measured: chains of them that wait
//! for nothing but each other. What a kernel reaches is told as a share of it.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use cognate_kernels::simd::{Width, widest};

/// Rounds of all chains.
const ROUNDS: usize = 200_000;
/// Twice as many on ARM, whose fast cores begin four multiply-adds a cycle and have registers for them.
const CHAINS: usize = if cfg!(target_arch = "aarch64") { 24 } else { 12 };

/// Multiply-adds a nanosecond at the widest.
pub fn multiply_adds_per_nano() -> f64 {
    let best = (0..9).map(|_| once()).fold(f64::INFINITY, f64::min);
    (lanes() * CHAINS * ROUNDS) as f64 / (best * 1e9)
}

fn lanes() -> usize {
    match widest() {
        Width::Avx512 => 16,
        Width::Avx2 => 8,
        Width::Least if cfg!(target_arch = "aarch64") => 4,
        Width::Least => 1,
    }
}

fn once() -> f64 {
    let started = Instant::now();
    match widest() {
        // SAFETY: `widest` names what the processor has.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { chains_of_16() },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { chains_of_8() },
        // SAFETY: every processor of 64 bits has NEON.
        #[cfg(target_arch = "aarch64")]
        _ => unsafe { chains_of_4() },
        #[cfg(not(target_arch = "aarch64"))]
        _ => chains_of_1(),
    }
    started.elapsed().as_secs_f64()
}

#[cfg(not(target_arch = "aarch64"))]
fn chains_of_1() {
    let mut sums = [1.0_f32; CHAINS];
    for _ in 0..ROUNDS {
        sums.iter_mut().for_each(|sum| *sum = sum.mul_add(black_box(0.999), 0.001));
    }
    black_box(sums);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn chains_of_4() {
    use std::arch::aarch64::{vdupq_n_f32, vfmaq_f32};
    let (factor, more) = (vdupq_n_f32(black_box(0.999)), vdupq_n_f32(black_box(0.001)));
    let mut sums = [factor; CHAINS];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = vfmaq_f32(more, *sum, factor);
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn chains_of_16() {
    use std::arch::x86_64::*;
    let (factor, more) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.001)));
    let mut sums = [factor; CHAINS];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, factor, more);
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn chains_of_8() {
    use std::arch::x86_64::*;
    let (factor, more) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.001)));
    let mut sums = [factor; CHAINS];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, factor, more);
        }
    }
    black_box(sums);
}
