//! The ranker's state, its training step, and the epochs up to the best state, with checkpoints.

use std::time::{Duration, Instant};

use bytemuck::cast_slice;
use candle_core::{Device, Tensor, Var};
use cognate::methods::ranker::Shape;
use cognate_files::progress::Progress;
use cognate_files::topics::Topic;
use cognate_kernels::random::Random;
use cognate_stats::ranking::JudgedRanking;
use serde::Serialize;

use crate::checkpoint::Checkpoint;
use crate::ranker::data::{Batch, Data, Example};
use crate::ranker::network::{Mode, Network};
use crate::ranker::{Goal, RankerOptions, data};
use crate::run::demand;
use crate::{Result, TrainError, sampling};

const ORDER: u64 = 1;
const DROPOUT: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Epoch {
    pub loss: f64,
    pub map: f64,
    pub p30: f64,
}

#[derive(Debug, Clone, Default)]
struct Position {
    epochs: Vec<Epoch>,
    batches: usize,
    /// Sum of the losses of the current epoch, and the number of examples in it.
    loss: (f64, usize),
}

/// A position as stored in the checkpoint, every number as its bits.
type StoredPosition = (Vec<[u64; 3]>, usize, (u64, usize));

#[derive(Debug, Clone)]
pub struct Course {
    pub epochs: Vec<Epoch>,
    pub best: usize,
    pub resumed_at: Option<(usize, usize)>,
    pub seconds: [f64; 2],
}

pub struct Run<'r> {
    pub options: &'r RankerOptions,
    pub data: &'r Data,
    pub checkpoint: &'r Checkpoint,
}

impl Run<'_> {
    /// Trains until the figures stop improving; leaves the best state in `state`.
    pub fn go(&self, state: &mut State) -> Result<Course> {
        let (options, data) = (self.options, self.data);
        let progress = Progress::run("training");
        let (mut position, mut best) = self.load(state)?;
        let begun = !position.epochs.is_empty() || position.batches > 0;
        let resumed_at = begun.then_some((position.epochs.len(), position.batches));
        let (mut kept, mut seconds) = (Instant::now(), [0.0; 2]);
        while !over(&position.epochs, options) {
            let epoch = position.epochs.len() as u64;
            let mut order = sampling::generator(options.seed, ORDER, [epoch, 0]);
            let how = (options.grouping, options.batch);
            let batches = data::order(&data.texts, &data.examples, how, &mut order);
            let pace = options.pace(position.epochs.len());
            for (at, places) in batches.iter().enumerate().skip(position.batches) {
                let clock = Instant::now();
                let examples: Vec<Example> =
                    places.iter().map(|&place| data.examples[place as usize]).collect();
                let batch = Batch::new(&data.texts, &examples);
                let mut chance = sampling::generator(options.seed, DROPOUT, [epoch, at as u64]);
                let loss = state.step(&batch, &pace, &mut chance)?;
                let problem = "the loss left the finite numbers; try a smaller --rate";
                demand(loss.is_finite(), problem)?;
                position.loss.0 += loss * examples.len() as f64;
                position.loss.1 += examples.len();
                position.batches = at + 1;
                seconds[0] += clock.elapsed().as_secs_f64();
                let done = epoch * batches.len() as u64 + at as u64 + 1;
                progress.at(done, u64::from(options.epochs) * batches.len() as u64);
                progress.say(said(&position));
                if kept.elapsed() >= options.every && at + 1 < batches.len() {
                    self.save(&position, state, &best)?;
                    kept = Instant::now();
                }
            }
            let clock = Instant::now();
            let [map, p30] = self.judge(state)?;
            seconds[1] += clock.elapsed().as_secs_f64();
            let (sum, count) = std::mem::take(&mut position.loss);
            position.epochs.push(Epoch { loss: sum / count.max(1) as f64, map, p30 });
            position.batches = 0;
            if best_of(&position.epochs, options.goal) + 1 == position.epochs.len() {
                best = state.numbers()?;
            }
            self.save(&position, state, &best)?;
            kept = Instant::now();
        }
        state.set_numbers(&best)?;
        let best = best_of(&position.epochs, options.goal);
        Ok(Course { epochs: position.epochs, best, resumed_at, seconds })
    }

    /// Returns mean average precision and mean precision at 30 of the validation queries.
    fn judge(&self, state: &mut State) -> Result<[f64; 2]> {
        let mut sums = [0.0; 2];
        for (topic, examples) in &self.data.judges {
            let scores = self.scores(state, examples)?;
            let judged = judged(topic, &scores)?;
            sums[0] += judged.average_precision();
            sums[1] += judged.precision_at(30);
        }
        Ok(sums.map(|sum| sum / self.data.judges.len().max(1) as f64))
    }

    pub fn scores(&self, state: &mut State, examples: &[Example]) -> Result<Vec<f64>> {
        let mut scores = Vec::with_capacity(examples.len());
        for examples in examples.chunks(self.options.batch) {
            let batch = Batch::new(&self.data.texts, examples);
            scores.extend(state.scores(&batch)?.into_iter().map(f64::from));
        }
        Ok(scores)
    }

    fn load(&self, state: &mut State) -> Result<(Position, Numbers)> {
        let Some(found) = self.checkpoint.load::<StoredPosition>()? else {
            return Ok((Position::default(), Numbers::default()));
        };
        let table = |name: &str| -> Result<Vec<f32>> {
            let bytes = found.tables.get(name).map(Vec::as_slice).unwrap_or_default();
            let (numbers, rest) = bytes.as_chunks();
            if !rest.is_empty() {
                return Err(self.checkpoint.problem(format!("no table of numbers `{name}`")));
            }
            Ok(numbers.iter().map(|number| f32::from_ne_bytes(*number)).collect())
        };
        let numbers = |network, rows| {
            Ok::<_, TrainError>(Numbers { network: table(network)?, rows: table(rows)? })
        };
        state.set_numbers(&numbers("network", "rows")?)?;
        state.set_velocity(&table("velocity")?)?;
        let (epochs, batches, (loss, examples)) = &found.position;
        let epoch = |bits: &[u64; 3]| {
            let [loss, map, p30] = bits.map(f64::from_bits);
            Epoch { loss, map, p30 }
        };
        let position = Position {
            epochs: epochs.iter().map(epoch).collect(),
            batches: *batches,
            loss: (f64::from_bits(*loss), *examples),
        };
        Ok((position, numbers("best.network", "best.rows")?))
    }

    fn save(&self, position: &Position, state: &State, best: &Numbers) -> Result<()> {
        let now = state.network.numbers()?;
        let velocity = state.velocity()?;
        let tables: [(&str, &[f32]); 5] = [
            ("network", &now),
            ("rows", &state.rows),
            ("velocity", &velocity),
            ("best.network", &best.network),
            ("best.rows", &best.rows),
        ];
        let epoch = |epoch: &Epoch| [epoch.loss, epoch.map, epoch.p30].map(f64::to_bits);
        let (loss, examples) = position.loss;
        let kept: StoredPosition = (
            position.epochs.iter().map(epoch).collect(),
            position.batches,
            (loss.to_bits(), examples),
        );
        self.checkpoint.save(&kept, &tables.map(|(name, numbers)| (name, cast_slice(numbers))))
    }
}

/// The ranking of a topic's candidates by `scores`, judged by the topic's labels.
pub fn judged(topic: &Topic, scores: &[f64]) -> Result<JudgedRanking> {
    let grades = topic.documents.iter().cloned().zip(topic.grades.iter().copied()).collect();
    let run = topic.documents.iter().cloned().zip(scores.iter().copied()).collect();
    JudgedRanking::of_run(run, &grades).ok_or_else(|| {
        let problem = format!("the scores of query {} cannot be sorted", topic.id);
        TrainError::Options(problem)
    })
}

fn best_of(epochs: &[Epoch], goal: Goal) -> usize {
    let figure = |place: usize| goal.figure(epochs[place].map, epochs[place].p30);
    (0..epochs.len()).fold(0, |best, place| if figure(place) > figure(best) { place } else { best })
}

/// Whether all epochs are done, or there was no improvement for too long.
fn over(epochs: &[Epoch], options: &RankerOptions) -> bool {
    let since = epochs.len().saturating_sub(best_of(epochs, options.goal) + 1);
    epochs.len() >= options.epochs as usize || since >= options.patience as usize
}

fn said(position: &Position) -> String {
    let loss = position.loss.0 / position.loss.1.max(1) as f64;
    let epoch = position.epochs.len() + 1;
    match position.epochs.last() {
        Some(last) => {
            format!("epoch {epoch}  loss {loss:.4}  MAP {:.4}  P30 {:.4}", last.map, last.p30)
        }
        None => format!("epoch {epoch}  loss {loss:.4}"),
    }
}

pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pace {
    pub rate: f64,
    pub momentum: f64,
    pub decay: f64,
    /// Share of the joint layer's units that a training step drops.
    pub dropout: f64,
    pub freeze: bool,
}

pub struct State {
    pub network: Network,
    pub rows: Vec<f32>,
    dims: usize,
    device: Device,
    velocity: Vec<Tensor>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Numbers {
    pub network: Vec<f32>,
    pub rows: Vec<f32>,
}

impl State {
    pub fn new(
        shape: Shape,
        rows: Vec<f32>,
        device: Device,
        random: &mut Random,
    ) -> candle_core::Result<Self> {
        let network = Network::new(shape, &device, random)?;
        let still = |(_, parameter): &(_, Var)| parameter.zeros_like();
        let velocity =
            network.parameters.iter().map(still).collect::<candle_core::Result<Vec<_>>>()?;
        Ok(Self { network, rows, dims: shape.dims, device, velocity })
    }

    fn gathered(&self, words: &[u32]) -> candle_core::Result<Tensor> {
        let mut gathered = Vec::with_capacity(words.len() * self.dims);
        for &word in words {
            let from = word as usize * self.dims;
            gathered.extend_from_slice(&self.rows[from..from + self.dims]);
        }
        Tensor::from_vec(gathered, (words.len(), self.dims), &self.device)
    }

    /// One gradient step on a batch; returns its loss, the mean of `−ln p(label)`.
    ///
    /// Parameters move with momentum and weight decay. The rows of the batch's words move by the
    /// plain gradient, at the rate that momentum amounts to in the long run: a velocity for every
    /// word would have to be updated in every step.
    pub fn step(
        &mut self,
        batch: &Batch,
        pace: &Pace,
        random: &mut Random,
    ) -> candle_core::Result<f64> {
        let gathered = self.gathered(&batch.words)?;
        let moving = (!pace.freeze).then(|| Var::from_tensor(&gathered)).transpose()?;
        let rows = moving.as_ref().map_or(&gathered, Var::as_tensor);
        let kept = 1.0 / (1.0 - pace.dropout);
        let units = batch.labels.len() * self.network.shape.joint;
        let factor = |_| if sampling::share(random) < pace.dropout { 0.0 } else { kept as f32 };
        let kept: Vec<f32> = (0..units).map(factor).collect();
        let logits = self.network.forward(rows, batch, Mode::Train(&kept))?;
        let labels = Tensor::new(batch.labels.as_slice(), &self.device)?;
        let chosen = log_softmax(&logits)?.gather(&labels.unsqueeze(1)?, 1)?;
        let loss = chosen.sum_all()?.affine(-1.0 / batch.labels.len() as f64, 0.0)?;
        let slopes = loss.backward()?;
        for ((_, parameter), velocity) in self.network.parameters.iter().zip(&mut self.velocity) {
            let Some(slope) = slopes.get(parameter) else { continue };
            let slope = (slope + (parameter.as_tensor() * pace.decay)?)?;
            *velocity = ((&*velocity * pace.momentum)? + slope)?;
            parameter.set(&(parameter.as_tensor() - (&*velocity * pace.rate)?)?)?;
        }
        if let Some(slopes) = moving.as_ref().and_then(|rows| slopes.get(rows)) {
            let rate = (pace.rate / (1.0 - pace.momentum)) as f32;
            let slopes = slopes.flatten_all()?.to_vec1::<f32>()?;
            let of_words = batch.words.iter().zip(slopes.chunks_exact(self.dims));
            for (&word, slopes) in of_words.filter(|(word, _)| **word > 0) {
                let from = word as usize * self.dims;
                for (value, slope) in self.rows[from..from + self.dims].iter_mut().zip(slopes) {
                    *value -= rate * slope;
                }
            }
        }
        Ok(f64::from(loss.to_scalar::<f32>()?))
    }

    /// The logarithm of each example's probability to be relevant.
    pub fn scores(&mut self, batch: &Batch) -> candle_core::Result<Vec<f32>> {
        let rows = self.gathered(&batch.words)?;
        let logits = self.network.forward(&rows, batch, Mode::Judge)?;
        log_softmax(&logits)?.narrow(1, 1, 1)?.flatten_all()?.to_vec1()
    }

    pub fn numbers(&self) -> candle_core::Result<Numbers> {
        Ok(Numbers { network: self.network.numbers()?, rows: self.rows.clone() })
    }

    pub fn set_numbers(&mut self, numbers: &Numbers) -> candle_core::Result<()> {
        if numbers.rows.len() != self.rows.len() {
            candle_core::bail!("{} numbers for {} of rows", numbers.rows.len(), self.rows.len());
        }
        self.network.set_numbers(&numbers.network)?;
        self.rows.copy_from_slice(&numbers.rows);
        Ok(())
    }

    pub fn velocity(&self) -> candle_core::Result<Vec<f32>> {
        let mut numbers = Vec::new();
        for velocity in &self.velocity {
            numbers.extend(velocity.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(numbers)
    }

    pub fn set_velocity(&mut self, mut numbers: &[f32]) -> candle_core::Result<()> {
        for velocity in &mut self.velocity {
            let Some((own, rest)) = numbers.split_at_checked(velocity.elem_count()) else {
                candle_core::bail!("too few numbers of the last step");
            };
            *velocity = Tensor::from_slice(own, velocity.shape(), &self.device)?;
            numbers = rest;
        }
        Ok(())
    }
}

fn log_softmax(logits: &Tensor) -> candle_core::Result<Tensor> {
    let below = logits.broadcast_sub(&logits.max_keepdim(1)?)?;
    below.broadcast_sub(&below.exp()?.sum_keepdim(1)?.log()?)
}
