//! Gradient descent on the weights (epochs of minibatches with as many related couples as others,
//! one reduction of the rate, and the stopping rule), and the search for κ by five-fold
//! cross-validation.
//!
//! A descent is determined by its settings and couples. The order of an epoch depends only on the
//! seed and the epoch's number, so the state between two epochs is all that is needed to resume.
//!
//! The grid of κ consists of powers of two and is extended while the best value is at an edge. For
//! each κ and fold, weights are trained without the fold, the threshold is chosen on the training
//! couples, and the split error is measured on the fold; the κ with the lowest mean error wins, the
//! smallest of equal ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cognate::methods::Measure;
use cognate::model::provenance::Separation;
use cognate_files::progress::Progress;
use cognate_kernels::simd;
use cognate_stats::classification::{Confusion, of_label};
use cognate_stats::distribution::jensen_shannon;
use cognate_stats::threshold::{Criterion, best_threshold};
use rayon::prelude::*;
use serde::Serialize;

use crate::Result;
use crate::sampling::generator;
use crate::weights::forms::{DistanceBuffers, DistanceScale, FIRST_WEIGHT, KEPT_BYTES, PairForms};
use crate::weights::{FOLDS, HALF, ORDER_OF_BATCHES, ORDER_OF_COUPLES, SEARCHED, forms};

/// The learning rate before and after its reduction.
const RATES: [f64; 2] = [0.01, 0.001];
/// Minimum relative decrease of the loss that counts as progress.
const MIN_FALL: f64 = 0.0005;
/// Minibatches whose forms are held in memory at a time.
const BATCHES: usize = 64;

pub(super) struct Descent<'f> {
    pub(super) forms: &'f PairForms<'f>,
    pub(super) objective: Objective,
    pub(super) seed: u64,
    pub(super) epochs: usize,
    pub(super) by_label: [&'f [usize]; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) weights: Vec<f64>,
    pub(super) losses: Vec<f64>,
    pub(super) lowered: bool,
    pub(super) finished: bool,
}

impl State {
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            weights: vec![FIRST_WEIGHT; ranks],
            losses: Vec::new(),
            lowered: false,
            finished: false,
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        self.weights.iter().chain(&self.losses).all(|number| number.is_finite())
    }
}

impl Descent<'_> {
    /// Continues from `state` to the end. Calls `after` with the state after every epoch; an error
    /// from it ends the run.
    pub(super) fn run(
        &self,
        state: &mut State,
        progress: &Progress,
        after: &mut dyn FnMut(&State) -> Result<()>,
    ) -> Result<()> {
        while !state.finished {
            self.epoch(state, progress);
            after(state)?;
        }
        Ok(())
    }

    fn batches(&self) -> usize {
        self.by_label.iter().map(|places| places.len() / HALF).min().unwrap_or(0)
    }

    /// One pass over the couples; its loss may reduce the rate or end the descent.
    fn epoch(&self, state: &mut State, progress: &Progress) {
        let (number, batches) = (state.losses.len(), self.batches());
        let rate = RATES[usize::from(state.lowered)];
        let (mut work, mut made) = (LossBuffers::default(), Vec::new());
        let (mut sum, mut gone) = (0.0, 0);
        for places in self.order(number).chunks(BATCHES * 2 * HALF) {
            let block = self.forms.block(places, &mut made);
            for first in (0..places.len()).step_by(2 * HALF) {
                let couple = |at: usize| (block.form(at), self.forms.related(places[at]));
                let batch: Vec<_> = (first..first + 2 * HALF).map(couple).collect();
                sum += self.objective.of(&batch, &state.weights, &mut work);
                for (weight, slope) in state.weights.iter_mut().zip(&work.gradient) {
                    *weight -= rate * slope;
                }
                gone += 1;
            }
            // If the number overflows, any value is good enough for a progress bar.
            let all = self.epochs.saturating_mul(batches);
            progress.at((number * batches + gone) as u64, all as u64);
            progress.say(format!("epoch {}  loss {:.5}", number + 1, sum / gone as f64));
        }
        let loss = sum / batches.max(1) as f64;
        if let Some(&previous) = state.losses.last() {
            let fell = previous - loss > MIN_FALL * previous.abs();
            state.finished = !fell && state.lowered;
            state.lowered |= !fell;
        }
        state.losses.push(loss);
        state.finished |= state.losses.len() >= self.epochs || !state.is_finite();
    }

    /// The order of an epoch: each minibatch is half related, half not. Couples left over after the
    /// last full minibatch are used in other epochs.
    fn order(&self, epoch: usize) -> Vec<usize> {
        let mut by_label = self.by_label.map(<[usize]>::to_vec);
        for (label, places) in by_label.iter_mut().enumerate() {
            let at = [epoch as u64, label as u64];
            generator(self.seed, ORDER_OF_BATCHES, at).shuffle(places);
        }
        let [related, others] = &by_label;
        let halves = related.chunks_exact(HALF).zip(others.chunks_exact(HALF));
        halves.flat_map(|(related, others)| related.iter().chain(others)).copied().collect()
    }
}

const COUPLES: usize = 20_000;
/// Exponents of the smallest and the largest κ that are tried.
const WIDEST: [i32; 2] = [-8, 14];

pub(super) type Finished = BTreeMap<(i32, usize), f64>;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tried {
    pub kappa: f64,
    pub split_error: f64,
}

/// Exponents of κ that are tried first. If frequent words share a direction, cosines are close
/// together at first and far apart later, so a loss that is steep at the end must look flat in the
/// first unit; with a κ that is steep from the beginning, training never leaves its start.
fn first(measure: Measure) -> std::ops::RangeInclusive<i32> {
    match measure {
        Measure::Euclidean => 0..=7,
        Measure::Cosine => -4..=4,
    }
}

pub(super) fn most_couples(measure: Measure, ranks: usize) -> usize {
    COUPLES.min(KEPT_BYTES / forms::square_bytes(measure, ranks))
}

/// Draws the couples for the search, as many of each label if there are enough.
pub(super) fn draw(by_label: &[Vec<usize>; 2], seed: u64, most: usize) -> [Vec<usize>; 2] {
    [0, 1].map(|label| {
        let mut places = by_label[label].clone();
        let at = [SEARCHED, label as u64];
        generator(seed, ORDER_OF_COUPLES, at).shuffle(&mut places);
        places.truncate(most / 2);
        places
    })
}

pub(super) struct Search<'f> {
    pub(super) forms: &'f PairForms<'f>,
    pub(super) scale: DistanceScale,
    pub(super) lambda: f64,
    pub(super) seed: u64,
    pub(super) epochs: usize,
    pub(super) by_label: [Vec<usize>; 2],
}

impl Search<'_> {
    pub(super) fn run(
        &self,
        finished: Finished,
        after: &(dyn Fn(&Finished) -> Result<()> + Sync),
    ) -> Result<Finished> {
        let progress = Progress::run("searching κ");
        let finished = Mutex::new(finished);
        let held = || finished.lock().unwrap_or_else(PoisonError::into_inner);
        let mut powers: Vec<i32> = first(self.forms.measure).collect();
        loop {
            let runs = powers.iter().flat_map(|&power| (0..FOLDS).map(move |fold| (power, fold)));
            let all = (powers.len() * FOLDS) as u64;
            let missing: Vec<_> = runs.filter(|run| !held().contains_key(run)).collect();
            progress.at(held().len() as u64, all);
            missing.par_iter().try_for_each(|&(power, fold)| {
                let error = self.split_error(power, fold)?;
                let mut finished = held();
                finished.insert((power, fold), error);
                progress.at(finished.len() as u64, all);
                after(&finished)
            })?;
            match further(&by_power(&held())) {
                Some(power) => powers.push(power),
                None => break,
            }
        }
        Ok(finished.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The split error on a fold of weights trained without it.
    fn split_error(&self, power: i32, fold: usize) -> Result<f64> {
        let part = |inside: bool| {
            self.by_label.each_ref().map(|places| -> Vec<usize> {
                let couples = places.iter().enumerate();
                let wanted = couples.filter(|(at, _)| (at % FOLDS == fold) == inside);
                wanted.map(|(_, place)| *place).collect()
            })
        };
        let [related, others] = &part(false);
        let slope = Slope::Median { kappa: f64::from(power).exp2() };
        let descent = Descent {
            forms: self.forms,
            objective: Objective { scale: self.scale, slope, lambda: self.lambda },
            seed: self.seed,
            epochs: self.epochs,
            by_label: [related, others],
        };
        let mut state = State::new(self.forms.ranks);
        descent.run(&mut state, &Progress::hidden(), &mut |_| Ok(()))?;
        let measured = |by_label: &[Vec<usize>; 2]| {
            let places = by_label.concat();
            Measured {
                related: places.iter().map(|&place| self.forms.related(place)).collect(),
                distances: self.scale.all(self.forms, &places, &state.weights),
            }
        };
        let threshold = measured(&part(false)).threshold();
        // Weights that are not finite separate nothing.
        let error = threshold.and_then(|found| measured(&part(true)).split_error(found));
        Ok(error.unwrap_or(1.0))
    }
}

pub(super) fn tried(finished: &Finished) -> Vec<Tried> {
    let kappa = |power: i32| f64::from(power).exp2();
    let tried = by_power(finished).into_iter();
    tried.map(|(power, split_error)| Tried { kappa: kappa(power), split_error }).collect()
}

pub(super) fn best(finished: &Finished) -> Option<f64> {
    let tried = tried(finished);
    let best = tried.iter().min_by(|a, b| a.split_error.total_cmp(&b.split_error));
    best.map(|best| best.kappa)
}

/// The mean split error of each exponent over its finished folds.
fn by_power(finished: &Finished) -> BTreeMap<i32, f64> {
    let mut folds: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for ((power, _), error) in finished {
        folds.entry(*power).or_default().push(*error);
    }
    let mean = |errors: Vec<f64>| errors.iter().sum::<f64>() / errors.len() as f64;
    folds.into_iter().map(|(power, errors)| (power, mean(errors))).collect()
}

fn further(tried: &BTreeMap<i32, f64>) -> Option<i32> {
    let best = tried.iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
    let (&best, _) = best?;
    let [lowest, highest] = WIDEST;
    if tried.keys().next() == Some(&best) && best > lowest {
        return Some(best - 1);
    }
    (tried.keys().next_back() == Some(&best) && best < highest).then_some(best + 1)
}

#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    pub(super) related: Vec<bool>,
    pub(super) distances: Vec<f64>,
}

impl Measured {
    pub(super) fn threshold(&self) -> Option<f64> {
        best_threshold(&self.related, &self.likeness(), Criterion::Accuracy)
            .map(|likeness| -likeness)
    }

    /// The share of these couples on the wrong side of a threshold.
    pub(super) fn split_error(&self, threshold: f64) -> Option<f64> {
        let confusion = Confusion::at(-threshold, &self.related, &self.likeness())?;
        Some(confusion.split_error())
    }

    /// The separation of these couples, with a threshold chosen on other couples.
    pub(super) fn parting(&self, threshold: f64) -> Option<Separation> {
        let split_error = self.split_error(threshold)?;
        let of = |wanted| of_label(&self.related, &self.distances, wanted);
        let js_divergence = jensen_shannon(&of(true), &of(false))?;
        Some(Separation { split_error, js_divergence })
    }

    /// Negated distances: larger means more similar, as the measures expect.
    fn likeness(&self) -> Vec<f64> {
        self.distances.iter().map(|distance| -distance).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Slope {
    Contrastive,
    Median { kappa: f64 },
}

impl Slope {
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

/// Indices of the two middle distances; equal if the number of distances is odd.
fn middle(distances: &[f64]) -> [usize; 2] {
    let mut order: Vec<usize> = (0..distances.len()).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    [order[(order.len() - 1) / 2], order[order.len() / 2]]
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn logistic(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Objective {
    pub(super) scale: DistanceScale,
    pub(super) slope: Slope,
    pub(super) lambda: f64,
}

#[derive(Debug, Default)]
pub(super) struct LossBuffers {
    pub(super) gradient: Vec<f64>,
    bench: DistanceBuffers,
    related: Vec<bool>,
    distances: Vec<f64>,
    by_distance: Vec<f64>,
    by_weight: Vec<f64>,
}

impl Objective {
    /// The mean loss of couples, given as forms and labels, plus the penalty; writes the derivative
    /// into the workbench.
    pub(super) fn of(
        &self,
        couples: &[(&[f32], bool)],
        weights: &[f64],
        work: &mut LossBuffers,
    ) -> f64 {
        let ranks = weights.len();
        work.by_weight.resize(couples.len() * ranks, 0.0);
        work.related.clear();
        work.distances.clear();
        let slopes = work.by_weight.chunks_exact_mut(ranks);
        for (at, ((form, related), slope)) in couples.iter().zip(slopes).enumerate() {
            // PairForms are scattered in memory: prefetch the next one.
            if let Some((next, _)) = couples.get(at + 1) {
                simd::prefetch(next);
            }
            work.related.push(*related);
            work.distances.push(self.scale.slope(form, weights, &mut work.bench, slope));
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
