//! The losses of De Boom et al. 2016, equations 2 and 3: numbers in, numbers out.
//!
//! With `h` 1 for a related couple and −1 for another, and `μ` the median distance of the batch:
//!
//! - contrastive: `h · d`,
//! - median: `ln(1 + exp(−κ h (μ − d)))`.
//!
//! `μ` moves with the weights too: it is the mean distance of the two couples in the middle, so the
//! loss of every couple has a part in the slope of those two.

use cognate_kernels::simd;
use serde::Serialize;

use crate::weights::forms::{Bench, Ruler};

/// The loss that training minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Couples shall lie on their side of the batch's median distance
    Median,
    /// Related couples shall be near, others far
    Contrastive,
}

impl Loss {
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Contrastive => "contrastive",
        }
    }
}

/// A loss with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Slope {
    Contrastive,
    Median {
        /// How steep it is, κ.
        kappa: f64,
    },
}

impl Slope {
    /// The mean loss of a batch; its derivative by each distance goes into `slopes`.
    pub(super) fn of(self, related: &[bool], distances: &[f64], slopes: &mut Vec<f64>) -> f64 {
        slopes.clear();
        let count = distances.len() as f64;
        let signs = related.iter().map(|&related| if related { 1.0 } else { -1.0 });
        let couples = signs.zip(distances);
        match self {
            Self::Contrastive => {
                let terms = couples.map(|(sign, distance)| {
                    slopes.push(sign / count);
                    sign * distance
                });
                terms.sum::<f64>() / count
            }
            Self::Median { kappa } => {
                let [low, high] = middle(distances);
                let median = f64::midpoint(distances[low], distances[high]);
                let terms = couples.map(|(sign, distance)| {
                    let steepness = -kappa * sign * (median - distance);
                    slopes.push(kappa * sign * logistic(steepness) / count);
                    softplus(steepness)
                });
                let loss = terms.sum::<f64>() / count;
                let shift = 0.5 * slopes.iter().sum::<f64>();
                slopes[low] -= shift;
                slopes[high] -= shift;
                loss
            }
        }
    }
}

/// The places of the two distances in the middle; twice the same where their number is odd.
fn middle(distances: &[f64]) -> [usize; 2] {
    let mut order: Vec<usize> = (0..distances.len()).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    [order[(order.len() - 1) / 2], order[order.len() / 2]]
}

/// `ln(1 + eˣ)`.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `1 / (1 + e⁻ˣ)`.
fn logistic(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

/// The objective that training minimises.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objective {
    pub(super) ruler: Ruler,
    pub(super) slope: Slope,
    /// Weight of the L2 penalty.
    pub(super) lambda: f64,
}

/// Buffers of the objective, and its derivative by each weight.
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
