//! The nearest of many centroids for each of many rows, in single precision. Where centroids come
//! from is not known here.

/// Centroids that a nearest-centroid pass compares at once.
const LANES: usize = 8;
/// Rows it compares with them at once.
const TILE: usize = 4;
/// Rows for which a panel of centroids stays in the nearest cache.
pub(super) const BLOCK: usize = 32;

pub(super) struct Rows<'a> {
    numbers: &'a [f32],
    pub(super) dim: usize,
    pub(super) count: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(numbers: &'a [f32], dim: usize) -> Self {
        // With 0 columns, rows could not be split or counted.
        let dim = dim.max(1);
        assert!(numbers.len().is_multiple_of(dim), "a whole number of rows");
        let count = numbers.len() / dim;
        assert!(u32::try_from(count).is_ok(), "rows are numbered in 32 bits");
        Self { numbers, dim, count }
    }

    pub(super) fn row(&self, at: usize) -> &'a [f32] {
        &self.numbers[at * self.dim..][..self.dim]
    }
}

/// Centroids turned so that one component of [`LANES`] of them lies together.
pub(super) struct Panels {
    components: Vec<[f32; LANES]>,
    half_norms: Vec<[f32; LANES]>,
}

impl Panels {
    pub(super) fn new(centroids: &[f32], dim: usize) -> Self {
        let count = (centroids.len() / dim).div_ceil(LANES);
        let mut components = vec![[0.0; LANES]; count * dim];
        // Lanes without a centroid stay infinitely far.
        let mut half_norms = vec![[f32::INFINITY; LANES]; count];
        for (at, centroid) in centroids.chunks_exact(dim).enumerate() {
            let (panel, lane) = (at / LANES, at % LANES);
            let mut norm = 0.0;
            for (column, &x) in components[panel * dim..][..dim].iter_mut().zip(centroid) {
                column[lane] = x;
                norm += f64::from(x) * f64::from(x);
            }
            half_norms[panel][lane] = (norm / 2.0) as f32;
        }
        Self { components, half_norms }
    }

    /// Finds the nearest centroid (the first of equals) for each row from `first` on, up to [`BLOCK`]
    /// rows: the centroid with the least `|c|²/2 - x·c`, half the squared distance less a term that is
    /// the same for all centroids.
    pub(super) fn nearest(&self, rows: &Rows<'_>, first: usize, nearest: &mut [u32]) {
        let mut least = [f32::INFINITY; BLOCK];
        nearest.fill(0);
        let panels = self.components.chunks_exact(rows.dim).zip(&self.half_norms);
        for (panel, (components, half_norms)) in panels.enumerate() {
            let tiles = nearest.chunks_mut(TILE).zip(least.chunks_mut(TILE));
            for (tile, (nearest, least)) in tiles.enumerate() {
                // A short last tile repeats its last row rather than have a slower path.
                let last = nearest.len() - 1;
                let four = std::array::from_fn(|at| rows.row(first + tile * TILE + at.min(last)));
                let products = tile_products(four, components);
                let results = nearest.iter_mut().zip(least).zip(&products);
                for ((nearest, least), products) in results {
                    for lane in 0..LANES {
                        let score = half_norms[lane] - products[lane];
                        if score < *least {
                            *least = score;
                            *nearest = (panel * LANES + lane) as u32;
                        }
                    }
                }
            }
        }
    }
}

fn tile_products(rows: [&[f32]; TILE], components: &[[f32; LANES]]) -> [[f32; LANES]; TILE] {
    let mut sums = [[0.0; LANES]; TILE];
    let [a, b, c, d] = rows;
    for ((((column, &a), &b), &c), &d) in components.iter().zip(a).zip(b).zip(c).zip(d) {
        for (sums, x) in sums.iter_mut().zip([a, b, c, d]) {
            for (sum, y) in sums.iter_mut().zip(column) {
                *sum += x * y;
            }
        }
    }
    sums
}

/// Returns the squared distance of two rows: sixteen parallel sums, added in a fixed order.
pub(super) fn squared_distance(x: &[f32], y: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let (x, y) = (x.chunks_exact(16), y.chunks_exact(16));
    let rest: f32 = x.remainder().iter().zip(y.remainder()).map(|(x, y)| (x - y) * (x - y)).sum();
    for (x, y) in x.zip(y) {
        for lane in 0..16 {
            let apart = x[lane] - y[lane];
            sums[lane] += apart * apart;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nearest_one_by_one(row: &[f32], centroids: &[f32]) -> u32 {
        let distances = centroids.chunks_exact(row.len()).map(|c| squared_distance(row, c));
        let best = distances.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap();
        best.0 as u32
    }

    proptest! {
        // Whole numbers keep both ways exact, so that ties are ties in both.
        #[test]
        fn tiles_find_what_a_plain_search_finds(
            dim in 1usize..20,
            numbers in prop::collection::vec((-4i8..5).prop_map(f32::from), 20..700),
            centroids in prop::collection::vec((-4i8..5).prop_map(f32::from), 20..400),
        ) {
            let numbers = &numbers[..numbers.len() / dim * dim];
            let centroids = &centroids[..centroids.len() / dim * dim];
            let rows = Rows::new(numbers, dim);
            let panels = Panels::new(centroids, dim);
            let mut nearest = vec![u32::MAX; rows.count];
            for (block, nearest) in nearest.chunks_mut(BLOCK).enumerate() {
                panels.nearest(&rows, block * BLOCK, nearest);
            }
            for (at, &found) in nearest.iter().enumerate() {
                prop_assert_eq!(found, nearest_one_by_one(rows.row(at), centroids));
            }
        }
    }
}
