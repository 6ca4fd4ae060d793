//! Reduces the teachers' vectors to targets for words to learn: their strongest directions, without
//! the mean of all texts.
//!
//! With y the teachers' unit vectors of a text, one after another and divided by the root of their
//! number (so that a cosine is the mean of the teachers' cosines), and P the leading eigenvectors of
//! E[y y'], a text's target is t = unit(unit(P'y) - m), where m is the mean of unit(P'y).

use cognate_kernels::linalg::{Eigen, Moments, symmetric_eigen};
use cognate_kernels::{simd, vector};
use half::f16;
use ndarray::Array2;
use rayon::prelude::*;

use crate::cache::Embeddings;

/// Maximum texts of each kind for computing moments and means.
const MEASURED: usize = 100_000;
/// Texts that a thread processes at a time. Partial sums are added in order, so that they do not
/// depend on the number of threads.
const PART: usize = 8192;
/// Texts projected at a time.
const STRIPE: usize = 64;
/// Vectors shorter than this have no direction.
const SHORTEST: f32 = 1e-6;

/// The vectors of the same texts by every teacher.
#[derive(Debug, Clone, Default)]
pub struct Views {
    views: Vec<Embeddings>,
}

/// Directions, and the mean of all texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// The directions, one after another.
    axes: Vec<f32>,
    /// Length of a direction.
    width: usize,
    /// The mean of projected unit vectors.
    mean: Vec<f32>,
    /// The share of the vectors' squared length that the directions retain.
    pub kept: f64,
}

/// The target of each text: a row of length 1, or zeros for a text without direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Targets {
    pub rows: Vec<f16>,
    pub dims: usize,
}

impl Views {
    /// Combines the vectors of several teachers.
    pub fn new(views: Vec<Embeddings>) -> Self {
        Self { views }
    }

    pub fn len(&self) -> usize {
        self.views.first().map_or(0, Embeddings::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn width(&self) -> usize {
        self.views.iter().map(|view| view.width).sum()
    }

    /// Writes the joint vector of a text.
    ///
    /// # Panics
    ///
    /// If there is no such text, or `row` has not the joint width.
    pub fn fill(&self, text: usize, row: &mut [f32]) {
        let share = 1.0 / (self.views.len() as f32).sqrt();
        let mut at = 0;
        for view in &self.views {
            for (to, from) in row[at..at + view.width].iter_mut().zip(view.row(text)) {
                *to = share * from.to_f32();
            }
            at += view.width;
        }
    }

    fn second_moment(&self) -> Array2<f64> {
        let parts = parts(self.len().min(MEASURED));
        let of_part = |texts: std::ops::Range<usize>| {
            let (mut moments, mut row) = (Moments::new(self.width()), vec![0.0; self.width()]);
            for text in texts {
                self.fill(text, &mut row);
                moments.add(&row);
            }
            moments
        };
        let moments: Vec<Moments> = parts.into_par_iter().map(of_part).collect();
        let all = moments.into_iter().reduce(|mut all, part| {
            all.merge(part);
            all
        });
        all.unwrap_or_else(|| Moments::new(self.width())).second_moment()
    }
}

fn parts(texts: usize) -> Vec<std::ops::Range<usize>> {
    (0..texts).step_by(PART).map(|from| from..texts.min(from + PART)).collect()
}

impl Space {
    /// The `dims` strongest directions of the texts; each kind has the same weight.
    pub fn of(kinds: &[&Views], dims: usize) -> Self {
        let width = kinds.first().map_or(0, |views| views.width());
        let mut sum = Array2::zeros((width, width));
        for views in kinds {
            sum += &views.second_moment();
        }
        let Eigen { values, vectors } = symmetric_eigen(sum.view());
        let dims = dims.min(width);
        let axes: Vec<f32> =
            vectors.rows().into_iter().take(dims).flatten().map(|&number| number as f32).collect();
        let kept = values.iter().take(dims).sum::<f64>() / values.sum().max(f64::MIN_POSITIVE);
        let mut space = Self { axes, width, mean: vec![0.0; dims], kept };
        space.mean = space.measure_mean(kinds);
        space
    }

    /// Dimensions of a target.
    pub fn dims(&self) -> usize {
        self.mean.len()
    }

    fn measure_mean(&self, kinds: &[&Views]) -> Vec<f32> {
        let (mut sum, mut texts) = (vec![0.0_f64; self.dims()], 0_usize);
        for views in kinds {
            let parts = parts(views.len().min(MEASURED));
            let of_part = |texts: std::ops::Range<usize>| {
                let mut sum = vec![0.0_f64; self.dims()];
                let mut stripe = Stripe::default();
                for from in texts.clone().step_by(STRIPE) {
                    let stripe = stripe.of(self, views, from..texts.end.min(from + STRIPE));
                    for row in stripe.chunks_exact(self.dims()) {
                        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
                    }
                }
                sum
            };
            let sums: Vec<Vec<f64>> = parts.into_par_iter().map(of_part).collect();
            for part in sums {
                sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            texts += views.len().min(MEASURED);
        }
        sum.into_iter().map(|x| (x / texts.max(1) as f64) as f32).collect()
    }

    /// unit(P'y) - m of every text.
    pub fn centred(&self, views: &Views) -> Vec<f32> {
        let mut rows = vec![0.0; views.len() * self.dims()];
        let parts = rows.par_chunks_mut(STRIPE * self.dims()).enumerate();
        parts.for_each_init(Stripe::default, |stripe, (part, rows)| {
            let texts = part * STRIPE..views.len().min((part + 1) * STRIPE);
            rows.copy_from_slice(stripe.of(self, views, texts));
            for row in rows.chunks_exact_mut(self.dims()) {
                row.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x -= mean);
            }
        });
        rows
    }

    pub fn targets(&self, views: &Views) -> Targets {
        Targets::of(self.centred(views), self.dims())
    }
}

impl Targets {
    /// Targets from rows, which are scaled to length 1.
    pub fn of(mut rows: Vec<f32>, dims: usize) -> Self {
        rows.par_chunks_mut(dims.max(1)).for_each(unit);
        Self { rows: rows.into_iter().map(f16::from_f32).collect(), dims }
    }

    pub fn len(&self) -> usize {
        self.rows.len().checked_div(self.dims).unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The target of a text.
    ///
    /// # Panics
    ///
    /// If there is no such text.
    pub fn row(&self, text: usize) -> &[f16] {
        &self.rows[text * self.dims..(text + 1) * self.dims]
    }

    /// Appends the targets of further texts.
    pub fn extend(&mut self, other: Self) {
        self.dims = other.dims;
        self.rows.extend(other.rows);
    }
}

/// Scales a row to length 1, or sets it to zeros if it is too short.
pub fn unit(row: &mut [f32]) {
    let norm = simd::dot(row, row).sqrt();
    let factor = if norm > SHORTEST { 1.0 / norm } else { 0.0 };
    row.iter_mut().for_each(|x| *x *= factor);
}

/// Buffers for projecting some texts.
#[derive(Default)]
struct Stripe {
    joint: Vec<f32>,
    projected: Vec<f32>,
}

impl Stripe {
    /// Returns unit(P'y) for each text of a range.
    fn of(&mut self, space: &Space, views: &Views, texts: std::ops::Range<usize>) -> &[f32] {
        self.joint.clear();
        self.joint.resize(texts.len() * space.width, 0.0);
        for (text, row) in texts.zip(self.joint.chunks_exact_mut(space.width.max(1))) {
            views.fill(text, row);
        }
        vector::products(&self.joint, &space.axes, space.width, &mut self.projected);
        self.projected.chunks_exact_mut(space.dims().max(1)).for_each(unit);
        &self.projected
    }
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;
    use cognate_train::sampling;

    use super::*;

    fn views(texts: usize, widths: &[usize], random: &mut Random) -> Views {
        let view = |&width: &usize| {
            let mut rows: Vec<f32> = (0..texts * width)
                .map(|at| (1.0 + sampling::normal(random)) as f32 / (1 + at % width) as f32)
                .collect();
            rows.chunks_exact_mut(width).for_each(unit);
            Embeddings { rows: rows.into_iter().map(f16::from_f32).collect(), width }
        };
        Views::new(widths.iter().map(view).collect())
    }

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn a_joint_cosine_is_the_mean_of_the_teachers_cosines() {
        let views = views(2, &[6, 10], &mut Random::seeded(1));
        let mut rows = [vec![0.0; 16], vec![0.0; 16]];
        rows.iter_mut().enumerate().for_each(|(text, row)| views.fill(text, row));
        let cosine = |view: &Embeddings| {
            let of = |text| view.row(text).iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
            dot(&of(0), &of(1))
        };
        let mean = views.views.iter().map(cosine).sum::<f32>() / 2.0;
        assert!((dot(&rows[0], &rows[1]) - mean).abs() < 1e-3);
    }

    #[test]
    fn targets_have_no_mean_and_all_directions_keep_everything() {
        let views = views(20_000, &[12], &mut Random::seeded(2));
        let space = Space::of(&[&views], 12);
        assert!((space.kept - 1.0).abs() < 1e-9);
        let centred = space.centred(&views);
        for column in 0..12 {
            let sum: f64 = centred.iter().skip(column).step_by(12).map(|&x| f64::from(x)).sum();
            assert!((sum / 20_000.0).abs() < 1e-4, "{column}");
        }
        // With all directions, unit(P'y) is a rotation, which preserves distances.
        let mut first = vec![0.0; 12];
        let mut second = first.clone();
        views.fill(3, &mut first);
        views.fill(4, &mut second);
        let apart = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
        };
        let turned = apart(&centred[36..48], &centred[48..60]);
        assert!((turned - apart(&first, &second)).abs() < 1e-3);
        let narrow = Space::of(&[&views], 4);
        assert!(narrow.kept < 1.0 && narrow.kept > 0.5, "{}", narrow.kept);
        assert_eq!(narrow.targets(&views).rows.len(), 80_000);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let views = views(30_000, &[8], &mut Random::seeded(3));
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let space = Space::of(&[&views], 5);
                let targets = space.targets(&views);
                (space, targets)
            })
        };
        assert_eq!(with(1), with(3));
    }
}
