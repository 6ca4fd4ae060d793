//! How steep the median loss is to be: κ by five-fold cross-validation on the couples trained on.
//!
//! The grid is of powers of two and grows where its best is at an edge. For each κ and fold, weights
//! are trained without the fold, the threshold is found on the couples they were trained on, and
//! the fold tells the split error; the κ of the lowest mean wins, of equal ones the smallest.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cognate::methods::Measure;
use cognate_files::progress::Progress;
use rayon::prelude::*;
use serde::Serialize;

use crate::TrainError;
use crate::sampling::generator;
use crate::weights::descent::{Descent, State};
use crate::weights::distance::Ruler;
use crate::weights::forms::{Forms, KEPT_BYTES};
use crate::weights::loss::Slope;
use crate::weights::objective::Objective;
use crate::weights::parting::Measured;
use crate::weights::{FOLDS, ORDER_OF_COUPLES, SEARCHED, forms};

/// Most couples that take part.
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

/// The search, over couples in random order.
pub(super) struct Search<'f> {
    pub(super) forms: &'f Forms<'f>,
    pub(super) ruler: Ruler,
    pub(super) lambda: f64,
    pub(super) seed: u64,
    /// Most epochs of a run.
    pub(super) epochs: usize,
    /// The places of related couples and of others.
    pub(super) by_label: [Vec<usize>; 2],
}

impl Search<'_> {
    /// Runs what is not finished yet, and shows `after` all that is after every run.
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

/// The best κ that was tried.
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
