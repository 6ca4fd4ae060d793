//! Buckets of nearby vectors: the vectors of a sample of texts are centres, found through coarser
//! cells, and a vector belongs to the buckets of its nearest centres, as their bytes have it.
//!
//! Two near vectors share a bucket with high probability, not with certainty; the recall check
//! measures how often. Only vectors are known here, no texts.

use cognate_kernels::linalg::KMeans;
use cognate_kernels::scan::{Probe, QUERIES, ROWS, Shelf};
use cognate_kernels::vector::{Row, norm};

/// Average texts in a bucket, if the sample has enough centres.
const PER_BUCKET: u64 = 128;
/// Maximum texts in the sample.
pub(super) const SAMPLE: u64 = 1 << 17;
/// Maximum number of cells, and of sample texts for computing their means.
const CELLS: usize = 256;
const CELL_SAMPLE: usize = 1 << 14;
/// Number of nearest cells whose centres are compared with a vector.
const NEAR_CELLS: usize = 4;
/// Number of buckets that a vector belongs to.
pub(super) const NEAR: usize = 4;
const ITERATIONS: usize = 8;
const SEED: u64 = 1;

/// The centres, grouped by cell.
pub struct Buckets {
    cells: Rows,
    /// For each cell, the number of its first centre, and its centres.
    centres: Vec<(usize, Rows)>,
}

/// The centres of [`Buckets`] as plain numbers, which can be sent to other machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Centres {
    pub cells: Vec<f32>,
    pub counts: Vec<u32>,
    /// The centres of all cells, one cell after another.
    pub centres: Vec<f32>,
}

/// Vectors as bytes, among which the nearest to others are looked for.
pub(super) struct Rows {
    pub(super) shelf: Shelf,
    count: usize,
}

/// The nearest rows, best first, with their products.
type Nearest<const N: usize> = [Option<(usize, f32)>; N];

impl Centres {
    /// Centres of buckets for this many texts, given the normalised vectors of a sample of them.
    pub fn new(sample: &[f32], dims: usize, texts: u64) -> Self {
        let dims = dims.max(1);
        let rows: Vec<&[f32]> = sample.chunks_exact(dims).collect();
        let wanted = usize::try_from(texts / PER_BUCKET).unwrap_or(usize::MAX);
        let wanted = wanted.clamp(1, (rows.len() / 2).max(1));
        let search = KMeans {
            clusters: ((wanted as f64).sqrt() as usize).clamp(1, CELLS),
            seed: SEED,
            max_iterations: ITERATIONS,
            threads: rayon::current_num_threads(),
        };
        let of_cells = sample.get(..CELL_SAMPLE * dims).unwrap_or(sample);
        let mut cells = search.fit(of_cells, dims).centroids;
        cells.chunks_exact_mut(dims).for_each(to_length_one);
        let mut members: Vec<Vec<&[f32]>> = vec![Vec::new(); cells.len() / dims];
        let probes: Vec<Probe> = rows.iter().map(|row| Probe::new(row)).collect();
        let nearest = Rows::quantised(&cells, dims).nearest::<1>(&Vec::from_iter(&probes));
        for (row, [nearest]) in rows.iter().zip(nearest) {
            if let Some(members) = nearest.and_then(|(cell, _)| members.get_mut(cell)) {
                members.push(row);
            }
        }
        let (mut counts, mut centres) = (Vec::new(), Vec::new());
        for members in members {
            let share = (members.len() * wanted).div_ceil(rows.len().max(1));
            let step = members.len().div_ceil(share.max(1)).max(1);
            let own = members.iter().step_by(step);
            counts.push(own.len() as u32);
            centres.extend(own.copied().flatten());
        }
        Self { cells, counts, centres }
    }
}

impl Buckets {
    /// Buckets of vectors with `dims` dimensions.
    pub fn new(from: &Centres, dims: usize) -> Self {
        let (mut begin, mut rest) = (0, from.centres.as_slice());
        let centres = from.counts.iter().map(|&count| {
            let (own, others) = rest.split_at_checked(count as usize * dims).unwrap_or((rest, &[]));
            let (first, own) = (begin, Rows::quantised(own, dims));
            begin += own.count;
            rest = others;
            (first, own)
        });
        Self { centres: centres.collect(), cells: Rows::quantised(&from.cells, dims) }
    }

    pub(super) fn count(&self) -> u64 {
        self.centres.last().map_or(0, |(first, own)| (first + own.count) as u64)
    }

    /// The numbers of the buckets that each vector belongs to.
    pub(super) fn nearest(&self, vectors: &[&Probe]) -> Vec<impl Iterator<Item = u64> + use<>> {
        let cells = self.cells.nearest::<NEAR_CELLS>(vectors);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.centres.len()];
        for (at, cells) in cells.iter().enumerate() {
            for &(cell, _) in cells.iter().flatten() {
                if let Some(members) = members.get_mut(cell) {
                    members.push(at);
                }
            }
        }
        // Vectors of one cell are compared together, because a kernel multiplies several at a time.
        let mut best = vec![[None; NEAR]; vectors.len()];
        for ((first, centres), members) in self.centres.iter().zip(members) {
            let own: Vec<&Probe> = members.iter().map(|&at| vectors[at]).collect();
            for (at, found) in members.iter().zip(centres.nearest::<NEAR>(&own)) {
                for (centre, product) in found.into_iter().flatten() {
                    keep(&mut best[*at], (first + centre, product));
                }
            }
        }
        let numbers = |best: Nearest<NEAR>| best.into_iter().flatten().map(|(at, _)| at as u64);
        best.into_iter().map(numbers).collect()
    }
}

impl Rows {
    pub(super) fn new(vectors: &[&Probe], dims: usize) -> Self {
        let mut shelf = Shelf::new(dims, vectors.len());
        vectors.iter().enumerate().for_each(|(at, vector)| shelf.put_probe(at, vector));
        Self { shelf, count: vectors.len() }
    }

    fn quantised(vectors: &[f32], dims: usize) -> Self {
        let probes: Vec<Probe> = vectors.chunks_exact(dims.max(1)).map(Probe::new).collect();
        Self::new(&Vec::from_iter(&probes), dims)
    }

    /// For each vector the rows with the largest products with it; of equal rows the earlier first.
    pub(super) fn nearest<const N: usize>(&self, vectors: &[&Probe]) -> Vec<Nearest<N>> {
        let mut best = vec![[None; N]; vectors.len()];
        let mut sums = [[0; ROWS]; QUERIES];
        for (four, best) in vectors.chunks(QUERIES).zip(best.chunks_mut(QUERIES)) {
            for tile in 0..self.count.div_ceil(ROWS) {
                let asked = |at: usize| {
                    let last = best[at].last().copied().flatten();
                    (four[at], last.map_or(f32::NEG_INFINITY, |(_, product)| product))
                };
                let near = self.shelf.near(tile, (four.len(), asked), Some(&mut sums));
                for (((vector, best), mut near), sums) in
                    four.iter().zip(&mut *best).zip(near).zip(&sums)
                {
                    while near != 0 {
                        let row = near.trailing_zeros() as usize;
                        near &= near - 1;
                        let at = tile * ROWS + row;
                        if at < self.count {
                            keep(best, (at, self.shelf.product(at, vector, sums[row])));
                        }
                    }
                }
            }
        }
        best
    }
}

/// Inserts a row into the list of the best, if it is good enough.
fn keep<const N: usize>(best: &mut Nearest<N>, found: (usize, f32)) {
    let better = |known: &Option<(usize, f32)>| known.is_none_or(|known| found.1 > known.1);
    if !best.last().is_some_and(better) {
        return;
    }
    let place = best.iter().position(better).unwrap_or(N - 1);
    if let Some(from) = best.get_mut(place..) {
        from.rotate_right(1);
        from[0] = Some(found);
    }
}

/// Scales a vector to length 1; a zero vector stays unchanged.
pub(super) fn to_length_one(vector: &mut [f32]) {
    let length = norm(Row::F32(vector));
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::SplitMix64;

    use super::*;

    const DIMS: usize = 16;

    fn vectors(count: usize, seed: u64) -> Vec<f32> {
        let mut random = SplitMix64::seeded(seed);
        let mut rows: Vec<f32> = (0..count * DIMS).map(|_| random.unit() as f32 - 0.5).collect();
        rows.chunks_exact_mut(DIMS).for_each(to_length_one);
        rows
    }

    fn probes(rows: &[f32]) -> Vec<Probe> {
        rows.chunks_exact(DIMS).map(Probe::new).collect()
    }

    fn nearest(buckets: &Buckets, vectors: &[Probe]) -> Vec<Vec<u64>> {
        let vectors = Vec::from_iter(vectors);
        buckets.nearest(&vectors).into_iter().map(Iterator::collect).collect()
    }

    #[test]
    fn the_same_vector_has_the_same_buckets_and_near_ones_mostly_share_one() {
        let sample = vectors(2000, 5);
        let buckets = Buckets::new(&Centres::new(&sample, DIMS, 150 * PER_BUCKET), DIMS);
        assert!((100..=200).contains(&buckets.count()), "{}", buckets.count());
        let (rows, far) = (vectors(500, 6), &sample[..500 * DIMS]);
        let mut near: Vec<f32> = rows.iter().zip(far).map(|(a, b)| a + 0.2 * b).collect();
        near.chunks_exact_mut(DIMS).for_each(to_length_one);
        let [own, near, far] = [&rows, &near, far].map(|rows| nearest(&buckets, &probes(rows)));
        let share = |others: &[Vec<u64>]| {
            let pairs = own.iter().zip(others);
            pairs.filter(|(one, other)| one.iter().any(|bucket| other.contains(bucket))).count()
        };
        let (shared, apart) = (share(&near), share(&far));
        assert!(shared > 480 && apart < 150, "{shared} near and {apart} far pairs share a bucket");
        for (row, own) in probes(&rows).into_iter().zip(own) {
            assert!(own.len() == NEAR && own.iter().all(|&bucket| bucket < buckets.count()));
            assert_eq!(nearest(&buckets, &[row]), [own], "alone as among others");
        }
    }

    #[test]
    fn few_texts_share_one_bucket_and_none_is_no_fault() {
        let asked = probes(&vectors(1, 2));
        let one = Buckets::new(&Centres::new(&vectors(50, 1), DIMS, 50), DIMS);
        assert_eq!(one.count(), 1);
        assert_eq!(nearest(&one, &asked), [[0]]);
        let none = Buckets::new(&Centres::new(&[], DIMS, 0), DIMS);
        assert!(nearest(&none, &asked)[0].is_empty());
    }
}
