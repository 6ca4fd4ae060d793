//! Many rows of length 1, stored a second time as signed bytes, so that a query quickly finds which
//! of them may reach a score; none that does is missed.
//!
//! A row `x` is `s q + e`: its bytes `q` times its scale, and an error whose length is stored. For
//! two such rows `x · y = s_x s_y (q_x · q_y) + x · e_y + e_x · (s_y q_y)`, so it is at most `s_x
//! s_y (q_x · q_y) + |e_x| + |e_y| (1 + |e_x|)`. A tenth of a per mille is added for rounding in
//! single precision.
//!
//! Callers that need only near rows use `s_x s_y (q_x · q_y)` itself; the product of bytes is a
//! whole number and so the same on every processor.

use crate::simd::scan;
use crate::simd::scan::{BLOCK, GROUP, PROBES, TILE};
pub use crate::simd::scan::{PROBES as QUERIES, TILE as ROWS};

/// The sums of the products of bytes of each row of a tile with each query.
pub type Sums = scan::Sums<PROBES>;

/// Covers the rounding of rows, of their errors and of queries to single precision.
const ROUNDING: f32 = 1e-4;

/// Rows as bytes, in reusable slots.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// Numbers of a row, padded with zeros to whole groups.
    dims: usize,
    bytes: Vec<i8>,
    biases: Vec<i32>,
    scales: Vec<f32>,
    errors: Vec<f32>,
}

#[derive(Debug, Clone, Default)]
pub struct Probe {
    bytes: Vec<u8>,
    scale: f32,
    error: f32,
}

const LANES: usize = 8;

/// Writes the bytes of a row to `out`, plus 128 each; returns its scale and the length of the
/// quantisation error.
fn quantise(row: &[f32], out: &mut [u8]) -> (f32, f32) {
    // Compared as whole numbers, which have the same order and which the compiler vectorises.
    let largest = row.iter().fold(0, |largest, number| number.abs().to_bits().max(largest));
    let largest = f32::from_bits(largest);
    let scale = largest / 127.0;
    if scale < f32::MIN_POSITIVE {
        out.fill(0x80);
        return (0.0, largest * (row.len() as f32).sqrt());
    }
    let mut errors = [0.0; LANES];
    for (numbers, bytes) in row.chunks(LANES).zip(out.chunks_mut(LANES)) {
        for ((&number, byte), error) in numbers.iter().zip(bytes).zip(&mut errors) {
            let scaled = number / scale;
            // Adding the largest number below a half and truncating rounds as `round` does, which is a slow
            // call on processors that have no instruction for it.
            let nearest = (scaled + 0.499_999_97_f32.copysign(scaled)) as i32;
            let nearest = nearest.clamp(-127, 127);
            *byte = (nearest + 128) as u8;
            let off = f64::from(number) - f64::from(scale) * f64::from(nearest);
            *error += off * off;
        }
    }
    (scale, errors.iter().sum::<f64>().sqrt() as f32)
}

impl Shelf {
    /// Slots for rows of `dims` numbers, as many as fill whole tiles.
    pub fn new(dims: usize, rows: usize) -> Self {
        let (dims, rows) = (dims.next_multiple_of(GROUP), rows.next_multiple_of(TILE));
        Self {
            dims,
            bytes: vec![0; dims * rows],
            biases: vec![0; rows],
            scales: vec![0.0; rows],
            errors: vec![0.0; rows],
        }
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    pub fn bytes_of(dims: usize, rows: usize) -> usize {
        let (dims, rows) = (dims.next_multiple_of(GROUP), rows.next_multiple_of(TILE));
        rows.saturating_mul(dims + size_of::<i32>() + 2 * size_of::<f32>())
    }

    /// Writes a row of length 1, or of zeros, into a slot.
    pub fn put(&mut self, place: usize, row: &[f32]) {
        self.put_probe(place, &Probe::new(row));
    }

    /// Stores a query as a row.
    pub fn put_probe(&mut self, place: usize, probe: &Probe) {
        let (block, lane) = (place / BLOCK, place % BLOCK);
        let block = &mut self.bytes[block * BLOCK * self.dims..(block + 1) * BLOCK * self.dims];
        let groups = block.as_chunks_mut::<{ GROUP * BLOCK }>().0;
        let mut sum = 0;
        for (group, bytes) in groups.iter_mut().zip(probe.bytes.as_chunks::<GROUP>().0) {
            let bytes = bytes.map(|byte| (byte ^ 0x80).cast_signed());
            group[lane * GROUP..(lane + 1) * GROUP].copy_from_slice(&bytes);
            sum += bytes.iter().map(|&byte| i32::from(byte)).sum::<i32>();
        }
        self.biases[place] = -128 * sum;
        (self.scales[place], self.errors[place]) = (probe.scale, probe.error);
    }

    /// For each query, as bits, the rows among the [`ROWS`] of a tile whose product with it may
    /// reach its least. `sums`, if given, gets the sums from which [`product`](Self::product)
    /// computes products. Panics if there is no such tile or no query, if there are more than
    /// [`QUERIES`], or if one has another length.
    #[inline]
    pub fn reach<'p>(
        &self,
        tile: usize,
        (count, probe): (usize, impl Fn(usize) -> (&'p Probe, f32)),
        sums: Option<&mut Sums>,
    ) -> [u64; PROBES] {
        let probe = |at| {
            let (probe, least) = probe(at);
            probe.at_least(least)
        };
        self.look(tile, count, probe, sums)
    }

    /// As [`reach`](Self::reach), by products of bytes.
    #[inline]
    pub fn near<'p>(
        &self,
        tile: usize,
        (count, probe): (usize, impl Fn(usize) -> (&'p Probe, f32)),
        sums: Option<&mut Sums>,
    ) -> [u64; PROBES] {
        let probe = |at| {
            let (probe, least) = probe(at);
            probe.near(least)
        };
        self.look(tile, count, probe, sums)
    }

    #[inline]
    fn look<'p>(
        &self,
        tile: usize,
        probes: usize,
        probe: impl Fn(usize) -> scan::Probe<'p>,
        sums: Option<&mut Sums>,
    ) -> [u64; PROBES] {
        assert!((1..=PROBES).contains(&probes), "one query to four");
        let tile = self.tile(tile);
        if probes == 1 {
            let sums = sums.and_then(|sums| sums.first_chunk_mut());
            let [found] = scan::reach(&tile, &[probe(0)], sums);
            return [found, 0, 0, 0];
        }
        scan::reach(&tile, &[0, 1, 2, 3].map(|at: usize| probe(at.min(probes - 1))), sums)
    }

    /// The product of a row with a query, both as their bytes, from the sum that the tile's
    /// [`reach`](Self::reach) returned. Panics if there is no such slot.
    #[inline]
    pub fn product(&self, place: usize, probe: &Probe, sum: i32) -> f32 {
        sum as f32 * self.scales[place] * probe.scale
    }

    /// How far the product of a row with a query may be from that of their bytes. Panics if there
    /// is no such slot.
    pub fn slack(&self, place: usize, probe: &Probe) -> f32 {
        self.errors[place] * (1.0 + probe.error) + probe.error + ROUNDING
    }

    fn tile(&self, tile: usize) -> scan::Tile<'_> {
        let rows = tile * TILE..(tile + 1) * TILE;
        let whole = "a tile has so many rows";
        scan::Tile {
            bytes: &self.bytes[rows.start * self.dims..rows.end * self.dims],
            biases: self.biases[rows.clone()].try_into().expect(whole),
            scales: self.scales[rows.clone()].try_into().expect(whole),
            errors: self.errors[rows].try_into().expect(whole),
        }
    }
}

impl Probe {
    pub fn new(row: &[f32]) -> Self {
        let mut bytes = vec![0x80; row.len().next_multiple_of(GROUP)];
        let (scale, error) = quantise(row, &mut bytes[..row.len()]);
        Self { bytes, scale, error }
    }

    pub fn is_zero(&self) -> bool {
        self.scale == 0.0
    }

    /// Bytes that [`write`](Self::write) appends for a row of `dims` numbers.
    pub fn written(dims: usize) -> usize {
        dims.next_multiple_of(GROUP) + 2 * size_of::<f32>()
    }

    /// Appends the row, for [`read`](Self::read).
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(&self.scale.to_le_bytes());
        out.extend_from_slice(&self.error.to_le_bytes());
    }

    /// Reads a row that was written; too few bytes give no row.
    pub fn read(written: &[u8]) -> Self {
        let Some((rest, error)) = written.split_last_chunk() else { return Self::default() };
        let Some((bytes, scale)) = rest.split_last_chunk() else { return Self::default() };
        let [scale, error] = [*scale, *error].map(f32::from_le_bytes);
        Self { bytes: bytes.to_vec(), scale, error }
    }

    /// The query for comparisons: everything divided by its scale.
    #[inline]
    fn at_least(&self, least: f32) -> scan::Probe<'_> {
        let scale = self.scale.max(f32::MIN_POSITIVE);
        scan::Probe {
            bytes: &self.bytes,
            gain: (1.0 + self.error) / scale,
            least: (least - self.error - ROUNDING) / scale,
        }
    }

    /// For comparisons of bytes alone; the bound is slightly lower because of rounding.
    #[inline]
    fn near(&self, least: f32) -> scan::Probe<'_> {
        let scale = self.scale.max(f32::MIN_POSITIVE);
        scan::Probe { bytes: &self.bytes, gain: 0.0, least: (least - ROUNDING) / scale }
    }
}

#[cfg(test)]
mod tests {
    use crate::random::SplitMix64;
    use crate::scan::{Probe, QUERIES, ROWS, Shelf};
    use crate::simd::tests::at_every_width;

    fn unit(dims: usize, random: &mut SplitMix64) -> Vec<f32> {
        let row: Vec<f32> = (0..dims).map(|_| (random.unit() - 0.5) as f32).collect();
        let length = row.iter().map(|number| number * number).sum::<f32>().sqrt();
        row.iter().map(|number| number / length).collect()
    }

    fn sum(a: &Probe, b: &Probe) -> i32 {
        let signed = |byte: &u8| i32::from((byte ^ 0x80).cast_signed());
        a.bytes.iter().zip(&b.bytes).map(|(a, b)| signed(a) * signed(b)).sum()
    }

    #[test]
    fn what_is_near_has_its_product_and_nothing_else_is_near() {
        let mut random = SplitMix64::seeded(3);
        for dims in [1, 3, 50, 256, 300] {
            let mut rows: Vec<Vec<f32>> = (0..2 * ROWS).map(|_| unit(dims, &mut random)).collect();
            // All bytes as large as they can be.
            let even = (dims as f32).sqrt().recip();
            rows[5] = vec![even; dims];
            rows[70] = vec![-even; dims];
            let mut shelf = Shelf::new(dims, rows.len());
            rows.iter().enumerate().for_each(|(place, row)| shelf.put(place, row));
            let mut asked: [Vec<f32>; QUERIES] = std::array::from_fn(|_| unit(dims, &mut random));
            asked[2] = vec![even; dims];
            asked[3] = vec![-even; dims];
            let probes = [0, 1, 2, 3].map(|at: usize| {
                let mut written = Vec::new();
                Probe::new(&asked[at]).write(&mut written);
                assert_eq!(written.len(), Probe::written(dims));
                Probe::read(&written)
            });
            at_every_width(|| {
                let leasts = [f32::NEG_INFINITY, -0.2, 0.0, 0.05, 0.3, 0.999];
                for (least, tile) in leasts.iter().flat_map(|&least| [(least, 0), (least, 1)]) {
                    let mut sums = [[0; ROWS]; QUERIES];
                    let asked_for = |at: usize| (&probes[at], least);
                    let near = shelf.near(tile, (QUERIES, asked_for), Some(&mut sums));
                    // A query gets the same result alone and with others.
                    let mut alone = [[0; ROWS]; QUERIES];
                    let of_one = shelf.near(tile, (1, asked_for), Some(&mut alone));
                    assert_eq!((of_one[0], alone[0]), (near[0], sums[0]), "{dims} {least}");
                    for (query, (near, sums)) in near.iter().zip(&sums).enumerate() {
                        for (at, &told) in sums.iter().enumerate() {
                            let place = tile * ROWS + at;
                            let sum = sum(&Probe::new(&rows[place]), &probes[query]);
                            assert_eq!(told, sum, "{dims}");
                            let product = shelf.product(place, &probes[query], sum);
                            let (row, asked) = (&rows[place], &asked[query]);
                            let exact: f32 = row.iter().zip(asked).map(|(x, y)| x * y).sum();
                            assert!((product - exact).abs() < 0.02, "{dims} {product} {exact}");
                            let slack = shelf.slack(place, &probes[query]);
                            assert!((product - exact).abs() <= slack && slack < 0.05, "{slack}");
                            let found = near >> at & 1 == 1;
                            assert!(found || product < least, "{dims} {product} {least}");
                            assert!(!found || product > least - 0.001, "{dims} {product} {least}");
                        }
                    }
                }
            });
        }
    }
}
