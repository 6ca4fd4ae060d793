//! Cuts a matrix of products into tiles of four rows and four columns, the same for every width.
//! The file that expands it defines `tile`.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::simd::LANES;

pub(super) const SIDE: usize = 4;

pub(super) use crate::simd::Tile;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn whole(row: &[f32], chunks: usize) -> &[[f32; LANES]] {
    &row.as_chunks().0[..chunks]
}

/// Writes a tile into a matrix of `height` rows and `width` columns, as much of it as lies inside.
#[inline(always)]
pub(super) fn put(
    tile: &Tile,
    out: &mut [f32],
    (i, j): (usize, usize),
    (height, width): (usize, usize),
) {
    for (row, tile) in tile.as_chunks::<SIDE>().0.iter().enumerate() {
        if i + row == height {
            return;
        }
        let at = (i + row) * width + j;
        if let Some(out) = out.get_mut(at..at + SIDE).filter(|_| j + SIDE <= width) {
            out.copy_from_slice(tile);
        } else {
            out[at..at + width - j].copy_from_slice(&tile[..width - j]);
        }
    }
}

/// The tile with rows and columns exchanged.
#[inline(always)]
pub(super) fn turned(tile: Tile) -> Tile {
    let mut turned = [0.0; SIDE * SIDE];
    for i in 0..SIDE {
        for j in 0..SIDE {
            turned[SIDE * j + i] = tile[SIDE * i + j];
        }
    }
    turned
}

/// Defines `products` and `gram` over `tile` and `tile_with_itself`.
///
/// At the edges a tile repeats the last row, and those results are dropped.
macro_rules! tiles {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        pub(super) fn products<A: Rows, B: Rows>(a: A, b: B, dims: usize, out: &mut [f32]) {
            let (height, width) = (a.count(), b.count());
            for j in (0..width).step_by(SIDE) {
                let columns = four(&b, j, width, dims);
                for i in (0..height).step_by(SIDE) {
                    put(
                        &tile(four(&a, i, height, dims), columns, dims),
                        out,
                        (i, j),
                        (height, width),
                    );
                }
            }
        }

        /// Tiles on and above the diagonal; the rest is their mirror image.
        #[target_feature(enable = $features)]
        pub(super) fn gram<A: Rows>(a: A, dims: usize, out: &mut [f32]) {
            let side = a.count();
            for i in (0..side).step_by(SIDE) {
                let rows = four(&a, i, side, dims);
                put(&tile_with_itself(rows, dims), out, (i, i), (side, side));
                for j in (i + SIDE..side).step_by(SIDE) {
                    let tile = tile(rows, four(&a, j, side, dims), dims);
                    put(&tile, out, (i, j), (side, side));
                    put(&turned(tile), out, (j, i), (side, side));
                }
            }
        }
    };
}

pub(super) use tiles;
