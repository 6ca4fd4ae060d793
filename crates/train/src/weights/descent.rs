//! Gradient descent on the weights: epochs of minibatches with as many related couples as others,
//! one lowering of the rate, and when to stop.
//!
//! A run is fixed by its settings and couples. Its state between two epochs is all it needs to go
//! on, because the order of an epoch is drawn from the seed and the epoch's number alone.

use cognate_files::progress::Progress;

use crate::TrainError;
use crate::sampling::generator;
use crate::weights::distance::FIRST_WEIGHT;
use crate::weights::forms::Forms;
use crate::weights::objective::{Objective, Workbench};
use crate::weights::{HALF, ORDER_OF_BATCHES};

/// The learning rate, and what it is lowered to.
const RATES: [f64; 2] = [0.01, 0.001];
/// A loss falls if it falls by more than this share of itself.
const LEAST_FALL: f64 = 0.0005;
/// Minibatches whose forms are at hand at a time.
const BATCHES: usize = 64;

/// A run on some couples.
pub(super) struct Descent<'f> {
    pub(super) forms: &'f Forms<'f>,
    pub(super) objective: Objective,
    pub(super) seed: u64,
    pub(super) epochs: usize,
    /// The places of related couples and of others, at least [`HALF`] of either.
    pub(super) by_label: [&'f [usize]; 2],
}

/// How far a run is, between two epochs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) weights: Vec<f64>,
    /// The mean loss of each epoch.
    pub(super) losses: Vec<f64>,
    /// Which rate is in use.
    pub(super) lowered: bool,
    pub(super) finished: bool,
}

impl State {
    /// Before the first epoch.
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            weights: vec![FIRST_WEIGHT; ranks],
            losses: Vec::new(),
            lowered: false,
            finished: false,
        }
    }

    /// Whether all its numbers are finite.
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

    /// Minibatches of an epoch.
    fn batches(&self) -> usize {
        self.by_label.iter().map(|places| places.len() / HALF).min().unwrap_or(0)
    }

    /// One pass, and what follows from its loss.
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
