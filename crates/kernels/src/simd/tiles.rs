//! How a matrix of products is cut into tiles of four rows and four columns, the same for every
//! width. What a tile is made of is the business of `tile`, which the file that calls this defines.

#[cfg(target_arch = "x86_64")]
use crate::simd::LANES;

/// Rows and columns of a tile.
pub(super) const SIDE: usize = 4;

/// The products of four rows with four: those of row `i` are numbers `4 i` to `4 i + 3`.
pub(super) use crate::simd::Tile;

/// The whole chunks of a row.
#[cfg(target_arch = "x86_64")]
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

/// Raises each number of a tile to that of another.
#[inline(always)]
pub(super) fn raise(tile: &mut Tile, other: &Tile) {
    for (number, &other) in tile.iter_mut().zip(other) {
        *number = if *number > other { *number } else { other };
    }
}

/// The largest number of each column of a tile.
#[inline(always)]
pub(super) fn tallest(tile: &Tile) -> [f32; SIDE] {
    let mut best = [0.0; SIDE];
    for row in tile.as_chunks::<SIDE>().0 {
        for (best, &number) in best.iter_mut().zip(row) {
            *best = if *best > number { *best } else { number };
        }
    }
    best
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

/// Where the tiles of two sets of rows begin: no tile holds rows of both.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) split: usize,
    pub(super) count: usize,
}

impl Blocks {
    fn of_first(self) -> usize {
        self.split.div_ceil(SIDE)
    }

    pub(super) fn len(self) -> usize {
        self.of_first() + (self.count - self.split).div_ceil(SIDE)
    }

    /// The first row of a block, the end of its set, and which set that is.
    #[inline(always)]
    pub(super) fn block(self, at: usize) -> (usize, usize, usize) {
        match at.checked_sub(self.of_first()) {
            None => (at * SIDE, self.split, 0),
            Some(at) => (self.split + at * SIDE, self.count, 1),
        }
    }
}

/// Defines `products`, `gram` and `memberships` over `tile` and `own_tile`.
///
/// At the edges a tile repeats the last row, and what comes of it is left out.
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

        /// Each tile raises what is known of its columns and of its rows, so that no product is kept.
        #[target_feature(enable = $features)]
        pub(super) fn memberships<R: Rows>(
            rows: R,
            split: usize,
            dims: usize,
            columns: &mut Vec<[Tile; 2]>,
            out: [&mut [f32]; 2],
        ) {
            let blocks = Blocks { split, count: rows.count() };
            columns.clear();
            columns.resize(blocks.len(), [[0.0; SIDE * SIDE]; 2]);
            for i in 0..blocks.len() {
                let (start, end, set) = blocks.block(i);
                let of_block = four(&rows, start, end, dims);
                let mut across = [[0.0; SIDE * SIDE]; 2];
                raise(&mut columns[i][set], &own_tile(of_block, dims));
                for (j, column) in columns.iter_mut().enumerate().skip(i + 1) {
                    let (other, end, other_set) = blocks.block(j);
                    let tile = tile(of_block, four(&rows, other, end, dims), dims);
                    raise(&mut across[other_set], &tile);
                    raise(&mut column[set], &tile);
                }
                // No later tile has anything to say of this block.
                for set in 0..2 {
                    let mut best = turned(across[set]);
                    raise(&mut best, &columns[i][set]);
                    let end = end.min(start + SIDE);
                    out[set][start..end].copy_from_slice(&tallest(&best)[..end - start]);
                }
            }
        }

        /// Tiles on and above the diagonal; the rest is their mirror image.
        #[target_feature(enable = $features)]
        pub(super) fn gram<A: Rows>(a: A, dims: usize, out: &mut [f32]) {
            let side = a.count();
            for i in (0..side).step_by(SIDE) {
                let rows = four(&a, i, side, dims);
                put(&own_tile(rows, dims), out, (i, i), (side, side));
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
