//! A run from its first batch to its last: epochs, rates, the live loss, and the state that is kept now
//! and then so that a killed run goes on to the same bits.

use std::time::{Duration, Instant};

use cognate_files::progress::Progress;
use cognate_train::TrainError;
use cognate_train::checkpoint::{Checkpoint, State};
use serde::{Deserialize, Serialize};

use crate::blocks;
use crate::space::Targets;
use crate::student::{Bags, Loss, Pace, Student, Work};

/// Points of the curve of the loss.
const POINTS: usize = 100;
/// The share of the first rate that is left at the end.
const LAST_RATE: f64 = 0.05;

/// How a run goes.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Times the texts are gone through.
    pub epochs: u32,
    /// Texts of a batch.
    pub batch: usize,
    /// The first rate, and what the divergence counts.
    pub pace: Pace,
    /// What fixes random choices.
    pub seed: u64,
    /// How often the state is kept.
    pub every: Duration,
}

/// How far a run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    epoch: u32,
    /// Batches gone of it.
    batch: usize,
    /// Sums of both parts of the loss as bits, and the texts they are of, by the share of the run
    /// gone.
    losses: Vec<[u64; 3]>,
}

/// A point of the curve of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The share of the run gone.
    pub gone: f64,
    /// Mean of 1 - cosine of texts and their targets.
    pub apart: f64,
    /// Mean divergence of neighbours.
    pub divergence: f64,
}

/// How a run went.
#[derive(Debug)]
pub struct Course {
    /// The curve of the loss.
    pub points: Vec<Point>,
    /// How long this process took.
    pub time: Duration,
    /// The share of the run that an earlier process had done.
    pub resumed_at: Option<f64>,
}

/// Everything that stays the same during a run.
#[derive(Debug)]
pub struct Run<'r> {
    /// The words of every text.
    pub bags: &'r Bags,
    /// Where every text is to point.
    pub targets: &'r Targets,
    /// The texts to learn from: those with words and a direction.
    pub texts: &'r [u32],
    /// Words that keep their vectors.
    pub frozen: &'r [bool],
    pub schedule: Schedule,
    /// Where the state is kept.
    pub checkpoint: &'r Checkpoint,
}

impl Run<'_> {
    /// Goes from where the checkpoint stands to the end.
    pub fn go(&self, student: &mut Student) -> Result<Course, TrainError> {
        let Schedule { epochs, batch, pace, seed, every } = self.schedule;
        let mut at = Position { epoch: 0, batch: 0, losses: vec![[0; 3]; POINTS] };
        let (mut resumed, mut resumed_at) = (false, None);
        if let Some(state) = self.checkpoint.load::<Position>()? {
            self.restore(&state, student)?;
            at = state.position;
            resumed = true;
        }
        let progress = Progress::run("training");
        let (begun, mut kept, mut work) = (Instant::now(), Instant::now(), Work::default());
        let mut texts_gone = 0;
        while at.epoch < epochs {
            let order = blocks::batches(self.targets, self.texts, batch, seed, u64::from(at.epoch));
            let size = batch.min(order.len()).max(1);
            let batches = order.len() / size;
            for texts in order.chunks_exact(size).skip(at.batch) {
                let of_epoch = at.batch as f64 / batches as f64;
                let gone = (f64::from(at.epoch) + of_epoch) / f64::from(epochs);
                if std::mem::take(&mut resumed) {
                    resumed_at = Some(gone);
                }
                let rate = pace.rate * (1.0 - (1.0 - LAST_RATE) * gone) as f32;
                let pace = Pace { rate, ..pace };
                let what = (self.bags, self.targets, self.frozen);
                let loss = student.step(texts, what, pace, &mut work);
                at.add((gone * POINTS as f64) as usize, loss);
                at.batch += 1;
                texts_gone += loss.texts;
                if !(loss.apart + loss.divergence).is_finite() {
                    let problem = "the loss is no longer a number; try a smaller --rate";
                    return Err(TrainError::Options(problem.to_owned()));
                }
                progress.at((gone * 1e6) as u64, 1_000_000);
                progress.say(said(&loss, texts_gone, begun.elapsed()));
                if kept.elapsed() >= every {
                    self.keep(&at, student)?;
                    kept = Instant::now();
                }
            }
            at = Position { epoch: at.epoch + 1, batch: 0, ..at };
        }
        let points = at.losses.iter().enumerate().filter(|(_, [.., texts])| *texts > 0);
        let mean = |(point, [apart, divergence, texts]): (usize, &[u64; 3])| Point {
            gone: (point as f64 + 0.5) / POINTS as f64,
            apart: f64::from_bits(*apart) / *texts as f64,
            divergence: f64::from_bits(*divergence) / *texts as f64,
        };
        let points = points.map(mean).collect();
        Ok(Course { points, time: begun.elapsed(), resumed_at })
    }

    fn keep(&self, at: &Position, student: &Student) -> Result<(), TrainError> {
        let Student { rows, first, second, steps, .. } = student;
        let tables = [
            ("rows", bytemuck::cast_slice(rows)),
            ("first", bytemuck::cast_slice(first)),
            ("second", bytemuck::cast_slice(second)),
            ("steps", bytemuck::cast_slice(steps)),
        ];
        self.checkpoint.save(at, &tables)
    }

    fn restore(&self, state: &State<Position>, student: &mut Student) -> Result<(), TrainError> {
        let Student { rows, first, second, steps, .. } = student;
        let tables: [(&str, &mut [u8]); 4] = [
            ("rows", bytemuck::cast_slice_mut(rows)),
            ("first", bytemuck::cast_slice_mut(first)),
            ("second", bytemuck::cast_slice_mut(second)),
            ("steps", bytemuck::cast_slice_mut(steps)),
        ];
        for (name, table) in tables {
            let kept = state.tables.get(name).map(Vec::as_slice).unwrap_or_default();
            if kept.len() != table.len() || state.position.losses.len() != POINTS {
                let problem = format!("its table `{name}` has another size; remove it");
                return Err(self.checkpoint.problem(problem));
            }
            table.copy_from_slice(kept);
        }
        Ok(())
    }
}

impl Position {
    fn add(&mut self, point: usize, loss: Loss) {
        let [apart, divergence, texts] = &mut self.losses[point.min(POINTS - 1)];
        *apart = (f64::from_bits(*apart) + loss.apart).to_bits();
        *divergence = (f64::from_bits(*divergence) + loss.divergence).to_bits();
        *texts += loss.texts;
    }
}

fn said(loss: &Loss, texts: u64, time: Duration) -> String {
    let count = (loss.texts as f64).max(1.0);
    let rate = texts as f64 / time.as_secs_f64().max(1e-9);
    let (apart, divergence) = (loss.apart / count, loss.divergence / count);
    format!("1 - cosine {apart:.4}  divergence {divergence:.4}  {rate:.0} texts/s")
}
