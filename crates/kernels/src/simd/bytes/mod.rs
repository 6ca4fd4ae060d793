//! Products of rows of bytes, in whole numbers. Such sums are exact, so every width gives the same
//! bits in whatever order it adds, and a register holds four times as many bytes as floats.
//!
//! The product of two rows is the sum of the products of their bytes, rounded once to a float,
//! times the factors of both rows. A sum over at most [`MAX_DIMS`] dimensions fits 32 bits
//! whatever the bytes are; up to 1,040 dimensions without a byte of -128 it is below 2²⁴ and needs
//! no rounding.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
mod blockwise;
#[cfg(target_arch = "aarch64")]
pub(in crate::simd) mod neon;
#[cfg_attr(
    any(target_arch = "aarch64", target_arch = "wasm32"),
    allow(dead_code, unused_imports, reason = "most have a loop of their own there")
)]
mod plain;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vnni;
#[cfg(target_arch = "wasm32")]
mod wasm;

#[cfg(target_arch = "aarch64")]
use neon::{least, sdot};
#[cfg(not(any(target_arch = "aarch64", target_arch = "wasm32")))]
use plain as least;
#[cfg(target_arch = "wasm32")]
use wasm as least;

#[cfg(target_arch = "x86_64")]
use crate::simd::Width;
#[cfg(target_arch = "x86_64")]
use crate::simd::width;
use crate::simd::{LANES, Tile};

/// Most dimensions of a row: as many products of two bytes, 2¹⁴ each at most, stay below 2³¹.
pub const MAX_DIMS: usize = 1 << 16;

const SIDE: usize = 4;

#[cfg(target_arch = "x86_64")]
#[inline]
pub(in crate::simd) fn has_vnni() -> bool {
    is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw")
}

#[cfg(target_arch = "aarch64")]
#[inline]
pub(in crate::simd) fn has_sdot() -> bool {
    std::arch::is_aarch64_feature_detected!("dotprod")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Loops {
    #[default]
    Least,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "aarch64")]
    Sdot,
}

impl Loops {
    /// The loops of the width in use. Processors with AVX-512 but without VNNI use those of AVX2.
    #[inline]
    fn in_use() -> Self {
        match () {
            #[cfg(target_arch = "x86_64")]
            () if width() == Width::Avx512 && has_vnni() => Self::Vnni,
            #[cfg(target_arch = "x86_64")]
            () if width() != Width::Least => Self::Avx2,
            #[cfg(target_arch = "aarch64")]
            () if has_sdot() => Self::Sdot,
            () => Self::Least,
        }
    }
}

/// Calls one of some loops. Only [`Loops::in_use`] selects them, and a processor's features do not
/// change.
macro_rules! dispatch {
    ($loops:expr, $name:ident($($arg:expr),+)) => {
        match $loops {
            // SAFETY: `width`, `has_vnni` and `has_sdot` name only what this processor was found to have.
            #[cfg(target_arch = "x86_64")]
            Loops::Vnni => unsafe { vnni::$name($($arg),+) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Loops::Avx2 => unsafe { avx2::$name($($arg),+) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            #[allow(unused_unsafe, reason = "plain code needs nothing")]
            Loops::Sdot => unsafe { sdot::$name($($arg),+) },
            // SAFETY: every processor of the family has what these need.
            #[allow(unused_unsafe, reason = "plain code needs nothing")]
            Loops::Least => unsafe { least::$name($($arg),+) },
        }
    };
}

/// `Σ a_i b_i` over the elements both have. Panics if both have more than [`MAX_DIMS`].
#[inline]
pub fn dot(a: &[i8], b: &[i8]) -> i32 {
    let length = a.len().min(b.len());
    assert!(length <= MAX_DIMS, "the sum fits 32 bits");
    let (a, b) = (&a[..length], &b[..length]);
    dispatch!(Loops::in_use(), dot(a, b))
}

/// Writes a row as bytes over `out`, as many as both have; returns the scale that restores them:
/// the row's largest number becomes 127, so that no byte is -128. A row of zeros has the scale 1.
pub fn quantise(row: &[f32], out: &mut [i8]) -> f32 {
    let length = row.len().min(out.len());
    let (row, out) = (&row[..length], &mut out[..length]);
    dispatch!(Loops::in_use(), quantise(row, out))
}

/// One and a half times 2²³: at this size a float has no digits after the point, and room for small
/// numbers on either side.
const WHOLE: f32 = 12_582_912.0;

/// Numbers are independent, and a maximum is the same in any order, so the compiler may use the
/// caller's registers.
#[inline(always)]
fn quantise_loop(row: &[f32], out: &mut [i8]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = lane.max(number.abs());
        }
    }
    let rest = rest.iter().map(|number| number.abs());
    let largest = lanes.into_iter().chain(rest).fold(0.0, f32::max);
    // Subnormal scales would lose the row's direction to rounding, or be 0.
    let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
    let scale = if largest > 0.0 { scale } else { 1.0 };
    for (out, number) in out.iter_mut().zip(row) {
        // The lowest bits of the sum are the whole number. A conversion by `as` would check each
        // number for overflow, one after the other.
        *out = ((number / scale).round() + WHOLE).to_bits() as i8;
    }
    scale
}

/// Rows of bytes of equal length, anywhere in memory, each with a factor.
///
/// They form blocks of four, and the last row is repeated until its block is full.
#[derive(Debug, Default)]
pub struct ByteRows<'r> {
    dims: usize,
    count: usize,
    rows: Vec<&'r [i8]>,
    factors: Vec<f32>,
    /// The loops that multiply the rows, and data prepared for these loops.
    loops: Loops,
    prepared: Prepared,
}

/// Data made from rows once, for multiplying them often.
#[derive(Debug, Default)]
struct Prepared {
    sums: Vec<[i32; SIDE]>,
    #[cfg(target_arch = "x86_64")]
    wide: Vec<avx2::Wide>,
}

impl Prepared {
    fn clear(&mut self) {
        self.sums.clear();
        #[cfg(target_arch = "x86_64")]
        self.wide.clear();
    }
}

#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "read by x86 loops alone"))]
struct Block<'b> {
    rows: &'b [&'b [i8]; SIDE],
    sums: &'b [i32; SIDE],
    #[cfg(target_arch = "x86_64")]
    wide: &'b [avx2::Wide],
    factors: &'b [f32; SIDE],
}

#[derive(Clone, Copy)]
struct Blocks<'b> {
    dims: usize,
    rows: &'b [[&'b [i8]; SIDE]],
    prepared: &'b Prepared,
    factors: &'b [[f32; SIDE]],
}

impl<'b> Blocks<'b> {
    #[inline(always)]
    fn len(self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn block(self, at: usize) -> Block<'b> {
        Block {
            rows: &self.rows[at],
            sums: self.prepared.sums.get(at).unwrap_or(&[0; SIDE]),
            #[cfg(target_arch = "x86_64")]
            wide: avx2::of_block(&self.prepared.wide, self.dims, at),
            factors: &self.factors[at],
        }
    }
}

impl<'r> ByteRows<'r> {
    /// Sets the rows, each with its factor. Panics if a row does not have `dims` bytes, or if
    /// `dims` exceeds [`MAX_DIMS`].
    pub fn fill(&mut self, dims: usize, rows: impl Iterator<Item = (&'r [i8], f32)>) {
        self.fill_for(Loops::in_use(), dims, rows);
    }

    fn fill_for(&mut self, loops: Loops, dims: usize, rows: impl Iterator<Item = (&'r [i8], f32)>) {
        assert!(dims <= MAX_DIMS, "a sum of products fits 32 bits");
        self.dims = dims;
        self.rows.clear();
        self.factors.clear();
        for (row, factor) in rows {
            assert_eq!(row.len(), dims, "rows of the same length");
            self.rows.push(row);
            self.factors.push(factor);
        }
        self.count = self.rows.len();
        while let Some(&last) = self.rows.last().filter(|_| !self.rows.len().is_multiple_of(SIDE)) {
            self.rows.push(last);
        }
        let last = self.factors.last().copied().unwrap_or_default();
        self.factors.resize(self.rows.len(), last);
        self.loops = loops;
        self.prepared.clear();
        dispatch!(loops, prepare(self.rows.as_chunks().0, dims, &mut self.prepared));
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of a row in a matrix with a column for each of these rows, padded to whole
    /// blocks.
    pub fn stride(&self) -> usize {
        self.rows.len()
    }

    /// Sets every row's factor so that its length is 1, or 0 for a row without length, and writes
    /// the original lengths.
    pub fn to_unit_length(&mut self, lengths: &mut Vec<f32>) {
        lengths.clear();
        for at in 0..self.rows.len() / SIDE {
            let blocks = self.blocks();
            let squares = dispatch!(self.loops, squares(blocks.block(at), blocks.dims));
            let factors = self.factors.iter_mut().skip(at * SIDE);
            for (square, factor) in squares.iter().zip(factors) {
                let length = (*square as f32 * (*factor * *factor)).sqrt();
                let inverse = 1.0 / length;
                *factor *= if inverse.is_finite() { inverse } else { 0.0 };
                lengths.push(length);
            }
        }
        lengths.truncate(self.count);
    }

    /// The memory of the lists, emptied, for other rows.
    pub fn emptied(mut self) -> ByteRows<'static> {
        self.rows.clear();
        // Collecting nothing in place reuses the memory for a list of another lifetime.
        let rows = self.rows.into_iter().map(|_| -> &'static [i8] { &[] }).collect();
        let (factors, prepared) = (self.factors, self.prepared);
        ByteRows { dims: 0, count: 0, rows, factors, loops: Loops::Least, prepared }
    }

    fn blocks(&self) -> Blocks<'_> {
        Blocks {
            dims: self.dims,
            rows: self.rows.as_chunks().0,
            prepared: &self.prepared,
            factors: self.factors.as_chunks().0,
        }
    }

    /// The loops that can multiply these rows with others: those that both were prepared for.
    fn loops_with(&self, other: &ByteRows<'_>) -> Loops {
        if self.loops == other.loops { self.loops } else { Loops::Least }
    }
}

/// Working memory of [`within`] and [`across`].
#[derive(Debug, Default)]
pub struct Columns(Vec<Tile>);

/// For every row its largest product with all rows, itself included, at least 0.
pub fn within(rows: &ByteRows<'_>, columns: &mut Columns, out: &mut Vec<f32>) {
    out.resize(rows.stride(), 0.0);
    if rows.count > 0 {
        dispatch!(rows.loops, within(rows.blocks(), &mut columns.0, out.as_chunks_mut().0));
    }
    out.truncate(rows.count);
}

/// For every row of `a` its largest product with those of `b`, and the other way round, at least 0.
/// Panics if the rows of one are longer than those of the other.
pub fn across(
    a: &ByteRows<'_>,
    b: &ByteRows<'_>,
    columns: &mut Columns,
    [of_a, of_b]: [&mut Vec<f32>; 2],
) {
    assert!(a.dims == b.dims, "rows of the same length");
    of_a.resize(a.stride(), 0.0);
    of_b.resize(b.stride(), 0.0);
    let (rows, others) = (of_a.as_chunks_mut().0, of_b.as_chunks_mut().0);
    dispatch!(a.loops_with(b), across(a.blocks(), b.blocks(), &mut columns.0, [rows, others]));
    of_a.truncate(a.count);
    of_b.truncate(b.count);
}

/// Writes `a_i · a_j` for all rows. `out` has [`ByteRows::stride`] numbers for each row, and only
/// the first of them are products.
pub fn gram(a: &ByteRows<'_>, out: &mut Vec<f32>) {
    out.resize(a.stride() * a.stride(), 0.0);
    dispatch!(a.loops, gram(a.blocks(), out.as_chunks_mut().0));
    out.truncate(a.count * a.stride());
}

/// Writes `a_i · b_j` for all rows. `out` has [`ByteRows::stride`] numbers for each row of `a`, and
/// only the first of them are products. Panics if the rows of `a` and `b` differ in length.
pub fn products(a: &ByteRows<'_>, b: &ByteRows<'_>, out: &mut Vec<f32>) {
    assert!(a.dims == b.dims, "rows of the same length");
    out.resize(a.stride() * b.stride(), 0.0);
    dispatch!(a.loops_with(b), products(a.blocks(), b.blocks(), out.as_chunks_mut().0));
    out.truncate(a.count * b.stride());
}
