//! k-means: centroids of many rows by Lloyd's iteration from a k-means++ start (Arthur and
//! Vassilvitskii 2007). What the rows are, and how the centroids are used, is not known here.
//!
//! Threads share out rows when distances are taken and clusters when means are taken; what is
//! computed for one row or one cluster never depends on the share, and sums over all rows are taken
//! by one thread in the order of rows. So the result has the same bits for any number of threads.

use std::thread;

use super::nearest::{BLOCK, Panels, Rows, squared_distance};
use crate::random::SplitMix64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMeans {
    /// The number of centroids, if there are as many rows.
    pub clusters: usize,
    pub seed: u64,
    /// The search stops after this many updates, or when no row changes cluster.
    pub max_iterations: usize,
    pub threads: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    pub centroids: Vec<f32>,
    pub assignment: Vec<u32>,
    /// The sum of squared distances of the rows to their centroids.
    pub inertia: f64,
    pub iterations: usize,
}

impl KMeans {
    /// Finds centroids of `rows` of `dim` finite numbers each. If rows repeat so often that there
    /// are fewer different rows than clusters, some centroids are equal and stay empty. Panics if
    /// `rows` is not a whole number of rows, or a thread cannot be started.
    pub fn fit(&self, rows: &[f32], dim: usize) -> Clusters {
        let rows = Rows::new(rows, dim);
        self.descend(&rows, self.start(&rows))
    }

    /// As [`KMeans::fit`], from the given centroids instead of a random start. Panics if `rows` or
    /// `centroids` is not a whole number of rows, if there are rows but no centroids, or if a
    /// thread cannot be started.
    pub fn fit_from(&self, rows: &[f32], dim: usize, centroids: Vec<f32>) -> Clusters {
        let rows = Rows::new(rows, dim);
        assert!(centroids.len().is_multiple_of(rows.dim), "centroids are as long as rows");
        assert!(rows.count == 0 || !centroids.is_empty(), "rows need a centroid to belong to");
        self.descend(&rows, centroids)
    }

    /// k-means++: each next centroid is a row drawn in proportion to its squared distance from
    /// those before.
    fn start(&self, rows: &Rows<'_>) -> Vec<f32> {
        let clusters = self.clusters.min(rows.count).max(usize::from(rows.count > 0));
        let mut random = SplitMix64::seeded(self.seed);
        let mut distances = vec![f32::INFINITY; rows.count];
        let mut centroids = Vec::with_capacity(clusters * rows.dim);
        while centroids.len() < clusters * rows.dim {
            let chosen = if centroids.is_empty() {
                (random.unit() * rows.count as f64) as usize
            } else {
                draw(&distances, random.unit())
            };
            let centroid = rows.row(chosen.min(rows.count - 1));
            centroids.extend_from_slice(centroid);
            let share = rows.count.div_ceil(self.threads.max(1));
            run_shares(distances.chunks_mut(share).enumerate(), |(part, distances)| {
                for (at, nearest) in distances.iter_mut().enumerate() {
                    let row = rows.row(part * share + at);
                    *nearest = nearest.min(squared_distance(row, centroid));
                }
            });
        }
        centroids
    }

    fn descend(&self, rows: &Rows<'_>, mut centroids: Vec<f32>) -> Clusters {
        let mut members = Members {
            assignment: vec![0; rows.count],
            distances: vec![0.0; rows.count],
            sizes: vec![0; centroids.len() / rows.dim],
        };
        let mut iterations = 0;
        self.assign(rows, &mut centroids, &mut members);
        while iterations < self.max_iterations {
            self.update(rows, &mut centroids, &members);
            iterations += 1;
            if !self.assign(rows, &mut centroids, &mut members) {
                break;
            }
        }
        let inertia = members.distances.iter().copied().map(f64::from).sum();
        Clusters { centroids, assignment: members.assignment, inertia, iterations }
    }

    /// Gives each row to its nearest centroid, and each centroid left without rows a row. Returns
    /// whether anything changed.
    fn assign(&self, rows: &Rows<'_>, centroids: &mut [f32], members: &mut Members) -> bool {
        if rows.count == 0 {
            return false;
        }
        let panels = Panels::new(centroids, rows.dim);
        let share = rows.count.div_ceil(self.threads.max(1)).next_multiple_of(BLOCK);
        let before = members.assignment.clone();
        let parts = members.assignment.chunks_mut(share).zip(members.distances.chunks_mut(share));
        run_shares(parts.enumerate(), |(part, (assignment, distances))| {
            let blocks = assignment.chunks_mut(BLOCK).zip(distances.chunks_mut(BLOCK));
            for (block, (assignment, distances)) in blocks.enumerate() {
                let first = part * share + block * BLOCK;
                panels.nearest(rows, first, assignment);
                for (at, (&cluster, distance)) in assignment.iter().zip(distances).enumerate() {
                    let centroid = &centroids[cluster as usize * rows.dim..][..rows.dim];
                    *distance = squared_distance(rows.row(first + at), centroid);
                }
            }
        });
        members.count_members();
        members.fill_empty(rows, centroids);
        members.assignment != before
    }

    fn update(&self, rows: &Rows<'_>, centroids: &mut [f32], members: &Members) {
        let (starts, order) = members.by_cluster();
        let clusters = members.sizes.len();
        let share = clusters.div_ceil(self.threads.max(1)).max(1);
        run_shares(centroids.chunks_mut(share * rows.dim).enumerate(), |(part, centroids)| {
            let mut sum = vec![0.0f64; rows.dim];
            for (at, centroid) in centroids.chunks_exact_mut(rows.dim).enumerate() {
                let cluster = part * share + at;
                let own = &order[starts[cluster]..starts[cluster + 1]];
                if own.is_empty() {
                    continue;
                }
                sum.fill(0.0);
                for &row in own {
                    for (sum, &x) in sum.iter_mut().zip(rows.row(row as usize)) {
                        *sum += f64::from(x);
                    }
                }
                for (x, sum) in centroid.iter_mut().zip(&sum) {
                    *x = (sum / own.len() as f64) as f32;
                }
            }
        });
    }
}

/// Runs each share on a thread of its own; a single share on the current thread.
fn run_shares<T: Send>(shares: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    if shares.len() <= 1 {
        shares.for_each(work);
        return;
    }
    let work = &work;
    thread::scope(|scope| {
        for share in shares {
            scope.spawn(move || work(share));
        }
    });
}

/// The cluster of each row, its distance from the centroid, and the sizes of the clusters.
struct Members {
    assignment: Vec<u32>,
    distances: Vec<f32>,
    sizes: Vec<usize>,
}

impl Members {
    fn count_members(&mut self) {
        self.sizes.fill(0);
        for &cluster in &self.assignment {
            self.sizes[cluster as usize] += 1;
        }
    }

    /// Gives each empty cluster the row farthest from its centroid (the first of equals), unless
    /// all rows sit on their centroids.
    fn fill_empty(&mut self, rows: &Rows<'_>, centroids: &mut [f32]) {
        for empty in 0..self.sizes.len() {
            if self.sizes[empty] > 0 {
                continue;
            }
            let mut farthest = None;
            let mut most = 0.0;
            for (row, &distance) in self.distances.iter().enumerate() {
                if distance > most && self.sizes[self.assignment[row] as usize] > 1 {
                    (farthest, most) = (Some(row), distance);
                }
            }
            let Some(row) = farthest else {
                return;
            };
            self.sizes[self.assignment[row] as usize] -= 1;
            self.sizes[empty] = 1;
            self.assignment[row] = empty as u32;
            self.distances[row] = 0.0;
            centroids[empty * rows.dim..][..rows.dim].copy_from_slice(rows.row(row));
        }
    }

    fn by_cluster(&self) -> (Vec<usize>, Vec<u32>) {
        let mut starts = vec![0];
        starts.extend(self.sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        let mut next = starts.clone();
        let mut order = vec![0; self.assignment.len()];
        for (row, &cluster) in self.assignment.iter().enumerate() {
            order[next[cluster as usize]] = row as u32;
            next[cluster as usize] += 1;
        }
        (starts, order)
    }
}

/// Returns the index at which the running sum first exceeds the given share of the total.
fn draw(weights: &[f32], share: f64) -> usize {
    let total: f64 = weights.iter().copied().map(f64::from).sum();
    let target = share * total;
    let mut passed = 0.0;
    for (at, &weight) in weights.iter().enumerate() {
        passed += f64::from(weight);
        if weight > 0.0 && passed > target {
            return at;
        }
    }
    weights.len().saturating_sub(1)
}
