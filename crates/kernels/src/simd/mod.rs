//! The loops of every score, written once for each register width and chosen once per process.
//!
//! There is ONE canonical order of additions: sixteen lanes of f32, element `i` to lane `i mod 16`
//! by fused multiply-add, then a fixed tree over the lanes. A register of AVX-512 holds the sixteen
//! lanes, two of AVX2 or four of NEON do, and plain code has an array of them, so all give the same
//! bits. Tiles only change which products are computed at the same time, never how one is added up.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod bytes;
mod kinds;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
mod loops;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg_attr(
    any(target_arch = "aarch64", target_arch = "wasm32"),
    allow(dead_code, unused_imports, reason = "most have a loop of their own there")
)]
mod plain;
pub mod scan;
mod sort;
pub mod sums;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
mod tiles;
#[cfg(target_arch = "wasm32")]
mod wasm;

use std::sync::atomic::{AtomicU8, Ordering};

use half::f16;
pub use kinds::{BLOCK, Kinds, capitals, kinds, push_places};
/// The loops of every processor that a program for this target can meet.
#[cfg(target_arch = "aarch64")]
use neon as least;
#[cfg(not(any(target_arch = "aarch64", target_arch = "wasm32")))]
use plain as least;
pub use sort::sort;
#[cfg(target_arch = "wasm32")]
use wasm as least;

use crate::simd::sums::Sum;

pub const LANES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Width {
    /// For every processor of a family: plain code, NEON on 64-bit ARM, 128-bit vectors in
    /// WebAssembly.
    Least = 1,
    /// AVX2 with FMA and F16C.
    Avx2 = 2,
    Avx512 = 3,
}

/// 0 until the processor was examined.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

#[inline]
pub fn width() -> Width {
    match CHOSEN.load(Ordering::Relaxed) {
        1 => Width::Least,
        2 => Width::Avx2,
        3 => Width::Avx512,
        _ => {
            let widest = widest();
            CHOSEN.store(widest as u8, Ordering::Relaxed);
            widest
        }
    }
}

pub fn widest() -> Width {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        if wide && is_x86_feature_detected!("avx512f") {
            return Width::Avx512;
        }
        if wide {
            return Width::Avx2;
        }
    }
    Width::Least
}

pub fn name() -> &'static str {
    match width() {
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 if bytes::has_vnni() => "AVX-512 with VNNI",
        Width::Avx512 => "AVX-512",
        Width::Avx2 => "AVX2",
        #[cfg(target_arch = "aarch64")]
        Width::Least if bytes::has_sdot() => "NEON with dot products",
        #[cfg(target_arch = "aarch64")]
        Width::Least => "NEON",
        #[cfg(target_arch = "wasm32")]
        Width::Least => "WebAssembly's 128-bit vectors",
        #[cfg(not(any(target_arch = "aarch64", target_arch = "wasm32")))]
        Width::Least => "plain code",
    }
}

/// From now on uses `wanted`, or the widest below it that this processor supports.
pub fn limit(wanted: Width) {
    CHOSEN.store(wanted.min(widest()) as u8, Ordering::Relaxed);
}

/// A number that rows are made of.
#[cfg(target_arch = "x86_64")]
#[expect(private_bounds, reason = "how registers are filled is nobody else's business")]
pub trait Element: Widen + avx2::Load + avx512::Load {}

#[cfg(target_arch = "wasm32")]
#[expect(private_bounds, reason = "how registers are filled is nobody else's business")]
pub trait Element: Widen + wasm::Load {}

#[cfg(target_arch = "aarch64")]
#[expect(private_bounds, reason = "how registers are filled is nobody else's business")]
pub trait Element: Widen + neon::Load {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32")))]
pub trait Element: Widen {}

impl Element for f32 {}
impl Element for f16 {}
impl Element for i8 {}

pub trait Widen: Copy {
    const ZERO: Self;

    fn widen(self) -> f32;
}

impl Widen for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Widen for f16 {
    const ZERO: Self = Self::ZERO;

    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32_const()
    }
}

impl Widen for i8 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }
}

macro_rules! dispatch {
    ($name:ident($($arg:expr),+)) => {
        match width() {
            // SAFETY: `width` names only what this processor was found to have.
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => unsafe { avx512::$name($($arg),+) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => unsafe { avx2::$name($($arg),+) },
            // SAFETY: every processor of the family has what these need.
            #[allow(unused_unsafe, reason = "plain code needs nothing")]
            _ => unsafe { least::$name($($arg),+) },
        }
    };
}

/// `Σ a_i b_i` over the elements both have, in the canonical order.
#[inline]
pub fn dot<A: Element, B: Element>(a: &[A], b: &[B]) -> f32 {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    dispatch!(dot(a, b))
}

/// Returns `Σ (a_i - b_i)²` over the elements that both slices have, in the canonical order.
#[inline]
pub fn squared_distance<A: Element, B: Element>(a: &[A], b: &[B]) -> f32 {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    dispatch!(squared_distance(a, b))
}

/// `sum_i += weight · row_i` for each row in turn, up to the length of the shortest list.
#[inline]
pub fn add_scaled<A: Element, const N: usize>(sum: &mut [f32], weights: [f32; N], rows: [&[A]; N]) {
    let length = rows.iter().fold(sum.len(), |length, row| length.min(row.len()));
    let (sum, rows) = (&mut sum[..length], rows.map(|row| &row[..length]));
    dispatch!(add_scaled(sum, weights, rows));
}

/// Returns `a · b`, `a · a` and `b · b` of two sums, each in the canonical order. Panics if the rows of
/// one sum are longer than those of the other, or if a row's number does not exist.
pub fn products_of_sums(a: Sum<'_>, b: Sum<'_>) -> [f32; 3] {
    let dims = a.rows.dims();
    assert!(dims == b.rows.dims(), "rows of the same length");
    dispatch!(products_of_sums(a, b, dims))
}

/// `error_i += slope · row_i` and then `row_i += slope · hidden_i`, in one pass up to the length of
/// the shortest row: a step of gradient descent on a product, for both its sides.
#[inline]
pub fn exchange(slope: f32, row: &mut [f32], hidden: &[f32], error: &mut [f32]) {
    let length = row.len().min(hidden.len()).min(error.len());
    let (row, hidden, error) = (&mut row[..length], &hidden[..length], &mut error[..length]);
    dispatch!(exchange(slope, row, hidden, error));
}

/// Numbers are independent of each other, so the compiler may use any registers.
#[inline(always)]
fn exchange_loop(
    slope: f32,
    row: &mut [f32],
    hidden: &[f32],
    error: &mut [f32],
    fused: impl Fn(f32, f32, f32) -> f32,
) {
    for ((row, hidden), error) in row.iter_mut().zip(hidden).zip(error) {
        *error = fused(*row, slope, *error);
        *row = fused(*hidden, slope, *row);
    }
}

/// Rows of equal length, anywhere in memory.
pub trait Rows: Copy {
    fn count(self) -> usize;

    /// Panics if there is no such row.
    fn row(&self, at: usize) -> &[f32];
}

/// Rows that lie one after another.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'r> {
    pub values: &'r [f32],
    pub dims: usize,
}

impl Rows for Packed<'_> {
    #[inline(always)]
    fn count(self) -> usize {
        self.values.len() / self.dims
    }

    #[inline(always)]
    fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.dims..(at + 1) * self.dims]
    }
}

/// Rows of equal length, by their indices in a table and, after its last row, in another.
#[derive(Debug)]
pub struct Picked<'r, A> {
    pub tables: [&'r [A]; 2],
    pub numbers: &'r [u32],
    pub dims: usize,
}

impl<A> Clone for Picked<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Picked<'_, A> {}

impl<'r, A> Picked<'r, A> {
    /// The row of a number.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline(always)]
    pub fn numbered(&self, number: u32) -> &'r [A] {
        let start = number as usize * self.dims;
        match start.checked_sub(self.tables[0].len()) {
            None => &self.tables[0][start..start + self.dims],
            Some(start) => &self.tables[1][start..start + self.dims],
        }
    }
}

impl Rows for &[&[f32]] {
    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn row(&self, at: usize) -> &[f32] {
        self[at]
    }
}

/// Four rows from index `at` on; the last one before `end` is repeated if there are fewer.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
#[inline(always)]
fn four<R: Rows>(rows: &R, at: usize, end: usize, dims: usize) -> [&[f32]; 4] {
    let last = end - 1;
    [
        &rows.row(at)[..dims],
        &rows.row((at + 1).min(last))[..dims],
        &rows.row((at + 2).min(last))[..dims],
        &rows.row((at + 3).min(last))[..dims],
    ]
}

/// Writes `a_i · b_j` for all rows, a row of `out` for each row of `a`. Panics if a row is shorter
/// than `dims`, or if `out` does not have the length of all products.
pub fn products<A: Rows, B: Rows>(a: A, b: B, dims: usize, out: &mut [f32]) {
    assert_eq!(out.len(), a.count() * b.count(), "a number a product");
    if !out.is_empty() {
        dispatch!(products(a, b, dims, out));
    }
}

/// Writes `a_i · a_j` for all rows, each product computed once. Panics as [`products`].
pub fn gram<A: Rows>(a: A, dims: usize, out: &mut [f32]) {
    assert_eq!(out.len(), a.count() * a.count(), "a number a product");
    if !out.is_empty() {
        dispatch!(gram(a, dims, out));
    }
}

type Tile = [f32; 16];

const COLUMNS: usize = 16;

/// For each column of a matrix, whose rows are as long as `out`, the maximum of some rows, at least
/// 0. Panics if there is no such row.
pub fn largest_of_rows(matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    dispatch!(largest_of_rows(matrix, rows, out));
}

/// A maximum is the same in any order, so the compiler may use any registers.
#[inline(always)]
fn largest_of_rows_loop(matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    let from =
        by_columns::<COLUMNS>(0, out.len(), |at| largest_of::<COLUMNS>(matrix, rows, at, out));
    let from = by_columns::<4>(from, out.len(), |at| largest_of::<4>(matrix, rows, at, out));
    by_columns::<1>(from, out.len(), |at| largest_of::<1>(matrix, rows, at, out));
}

/// Calls a function for every `N` columns from `from` on; returns the first column of an incomplete
/// group.
#[inline(always)]
fn by_columns<const N: usize>(from: usize, end: usize, mut each: impl FnMut(usize)) -> usize {
    let mut at = from;
    while at + N <= end {
        each(at);
        at += N;
    }
    at
}

#[inline(always)]
fn largest_of<const N: usize>(matrix: &[f32], rows: &[u32], at: usize, out: &mut [f32]) {
    let mut best = [0.0_f32; N];
    for &row in rows {
        let numbers = &matrix[row as usize * out.len() + at..][..N];
        for (best, &number) in best.iter_mut().zip(numbers) {
            *best = if number > *best { number } else { *best };
        }
    }
    out[at..at + N].copy_from_slice(&best);
}

/// Partial sums that [`sum_of_rows`] adds in turn.
const PARTS: usize = 8;

/// For each column of a matrix, whose rows are as long as `out`, the sum of some rows: row after
/// row to one of eight partial sums in turn, then these in f64, whatever the width. Panics if there
/// is no such row.
pub fn sum_of_rows(matrix: &[f32], rows: &[u32], out: &mut [f64]) {
    dispatch!(sum_of_rows(matrix, rows, out));
}

#[inline(always)]
fn sum_of_rows_loop(matrix: &[f32], rows: &[u32], out: &mut [f64]) {
    let from = by_columns::<COLUMNS>(0, out.len(), |at| sum_of::<COLUMNS>(matrix, rows, at, out));
    let from = by_columns::<4>(from, out.len(), |at| sum_of::<4>(matrix, rows, at, out));
    by_columns::<1>(from, out.len(), |at| sum_of::<1>(matrix, rows, at, out));
}

#[inline(always)]
fn sum_of<const N: usize>(matrix: &[f32], rows: &[u32], at: usize, out: &mut [f64]) {
    let mut sums = [0.0_f64; N];
    for first in 0..PARTS.min(rows.len()) {
        let mut part = [0.0_f32; N];
        for &row in rows[first..].iter().step_by(PARTS) {
            let numbers = &matrix[row as usize * out.len() + at..][..N];
            part.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += f64::from(part));
    }
    out[at..at + N].copy_from_slice(&sums);
}

/// The sum of a matrix's rows, each times its weight, in f64: the image of the weights under a
/// symmetric matrix. Every sum is made row after row, whatever the width. Panics if the numbers of
/// rows and weights differ, or if a row is not as long as `out`.
pub fn image(matrix: &[f32], weights: &[f64], out: &mut [f64]) {
    assert_eq!(matrix.len(), weights.len() * out.len(), "a row a weight");
    out.fill(0.0);
    if !out.is_empty() {
        dispatch!(image(matrix, weights, out));
    }
}

/// Products are not fused with additions, so that all widths give the same bits.
#[inline(always)]
fn image_by_rows(matrix: &[f32], weights: &[f64], out: &mut [f64]) {
    for (row, weight) in matrix.chunks_exact(out.len()).zip(weights) {
        for (sum, &number) in out.iter_mut().zip(row) {
            *sum += weight * f64::from(number);
        }
    }
}

/// Raises each number of `best` to `Σ weight · row_i` if that is larger: a sum by fused
/// multiply-adds, one row after the other. Panics if a row is shorter than `best`.
#[inline]
pub fn raise_by<const N: usize>(best: &mut [f32], weights: [f32; N], rows: [&[f32]; N]) {
    let rows = rows.map(|row| &row[..best.len()]);
    dispatch!(raise_by(best, weights, rows));
}

/// Numbers are independent of each other, so the compiler may use any registers.
#[inline(always)]
fn raise_by_loop<const N: usize>(
    best: &mut [f32],
    weights: [f32; N],
    rows: [&[f32]; N],
    fused: impl Fn(f32, f32, f32) -> f32,
) {
    let rows = rows.map(|row| &row[..best.len()]);
    for at in 0..best.len() {
        let mut sum = 0.0_f32;
        for place in 0..N {
            sum = fused(rows[place][at], weights[place], sum);
        }
        best[at] = if sum > best[at] { sum } else { best[at] };
    }
}

const LINE: usize = 64;

/// Prefetches the memory of values.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = values.as_ptr().cast::<i8>();
        for at in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: a prefetch reads nothing and cannot fault.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at)) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let start = values.as_ptr().cast::<u8>();
        for at in (0..size_of_val(values)).step_by(LINE) {
            let line = start.wrapping_add(at);
            // SAFETY: a prefetch reads nothing and cannot fault.
            unsafe {
                std::arch::asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags));
            }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (values, LINE);
}
