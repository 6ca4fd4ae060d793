//! Computes products of rows of bytes block by block, the same for every width. The file that
//! expands it defines a tile of four rows by four and the comparison of its sixteen numbers.

/// Defines `within`, `across`, `gram` and `products` over `tile`, `tile_with_itself`, `larger`, `turned`, `tallest`,
/// `load`, `store` and `zeros`.
macro_rules! blockwise {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn within(
            rows: Blocks<'_>,
            columns: &mut Vec<Tile>,
            out: &mut [[f32; SIDE]],
        ) {
            columns.clear();
            columns.resize(rows.len(), [0.0; SIDE * SIDE]);
            for (i, out) in out.iter_mut().enumerate() {
                let block = rows.block(i);
                let mut along = zeros();
                for (j, column) in columns.iter_mut().enumerate().skip(i + 1) {
                    let tile = tile(block, rows.block(j), rows.dims);
                    along = larger(along, tile);
                    *column = store(larger(load(column), tile));
                }
                let best = larger(tile_with_itself(block, rows.dims), load(&columns[i]));
                *out = tallest(larger(best, turned(along)));
            }
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn across(
            a: Blocks<'_>,
            b: Blocks<'_>,
            columns: &mut Vec<Tile>,
            [of_a, of_b]: [&mut [[f32; SIDE]]; 2],
        ) {
            columns.clear();
            columns.resize(b.len(), [0.0; SIDE * SIDE]);
            for (i, out) in of_a.iter_mut().enumerate() {
                let block = a.block(i);
                let mut along = zeros();
                for (j, column) in columns.iter_mut().enumerate() {
                    let tile = tile(block, b.block(j), a.dims);
                    along = larger(along, tile);
                    *column = store(larger(load(column), tile));
                }
                *out = tallest(turned(along));
            }
            for (column, out) in columns.iter().zip(of_b) {
                *out = tallest(load(column));
            }
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn products(
            a: Blocks<'_>,
            b: Blocks<'_>,
            out: &mut [[f32; SIDE]],
        ) {
            for i in 0..a.len() {
                for j in 0..b.len() {
                    let tile = tile(a.block(i), b.block(j), a.dims);
                    put(&store(tile), out, i * SIDE * b.len() + j, b.len());
                }
            }
        }

        /// Tiles on and above the diagonal; the rest is their mirror image.
        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn gram(a: Blocks<'_>, out: &mut [[f32; SIDE]]) {
            for i in 0..a.len() {
                let own = tile_with_itself(a.block(i), a.dims);
                put(&store(own), out, i * SIDE * a.len() + i, a.len());
                for j in i + 1..a.len() {
                    let tile = tile(a.block(i), a.block(j), a.dims);
                    put(&store(tile), out, i * SIDE * a.len() + j, a.len());
                    put(&store(turned(tile)), out, j * SIDE * a.len() + i, a.len());
                }
            }
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd::bytes) fn quantise(row: &[f32], out: &mut [i8]) -> f32 {
            quantise_loop(row, out)
        }

        /// Writes the rows of a tile, the first at `at`, each `stride` after the row before.
        #[inline(always)]
        fn put(tile: &Tile, out: &mut [[f32; SIDE]], at: usize, stride: usize) {
            for (row, numbers) in tile.as_chunks::<SIDE>().0.iter().enumerate() {
                out[at + row * stride] = *numbers;
            }
        }
    };
}

pub(super) use blockwise;
