//! Buckets of nearby vectors: the vectors of a sample of texts are centres, found through coarser
//! cells, and a vector belongs to the buckets of its nearest centres.
//!
//! Two near vectors share a bucket with high probability, not with certainty; the recall check
//! measures how often. Only vectors are known here, no texts.

use cognate_kernels::linalg::KMeans;
use cognate_kernels::vector;

/// Average texts in a bucket, if the sample has enough centres.
const PER_BUCKET: u64 = 256;
/// Maximum texts in the sample.
pub(super) const SAMPLE: u64 = 1 << 17;
/// Maximum number of cells, and of sample texts for computing their means.
const CELLS: usize = 256;
const CELL_SAMPLE: usize = 1 << 14;
/// Number of nearest cells whose centres are compared with a vector.
const NEAR_CELLS: usize = 4;
/// Number of buckets that a vector belongs to.
const NEAR: usize = 4;
const ITERATIONS: usize = 8;
const SEED: u64 = 1;

/// The centres, grouped by cell.
pub struct Buckets {
    dims: usize,
    cells: Vec<f32>,
    /// For each cell, the index of its first centre, and its centres.
    centres: Vec<(u64, Vec<f32>)>,
}

/// [`Buckets`] as plain numbers, to be sent to other machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Centres {
    pub cells: Vec<f32>,
    pub counts: Vec<u32>,
    /// The centres of all cells, one cell after another.
    pub centres: Vec<f32>,
}

#[derive(Default)]
pub(super) struct Room {
    products: Vec<f32>,
}

impl Buckets {
    pub fn to_centres(&self) -> Centres {
        let count = |own: &[f32]| (own.len() / self.dims.max(1)) as u32;
        Centres {
            cells: self.cells.clone(),
            counts: self.centres.iter().map(|(_, own)| count(own)).collect(),
            centres: self.centres.iter().flat_map(|(_, own)| own).copied().collect(),
        }
    }

    /// Buckets of vectors with `dims` dimensions, from plain numbers.
    pub fn from_centres(from: &Centres, dims: usize) -> Self {
        let (mut begin, mut rest) = (0, from.centres.as_slice());
        let centres = from.counts.iter().map(|&count| {
            let (own, others) = rest.split_at_checked(count as usize * dims).unwrap_or((rest, &[]));
            let first = begin;
            begin += u64::from(count);
            rest = others;
            (first, own.to_vec())
        });
        let centres = centres.collect();
        Self { dims, cells: from.cells.clone(), centres }
    }

    /// Buckets for this many texts, given the normalised vectors of a sample of them.
    pub fn of(sample: &[f32], dims: usize, texts: u64) -> Self {
        let rows: Vec<&[f32]> = sample.chunks_exact(dims.max(1)).collect();
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
        cells.chunks_exact_mut(dims.max(1)).for_each(to_length_one);
        let count = cells.len() / dims.max(1);
        let mut members: Vec<Vec<&[f32]>> = vec![Vec::new(); count];
        let mut room = Room::default();
        for row in &rows {
            let [nearest, ..] = room.nearest::<1>(row, &cells, dims);
            if let Some(members) = nearest.and_then(|(cell, _)| members.get_mut(cell)) {
                members.push(row);
            }
        }
        let mut first = 0;
        let centres = members.iter().map(|members| {
            let share = (members.len() * wanted).div_ceil(rows.len().max(1));
            let step = members.len().div_ceil(share.max(1)).max(1);
            let own: Vec<f32> = members.iter().step_by(step).copied().flatten().copied().collect();
            let begin = first;
            first += (own.len() / dims.max(1)) as u64;
            (begin, own)
        });
        let centres = centres.collect();
        Self { dims, cells, centres }
    }

    pub(super) fn count(&self) -> u64 {
        self.centres.last().map_or(0, |(first, own)| first + (own.len() / self.dims.max(1)) as u64)
    }

    pub(super) fn nearest(&self, vector: &[f32], room: &mut Room) -> impl Iterator<Item = u64> {
        let mut best = [None; NEAR];
        for (cell, _) in
            room.nearest::<NEAR_CELLS>(vector, &self.cells, self.dims).into_iter().flatten()
        {
            let Some((first, centres)) = self.centres.get(cell) else { continue };
            for found in room.nearest::<NEAR>(vector, centres, self.dims).into_iter().flatten() {
                let number = *first as usize + found.0;
                keep(&mut best, (number, found.1));
            }
        }
        best.into_iter().flatten().map(|(bucket, _)| bucket as u64)
    }
}

impl Room {
    /// The rows with the largest products with a vector, best first; of equal ones the earlier
    /// first.
    pub(super) fn nearest<const N: usize>(
        &mut self,
        vector: &[f32],
        rows: &[f32],
        dims: usize,
    ) -> [Option<(usize, f32)>; N] {
        let mut best = [None; N];
        if !rows.is_empty() {
            vector::products(vector, rows, dims, &mut self.products);
            for (at, &product) in self.products.iter().enumerate() {
                keep(&mut best, (at, product));
            }
        }
        best
    }
}

/// Inserts a row into the list of the best, if it is good enough.
fn keep<const N: usize>(best: &mut [Option<(usize, f32)>; N], found: (usize, f32)) {
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
    use cognate_kernels::vector::{Row, norm};
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

    #[test]
    fn the_same_vector_has_the_same_buckets_and_near_ones_mostly_share_one() {
        let sample = vectors(2000, 5);
        let buckets = Buckets::of(&sample, DIMS, 40_000);
        assert!((100..=200).contains(&buckets.count()), "{}", buckets.count());
        let (mut room, mut shared, mut apart) = (Room::default(), 0, 0);
        let others = vectors(500, 6);
        for (row, other) in others.chunks_exact(DIMS).zip(sample.chunks_exact(DIMS)) {
            let mut near: Vec<f32> = row.iter().zip(other).map(|(a, b)| a + 0.2 * b).collect();
            to_length_one(&mut near);
            let own: Vec<u64> = buckets.nearest(row, &mut room).collect();
            assert_eq!(own.len(), NEAR);
            assert!(own.iter().all(|&bucket| bucket < buckets.count()));
            assert_eq!(buckets.nearest(row, &mut room).collect::<Vec<_>>(), own);
            shared += u32::from(buckets.nearest(&near, &mut room).any(|b| own.contains(&b)));
            apart += u32::from(buckets.nearest(other, &mut room).any(|b| own.contains(&b)));
        }
        assert!(shared > 480 && apart < 150, "{shared} near and {apart} far pairs share a bucket");
    }

    #[test]
    fn few_texts_share_one_bucket_and_none_is_no_fault() {
        let mut room = Room::default();
        let one = Buckets::of(&vectors(90, 1), DIMS, 90);
        assert_eq!(one.count(), 1);
        assert_eq!(one.nearest(&vectors(1, 2), &mut room).collect::<Vec<_>>(), [0]);
        let none = Buckets::of(&[], DIMS, 0);
        assert_eq!(none.nearest(&vectors(1, 2), &mut room).count(), 0);
    }
}
