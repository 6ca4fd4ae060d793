//! How a matrix of products is cut into tiles, the same for every width. What a tile is made of is
//! the business of `tile`, which the file that calls this defines.

/// Defines `products` and `gram` over `tile`, which multiplies `$rows` rows with `$columns`.
///
/// At the edges a tile repeats the last row, and what comes of it is left out.
macro_rules! tiles {
    ($features:literal, $rows:expr, $columns:expr) => {
        /// Writes a tile into a matrix of `width` columns, as much of it as lies inside.
        #[inline]
        fn put(
            tile: &[f32; $rows * $columns],
            out: &mut [f32],
            (i, j): (usize, usize),
            (height, width): (usize, usize),
        ) {
            let (tall, wide) = ($rows.min(height - i), $columns.min(width - j));
            for (row, tile) in tile.as_chunks::<$columns>().0.iter().enumerate().take(tall) {
                let at = (i + row) * width + j;
                if wide == $columns {
                    out[at..at + $columns].copy_from_slice(tile);
                } else {
                    out[at..at + wide].copy_from_slice(&tile[..wide]);
                }
            }
        }

        #[target_feature(enable = $features)]
        pub(super) fn products(a: &[f32], b: &[f32], dims: usize, out: &mut [f32]) {
            let (height, width) = (a.len() / dims, b.len() / dims);
            let row = |rows: &'_ [f32], at: usize, last: usize| {
                let from = at.min(last) * dims;
                from..(from + dims).min(rows.len())
            };
            for j in (0..width).step_by($columns) {
                let columns: [&[f32]; $columns] =
                    std::array::from_fn(|k| &b[row(b, j + k, width - 1)]);
                for i in (0..height).step_by($rows) {
                    let rows: [&[f32]; $rows] =
                        std::array::from_fn(|k| &a[row(a, i + k, height - 1)]);
                    put(&tile(rows, columns, dims), out, (i, j), (height, width));
                }
            }
        }

        /// Tiles on and above the diagonal; the rest is their mirror image.
        #[target_feature(enable = $features)]
        pub(super) fn gram(a: &[f32], dims: usize, out: &mut [f32]) {
            let side = a.len() / dims;
            let row = |at: usize| {
                let from = at.min(side - 1) * dims;
                &a[from..from + dims]
            };
            for i in (0..side).step_by($rows) {
                let rows: [&[f32]; $rows] = std::array::from_fn(|k| row(i + k));
                for j in (i / $columns * $columns..side).step_by($columns) {
                    let columns: [&[f32]; $columns] = std::array::from_fn(|k| row(j + k));
                    let tile = tile(rows, columns, dims);
                    put(&tile, out, (i, j), (side, side));
                    let (tall, wide) = ($rows.min(side - i), $columns.min(side - j));
                    for column in 0..wide {
                        let at = (j + column) * side + i;
                        for (row, out) in out[at..at + tall].iter_mut().enumerate() {
                            *out = tile[row * $columns + column];
                        }
                    }
                }
            }
        }
    };
}

pub(super) use tiles;
