//! The loops over bytes for 64-bit ARM. On processors that multiply bytes four by four (`SDOT`),
//! one instruction adds sixteen products; on others, products are made in 16 bits, which hold each
//! of them, and two neighbouring ones are added to 32.

/// Defines the loops for processors with these features, over `add_product`, which adds the products of sixteen
/// bytes to four numbers.
macro_rules! byte_loops {
    ($features:literal) => {
        use std::arch::aarch64::*;

        use crate::simd::Tile;
        use crate::simd::bytes::blockwise::blockwise;
        use crate::simd::bytes::neon::CHUNK;
        pub(in crate::simd::bytes) use crate::simd::bytes::plain::prepare;
        use crate::simd::bytes::{Block, Blocks, SIDE, quantise_loop};

        #[inline]
        #[target_feature(enable = $features)]
        fn load_bytes(chunk: &[i8; CHUNK]) -> int8x16_t {
            // SAFETY: there are sixteen bytes to read.
            unsafe { vld1q_s8(chunk.as_ptr()) }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn rest_of_bytes(row: &[i8]) -> int8x16_t {
            let rest = row.as_chunks::<CHUNK>().1;
            let mut chunk = [0; CHUNK];
            chunk[..rest.len()].copy_from_slice(rest);
            load_bytes(&chunk)
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn dot(a: &[i8], b: &[i8]) -> i32 {
            let (a_chunks, a_rest) = a.as_chunks::<CHUNK>();
            let (b_chunks, b_rest) = b.as_chunks::<CHUNK>();
            let mut lanes = vdupq_n_s32(0);
            for (a, b) in a_chunks.iter().zip(b_chunks) {
                lanes = add_product(lanes, load_bytes(a), load_bytes(b));
            }
            if !a_rest.is_empty() && !b_rest.is_empty() {
                lanes = add_product(lanes, rest_of_bytes(a), rest_of_bytes(b));
            }
            vaddvq_s32(lanes)
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn squares(block: Block<'_>, _dims: usize) -> [i32; SIDE] {
            block.rows.map(|row| dot(row, row))
        }

        #[inline(always)]
        fn whole(row: &[i8], chunks: usize) -> &[[i8; CHUNK]] {
            &row.as_chunks().0[..chunks]
        }

        /// The products of four rows with four: a register per row.
        #[inline]
        #[target_feature(enable = $features)]
        fn tile(a: Block<'_>, b: Block<'_>, dims: usize) -> [float32x4_t; SIDE] {
            let chunks = dims / CHUNK;
            let (rows, columns) =
                (a.rows.map(|row| whole(row, chunks)), b.rows.map(|row| whole(row, chunks)));
            let mut sums = [[vdupq_n_s32(0); SIDE]; SIDE];
            for at in 0..chunks {
                let of = |row: &[[i8; CHUNK]]| load_bytes(&row[at]);
                add_products(&mut sums, rows.map(of), columns.map(of));
            }
            if !dims.is_multiple_of(CHUNK) {
                let of = |row: &[i8]| rest_of_bytes(row);
                add_products(&mut sums, a.rows.map(of), b.rows.map(of));
            }
            // SAFETY: there are four numbers to read.
            let of_columns = unsafe { vld1q_f32(b.factors.as_ptr()) };
            let mut out = zeros();
            for ((sums, factor), out) in sums.into_iter().zip(a.factors).zip(&mut out) {
                let [a, b, c, d] = sums;
                let products = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
                *out = vmulq_f32(vcvtq_f32_s32(products), vmulq_n_f32(of_columns, *factor));
            }
            out
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn tile_with_itself(a: Block<'_>, dims: usize) -> [float32x4_t; SIDE] {
            tile(a, a, dims)
        }

        /// Sixteen sums, four rows and four columns fill three quarters of the registers.
        #[inline]
        #[target_feature(enable = $features)]
        fn add_products(
            sums: &mut [[int32x4_t; SIDE]; SIDE],
            rows: [int8x16_t; SIDE],
            columns: [int8x16_t; SIDE],
        ) {
            for (sums, row) in sums.iter_mut().zip(rows) {
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = add_product(*sum, row, column);
                }
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn zeros() -> [float32x4_t; SIDE] {
            [vdupq_n_f32(0.0); SIDE]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn load(tile: &Tile) -> [float32x4_t; SIDE] {
            let rows = tile.as_chunks::<SIDE>().0;
            // SAFETY: a row has four numbers to read.
            let of = |row: &[f32; SIDE]| unsafe { vld1q_f32(row.as_ptr()) };
            [of(&rows[0]), of(&rows[1]), of(&rows[2]), of(&rows[3])]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn store(lanes: [float32x4_t; SIDE]) -> Tile {
            let mut tile = [0.0; SIDE * SIDE];
            for (row, lanes) in tile.as_chunks_mut::<SIDE>().0.iter_mut().zip(lanes) {
                // SAFETY: there is room for four numbers.
                unsafe { vst1q_f32(row.as_mut_ptr(), lanes) };
            }
            tile
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn larger(tile: [float32x4_t; SIDE], other: [float32x4_t; SIDE]) -> [float32x4_t; SIDE] {
            let [a, b, c, d] = tile;
            let [e, f, g, h] = other;
            [largest(a, e), largest(b, f), largest(c, g), largest(d, h)]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn largest(number: float32x4_t, other: float32x4_t) -> float32x4_t {
            vbslq_f32(vcgtq_f32(other, number), other, number)
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn turned([a, b, c, d]: [float32x4_t; SIDE]) -> [float32x4_t; SIDE] {
            let pairs = |a, b| {
                let of = |lanes| vreinterpretq_f64_f32(lanes);
                (of(vtrn1q_f32(a, b)), of(vtrn2q_f32(a, b)))
            };
            let ((even, odd), (other_even, other_odd)) = (pairs(a, b), pairs(c, d));
            [
                vreinterpretq_f32_f64(vzip1q_f64(even, other_even)),
                vreinterpretq_f32_f64(vzip1q_f64(odd, other_odd)),
                vreinterpretq_f32_f64(vzip2q_f64(even, other_even)),
                vreinterpretq_f32_f64(vzip2q_f64(odd, other_odd)),
            ]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn tallest([a, b, c, d]: [float32x4_t; SIDE]) -> [f32; SIDE] {
            // The first of two zeros stays, which is +0.
            let best = largest(vdupq_n_f32(0.0), largest(largest(a, b), largest(c, d)));
            let mut out = [0.0; SIDE];
            // SAFETY: there is room for four numbers.
            unsafe { vst1q_f32(out.as_mut_ptr(), best) };
            out
        }

        blockwise!($features);
    };
}

const CHUNK: usize = 16;

pub(in crate::simd) mod least {
    /// A product of two bytes is at most 2¹⁴, so 16 bits hold it.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::simd) fn add_product(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        let low = vpadalq_s16(sum, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
        vpadalq_s16(low, vmull_high_s8(a, b))
    }

    byte_loops!("neon");
}

pub(in crate::simd) mod sdot {
    /// Adds the products of four bytes with four to each of four numbers.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    pub(in crate::simd) fn add_product(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        let mut sum = sum;
        // SAFETY: the instruction reads and writes these registers alone.
        unsafe {
            std::arch::asm!(
                "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }

    byte_loops!("neon,dotprod");
}
