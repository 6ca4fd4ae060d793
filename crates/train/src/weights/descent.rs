//! Gradient descent on the weights (epochs of minibatches with as many related couples as others, one
//! lowering of the rate, and when to stop), and the search for κ by five-fold cross-validation.
//!
//! A descent is fixed by its settings and couples. Its state between two epochs is all it needs to go
//! on, because the order of an epoch is drawn from the seed and the epoch's number alone.
//!
//! The grid of κ is of powers of two and grows where its best is at an edge. For each κ and fold, weights
//! are trained without the fold, the threshold is found on the couples they were trained on, and
//! the fold tells the split error; the κ of the lowest mean wins, of equal ones the smallest.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cognate::methods::Measure;
use cognate::model::provenance::Separation;
use cognate_files::progress::Progress;
use cognate_stats::classification::Confusion;
use cognate_stats::divergence::jensen_shannon;
use cognate_stats::threshold::{Criterion, best_threshold};
use rayon::prelude::*;
use serde::Serialize;

use crate::TrainError;
use crate::sampling::generator;
use crate::weights::forms::{FIRST_WEIGHT, Forms, KEPT_BYTES, Ruler};
use crate::weights::loss::{Objective, Slope, Workbench};
use crate::weights::{FOLDS, HALF, ORDER_OF_BATCHES, ORDER_OF_COUPLES, SEARCHED, forms};

/// The learning rate, and what it is lowered to.
const RATES: [f64; 2] = [0.01, 0.001];
/// A loss falls if it falls by more than this share of itself.
const LEAST_FALL: f64 = 0.0005;
/// Minibatches whose forms are at hand at a time.
const BATCHES: usize = 64;

pub(super) struct Descent<'f> {
    pub(super) forms: &'f Forms<'f>,
    pub(super) objective: Objective,
    pub(super) seed: u64,
    pub(super) epochs: usize,
    /// The places of related couples and of others, at least [`HALF`] of either.
    pub(super) by_label: [&'f [usize]; 2],
}

/// State between two epochs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) weights: Vec<f64>,
    pub(super) losses: Vec<f64>,
    /// Whether the second rate is in use.
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
    /// Goes on from a state to the end, and shows `after` the state after every epoch; an error of
    /// it ends the run.
    pub(super) fn run(
        &self,
        state: &mut State,
        progress: &Progress,
        after: &mut dyn FnMut(&State) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        while !state.finished {
            self.epoch(state, progress);
            after(state)?;
        }
        Ok(())
    }

    fn batches(&self) -> usize {
        self.by_label.iter().map(|places| places.len() / HALF).min().unwrap_or(0)
    }

    /// One pass over the couples; its loss lowers the rate or ends the descent.
    fn epoch(&self, state: &mut State, progress: &Progress) {
        let (number, batches) = (state.losses.len(), self.batches());
        let rate = RATES[usize::from(state.lowered)];
        let (mut work, mut made) = (Workbench::default(), Vec::new());
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
            // So many that they cannot be counted are as good as any number for a bar.
            let all = self.epochs.saturating_mul(batches);
            progress.at((number * batches + gone) as u64, all as u64);
            progress.say(format!("epoch {}  loss {:.5}", number + 1, sum / gone as f64));
        }
        let loss = sum / batches.max(1) as f64;
        if let Some(&previous) = state.losses.last() {
            let fell = previous - loss > LEAST_FALL * previous.abs();
            state.finished = !fell && state.lowered;
            state.lowered |= !fell;
        }
        state.losses.push(loss);
        state.finished |= state.losses.len() >= self.epochs || !state.is_finite();
    }

    /// The places of an epoch, half of each minibatch related. What is left over after the last
    /// whole one has its turn in another epoch, when it comes earlier.
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
/// The smallest and the largest power of two ever tried.
const WIDEST: [i32; 2] = [-8, 14];

/// The split error of each run that is finished, by the power of two that κ is and by the fold.
pub(super) type Finished = BTreeMap<(i32, usize), f64>;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tried {
    /// κ, in multiples of one over the unit.
    pub kappa: f64,
    /// Mean split error over the folds.
    pub split_error: f64,
}

/// Powers of two tried at first. Where frequent words point one way, cosines begin close together
/// and end far apart, so what is steep at the end must look flat in the first unit; a κ that is
/// steep from the beginning never leaves it.
fn first(measure: Measure) -> std::ops::RangeInclusive<i32> {
    match measure {
        Measure::Euclidean => 0..=7,
        Measure::Cosine => -4..=4,
    }
}

/// Most couples that can take part where each takes the room of these weights' forms.
pub(super) fn most_couples(measure: Measure, ranks: usize) -> usize {
    COUPLES.min(KEPT_BYTES / forms::bytes(measure, ranks))
}

/// Draws the couples that take part, as many of either label where there are enough.
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
    pub(super) forms: &'f Forms<'f>,
    pub(super) ruler: Ruler,
    pub(super) lambda: f64,
    pub(super) seed: u64,
    pub(super) epochs: usize,
    /// The places of related couples and of others.
    pub(super) by_label: [Vec<usize>; 2],
}

impl Search<'_> {
    /// Runs the missing folds; calls `after` with all finished folds after each.
    pub(super) fn run(
        &self,
        finished: Finished,
        after: &(dyn Fn(&Finished) -> Result<(), TrainError> + Sync),
    ) -> Result<Finished, TrainError> {
        let progress = Progress::run("searching κ");
        let finished = Mutex::new(finished);
        let held = || finished.lock().unwrap_or_else(PoisonError::into_inner);
        let mut powers: Vec<i32> = first(self.forms.measure()).collect();
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

    /// The share of a fold on the wrong side under weights trained without it.
    fn split_error(&self, power: i32, fold: usize) -> Result<f64, TrainError> {
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
            objective: Objective { ruler: self.ruler, slope, lambda: self.lambda },
            seed: self.seed,
            epochs: self.epochs,
            by_label: [related, others],
        };
        let mut state = State::new(self.forms.ranks());
        descent.run(&mut state, &Progress::hidden(), &mut |_| Ok(()))?;
        let measured = |by_label: &[Vec<usize>; 2]| {
            let places = by_label.concat();
            Measured {
                related: places.iter().map(|&place| self.forms.related(place)).collect(),
                distances: self.ruler.all(self.forms, &places, &state.weights),
            }
        };
        let threshold = measured(&part(false)).threshold();
        // Weights that left the finite numbers part nothing.
        let error = threshold.and_then(|found| measured(&part(true)).split_error(found));
        Ok(error.unwrap_or(1.0))
    }
}

/// Every κ that was tried, the smallest first.
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

/// The mean split error of each power, over the folds finished.
fn by_power(finished: &Finished) -> BTreeMap<i32, f64> {
    let mut folds: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for ((power, _), error) in finished {
        folds.entry(*power).or_default().push(*error);
    }
    let mean = |errors: Vec<f64>| errors.iter().sum::<f64>() / errors.len() as f64;
    folds.into_iter().map(|(power, errors)| (power, mean(errors))).collect()
}

/// The next power to try, where the best is at an edge.
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
    /// The distance that parts these couples best: related ones are at most as far.
    pub(super) fn threshold(&self) -> Option<f64> {
        best_threshold(&self.related, &self.likeness(), Criterion::Accuracy)
            .map(|likeness| -likeness)
    }

    /// The share of these couples on the wrong side of a distance.
    pub(super) fn split_error(&self, threshold: f64) -> Option<f64> {
        let confusion = Confusion::at(-threshold, &self.related, &self.likeness())?;
        Some(confusion.split_error())
    }

    /// What a threshold found elsewhere, and the distances by themselves, make of these couples.
    pub(super) fn parting(&self, threshold: f64) -> Option<Separation> {
        let split_error = self.split_error(threshold)?;
        let js_divergence = jensen_shannon(&self.of(true), &self.of(false))?;
        Some(Separation { split_error, js_divergence })
    }

    pub(super) fn of(&self, wanted: bool) -> Vec<f64> {
        let couples = self.related.iter().zip(&self.distances);
        couples.filter(|(related, _)| **related == wanted).map(|(_, distance)| *distance).collect()
    }

    /// Larger for more alike, as measures want it.
    fn likeness(&self) -> Vec<f64> {
        self.distances.iter().map(|distance| -distance).collect()
    }
}
