//! What a minibatch says of the weights: its mean loss and penalty, and how they change with each
//! weight.

use cognate_kernels::simd;

use crate::weights::distance::{Bench, Ruler};
use crate::weights::loss::Slope;

/// What is made small.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objective {
    pub(super) ruler: Ruler,
    pub(super) slope: Slope,
    /// What the sum of the squared weights counts.
    pub(super) lambda: f64,
}

/// What it is computed in, with its derivative by each weight.
#[derive(Debug, Default)]
pub(super) struct Workbench {
    pub(super) gradient: Vec<f64>,
    bench: Bench,
    related: Vec<bool>,
    distances: Vec<f64>,
    by_distance: Vec<f64>,
    by_weight: Vec<f64>,
}

impl Objective {
    /// The mean loss of couples, given by form and label, and the penalty; the derivative goes into
    /// the workbench.
    pub(super) fn of(
        &self,
        couples: &[(&[f32], bool)],
        weights: &[f64],
        work: &mut Workbench,
    ) -> f64 {
        let ranks = weights.len();
        work.by_weight.resize(couples.len() * ranks, 0.0);
        work.related.clear();
        work.distances.clear();
        let slopes = work.by_weight.chunks_exact_mut(ranks);
        for (at, ((form, related), slope)) in couples.iter().zip(slopes).enumerate() {
            // Forms lie anywhere: the next one comes near while this one is used.
            if let Some((next, _)) = couples.get(at + 1) {
                simd::prefetch(next);
            }
            work.related.push(*related);
            work.distances.push(self.ruler.slope(form, weights, &mut work.bench, slope));
        }
        let loss = self.slope.of(&work.related, &work.distances, &mut work.by_distance);
        work.gradient.clear();
        work.gradient.extend(weights.iter().map(|weight| 2.0 * self.lambda * weight));
        for (by_weight, by_distance) in work.by_weight.chunks_exact(ranks).zip(&work.by_distance) {
            for (sum, slope) in work.gradient.iter_mut().zip(by_weight) {
                *sum += by_distance * slope;
            }
        }
        loss + self.lambda * weights.iter().map(|weight| weight * weight).sum::<f64>()
    }
}
