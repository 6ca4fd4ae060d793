//! A run from its first step to its best state, by way of the state that an earlier one left.

use std::time::{Duration, Instant};

use bytemuck::cast_slice;
use cognate_files::progress::Progress;
use cognate_files::topics::Topic;
use cognate_stats::ranking::JudgedRanking;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::ranker::batch::Batch;
use crate::ranker::data::{Data, Example};
use crate::ranker::state::{Numbers, State};
use crate::ranker::{Goal, RankerOptions, batch};
use crate::{TrainError, sampling};

/// What random choices are for.
const ORDER: u64 = 1;
const DROPOUT: u64 = 2;

/// How an epoch went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Epoch {
    /// Mean loss of its examples, as they were met.
    pub loss: f64,
    /// Mean average precision of the queries that judge, after it.
    pub map: f64,
    /// Their mean precision among the first thirty.
    pub p30: f64,
}

impl Epoch {
    pub fn figure(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Map => self.map,
            Goal::P30 => self.p30,
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Default)]
struct Position {
    epochs: Vec<Epoch>,
    /// Batches gone of the next.
    batches: usize,
    /// Sum of their examples' losses, and how many examples there were.
    loss: (f64, usize),
}

/// The same in bits, which text would not keep.
#[derive(Serialize, Deserialize)]
struct Bits {
    epochs: Vec<[u64; 3]>,
    batches: usize,
    loss: (u64, usize),
}

impl From<&Position> for Bits {
    fn from(position: &Position) -> Self {
        let of_epoch = |epoch: &Epoch| [epoch.loss, epoch.map, epoch.p30].map(f64::to_bits);
        Self {
            epochs: position.epochs.iter().map(of_epoch).collect(),
            batches: position.batches,
            loss: (position.loss.0.to_bits(), position.loss.1),
        }
    }
}

impl From<Bits> for Position {
    fn from(bits: Bits) -> Self {
        let epoch = |epoch: [u64; 3]| {
            let [loss, map, p30] = epoch.map(f64::from_bits);
            Epoch { loss, map, p30 }
        };
        Self {
            epochs: bits.epochs.into_iter().map(epoch).collect(),
            batches: bits.batches,
            loss: (f64::from_bits(bits.loss.0), bits.loss.1),
        }
    }
}

/// How a run went.
#[derive(Debug, Clone)]
pub struct Course {
    pub epochs: Vec<Epoch>,
    /// The best of them, by place.
    pub best: usize,
    /// Where it went on, if an earlier process had begun it: epochs and batches gone.
    pub resumed_at: Option<(usize, usize)>,
    /// How long this process trained and judged.
    pub seconds: [f64; 2],
}

/// A run with everything it is fixed by.
pub struct Run<'r> {
    /// What was asked for.
    pub options: &'r RankerOptions,
    /// What it learns from.
    pub data: &'r Data,
    /// Where its state is kept.
    pub checkpoint: &'r Checkpoint,
}

impl Run<'_> {
    /// Trains until nothing gets better, and leaves the state at its best.
    pub fn go(&self, state: &mut State) -> Result<Course, TrainError> {
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
            let batches = batch::order(&data.texts, &data.examples, how, &mut order);
            let pace = options.pace(position.epochs.len());
            for (at, places) in batches.iter().enumerate().skip(position.batches) {
                let clock = Instant::now();
                let examples: Vec<Example> =
                    places.iter().map(|&place| data.examples[place as usize]).collect();
                let batch = Batch::of(&data.texts, &examples);
                let mut chance = sampling::generator(options.seed, DROPOUT, [epoch, at as u64]);
                let loss = state.step(&batch, &pace, &mut chance)?;
                if !loss.is_finite() {
                    let problem = "the loss left the finite numbers; try a smaller --rate";
                    return Err(TrainError::Options(problem.to_owned()));
                }
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

    /// Mean average precision, and precision among the first thirty, of the queries that judge.
    fn judge(&self, state: &mut State) -> Result<[f64; 2], TrainError> {
        let mut sums = [0.0; 2];
        for (topic, examples) in &self.data.judges {
            let scores = self.scores(state, examples)?;
            let judged = judged(topic, &scores)?;
            sums[0] += judged.average_precision();
            sums[1] += judged.precision_at(30);
        }
        Ok(sums.map(|sum| sum / self.data.judges.len().max(1) as f64))
    }

    /// The scores of a query's candidates.
    pub fn scores(&self, state: &mut State, examples: &[Example]) -> Result<Vec<f64>, TrainError> {
        let mut scores = Vec::with_capacity(examples.len());
        for examples in examples.chunks(self.options.batch) {
            let batch = Batch::of(&self.data.texts, examples);
            scores.extend(state.scores(&batch)?.into_iter().map(f64::from));
        }
        Ok(scores)
    }

    /// Puts the state there that an earlier process left, if it did.
    fn load(&self, state: &mut State) -> Result<(Position, Numbers), TrainError> {
        let Some(found) = self.checkpoint.load::<Bits>()? else {
            return Ok((Position::default(), Numbers::default()));
        };
        let table = |name: &str| -> Result<Vec<f32>, TrainError> {
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
        Ok((found.position.into(), numbers("best.network", "best.rows")?))
    }

    fn save(&self, position: &Position, state: &State, best: &Numbers) -> Result<(), TrainError> {
        let now = state.network.numbers()?;
        let velocity = state.velocity()?;
        let tables: [(&str, &[f32]); 5] = [
            ("network", &now),
            ("rows", &state.rows),
            ("velocity", &velocity),
            ("best.network", &best.network),
            ("best.rows", &best.rows),
        ];
        let position = Bits::from(position);
        self.checkpoint.save(&position, &tables.map(|(name, numbers)| (name, cast_slice(numbers))))
    }
}

/// The order that scores put a topic's candidates in, judged by its own labels.
pub fn judged(topic: &Topic, scores: &[f64]) -> Result<JudgedRanking, TrainError> {
    let grades = topic.documents.iter().cloned().zip(topic.grades.iter().copied()).collect();
    let run = topic.documents.iter().cloned().zip(scores.iter().copied()).collect();
    JudgedRanking::of_run(run, &grades).ok_or_else(|| {
        let problem = format!("the scores of query {} cannot be put in order", topic.id);
        TrainError::Options(problem)
    })
}

/// The first of the best epochs.
fn best_of(epochs: &[Epoch], goal: Goal) -> usize {
    let figure = |place: usize| epochs[place].figure(goal);
    (0..epochs.len()).fold(0, |best, place| if figure(place) > figure(best) { place } else { best })
}

/// Whether all epochs are gone, or the best is long ago.
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

/// How often the state is kept unless told otherwise; it is kept after every epoch in any case.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
