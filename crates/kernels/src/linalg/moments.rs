//! Weight, mean and second moments of a stream of rows, in double precision and in one pass. Rows
//! are not stored.
//!
//! Rows are gathered into blocks. A block is centred on its own mean before it is squared and then
//! joined to what came before (Chan, Golub and LeVeque 1983), so that a mean far from zero costs no
//! digits. The sums of products are stored as square tiles of the upper triangle, which makes
//! adding fast: a tile and its two strips of the block fit into the nearest cache.

use std::borrow::Cow;

use ndarray::{Array1, Array2};

const BLOCK: usize = 64;
/// Columns of a strip and a tile.
const SIDE: usize = 8;
/// A strip holds a block, and one row more for joining means.
const STRIP: usize = BLOCK + 1;

type Tile = [[f64; SIDE]; SIDE];

#[derive(Debug, Clone)]
pub struct Moments {
    dim: usize,
    weight: f64,
    mean: Vec<f64>,
    /// Upper triangle of the weighted sum of outer products of `row - mean`, tile after tile.
    scatter: Vec<Tile>,
    /// The block, cut into strips of columns; each strip is contiguous.
    strips: Vec<[f64; SIDE]>,
    weights: Vec<f64>,
}

impl Moments {
    pub fn new(dim: usize) -> Self {
        let across = dim.div_ceil(SIDE);
        Self {
            dim,
            weight: 0.0,
            mean: vec![0.0; across * SIDE],
            scatter: vec![[[0.0; SIDE]; SIDE]; across * (across + 1) / 2],
            strips: vec![[0.0; SIDE]; across * STRIP],
            weights: Vec::with_capacity(BLOCK),
        }
    }

    /// Adds a row of finite numbers. Panics if the row has another number of columns.
    pub fn add(&mut self, row: &[f32]) {
        self.add_weighted(row, 1.0);
    }

    /// Adds a row as if it had come `weight` times. A weight that is not positive, or not finite,
    /// adds nothing. Panics if the row has another number of columns.
    pub fn add_weighted(&mut self, row: &[f32], weight: f64) {
        assert_eq!(row.len(), self.dim, "rows have one number for each column");
        if !weight.is_finite() || weight <= 0.0 {
            return;
        }
        let place = self.weights.len();
        for (strip, columns) in self.strips.chunks_exact_mut(STRIP).zip(row.chunks(SIDE)) {
            for (to, &from) in strip[place].iter_mut().zip(columns) {
                *to = f64::from(from);
            }
        }
        self.weights.push(weight);
        if self.weights.len() == BLOCK {
            self.settle();
        }
    }

    /// Adds everything that `other` has seen. The order of merging affects the last bits, so parts
    /// of a stream must be merged in order. Panics if `other` has another number of columns.
    pub fn merge(&mut self, mut other: Self) {
        assert_eq!(other.dim, self.dim, "moments of rows of the same length");
        self.settle();
        other.settle();
        for (into, from) in self.scatter.iter_mut().flatten().zip(other.scatter.iter().flatten()) {
            for (into, from) in into.iter_mut().zip(from) {
                *into += from;
            }
        }
        self.join(other.weight, &other.mean, 0);
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    pub fn weight(&self) -> f64 {
        self.weight + self.weights.iter().sum::<f64>()
    }

    pub fn mean(&self) -> Array1<f64> {
        self.settled().mean[..self.dim].iter().copied().collect()
    }

    /// The mean outer product of `row - mean` (divided by the weight, not by one less).
    pub fn covariance(&self) -> Array2<f64> {
        self.settled().square(|_, _| 0.0)
    }

    pub fn second_moment(&self) -> Array2<f64> {
        let settled = self.settled();
        settled.square(|row, column| settled.mean[row] * settled.mean[column])
    }

    fn settled(&self) -> Cow<'_, Self> {
        if self.weights.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut settled = self.clone();
        settled.settle();
        Cow::Owned(settled)
    }

    fn square(&self, add: impl Fn(usize, usize) -> f64) -> Array2<f64> {
        let across = self.dim.div_ceil(SIDE);
        let divisor = if self.weight > 0.0 { self.weight } else { 1.0 };
        Array2::from_shape_fn((self.dim, self.dim), |(row, column)| {
            let (row, column) = (row.min(column), row.max(column));
            let tile = &self.scatter[tile_index(across, row / SIDE, column / SIDE)];
            tile[row % SIDE][column % SIDE] / divisor + add(row, column)
        })
    }

    /// Squares the waiting rows and empties the block.
    fn settle(&mut self) {
        let rows = self.weights.len();
        if rows == 0 {
            return;
        }
        let weight: f64 = self.weights.iter().sum();
        let mut mean = vec![0.0; self.mean.len()];
        for (strip, mean) in self.strips.chunks_exact_mut(STRIP).zip(mean.chunks_exact_mut(SIDE)) {
            let strip = &mut strip[..rows];
            for (row, share) in strip.iter().zip(&self.weights) {
                for (mean, x) in mean.iter_mut().zip(row) {
                    *mean += share * x;
                }
            }
            mean.iter_mut().for_each(|mean| *mean /= weight);
            for (row, share) in strip.iter_mut().zip(&self.weights) {
                let root = share.sqrt();
                for (x, mean) in row.iter_mut().zip(&*mean) {
                    *x = root * (*x - *mean);
                }
            }
        }
        self.weights.clear();
        self.join(weight, &mean, rows);
    }

    /// Adds rows of this weight and mean. Their own scatter is either the first `rows` of the block
    /// or already added; the distance of the two means counts as one more row.
    fn join(&mut self, weight: f64, mean: &[f64], rows: usize) {
        let total = self.weight + weight;
        if total <= 0.0 {
            return;
        }
        let root = (self.weight * (weight / total)).sqrt();
        let strips = self.strips.chunks_exact_mut(STRIP);
        for (column, x) in strips.flat_map(|strip| strip[rows].iter_mut()).enumerate() {
            let apart = mean[column] - self.mean[column];
            *x = root * apart;
            self.mean[column] += apart * (weight / total);
        }
        self.weight = total;
        self.square_block(rows + 1);
    }

    fn square_block(&mut self, rows: usize) {
        let across = self.dim.div_ceil(SIDE);
        for (above, left) in self.strips.chunks_exact(STRIP).enumerate() {
            for (beside, top) in self.strips.chunks_exact(STRIP).enumerate().skip(above) {
                let tile = &mut self.scatter[tile_index(across, above, beside)];
                for (row, column) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
                    add_products(&left[..rows], &top[..rows], row, column, tile);
                }
            }
        }
    }
}

/// The index of a tile, `row <= column`, when the triangle is laid out row after row.
fn tile_index(across: usize, row: usize, column: usize) -> usize {
    row * across - row * row.saturating_sub(1) / 2 + (column - row)
}

/// A quarter of a tile: sixteen sums are as many as stay in registers.
fn add_products(
    left: &[[f64; SIDE]],
    top: &[[f64; SIDE]],
    row: usize,
    column: usize,
    tile: &mut Tile,
) {
    let mut sums = [[0.0; 4]; 4];
    for (left, top) in left.iter().zip(top) {
        let left: [f64; 4] = std::array::from_fn(|at| left[row + at]);
        let top: [f64; 4] = std::array::from_fn(|at| top[column + at]);
        for (sums, x) in sums.iter_mut().zip(left) {
            for (sum, y) in sums.iter_mut().zip(top) {
                *sum += x * y;
            }
        }
    }
    for (at, sums) in sums.iter().enumerate() {
        for (into, sum) in tile[row + at][column..column + 4].iter_mut().zip(sums) {
            *into += sum;
        }
    }
}
