//! Steps of a run over batches of texts: their order, the rate, and the curve of the loss. What a step
//! learns is the student's part; the loop and its checkpoints are the frame's.

use std::ops::Range;
use std::time::Duration;

use bytemuck::cast_slice_mut;
use cognate_train::run::{Course, StepLoss, Trainer};
use serde::Serialize;

use crate::blocks;
use crate::space::Targets;
use crate::student::{Bags, Loss, Pace, Student, Work};

/// The share of the first rate that is left at the end.
const LAST_RATE: f64 = 0.05;

/// How a run goes. What is serialised fixes the bits of the outcome, with the texts and the start.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Schedule {
    /// Times the texts are gone through.
    pub epochs: u32,
    /// Texts of a batch.
    pub batch: usize,
    /// The first rate, and what the divergence counts.
    pub pace: Pace,
    /// What fixes random choices.
    pub seed: u64,
    /// How often a checkpoint is written.
    #[serde(skip)]
    pub every: Duration,
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

impl Point {
    /// The points of a run's two curves.
    pub(super) fn of(course: &Course) -> Vec<Self> {
        let [apart, divergence] = course.curves.as_slice() else { return Vec::new() };
        let pairs = apart.iter().zip(divergence);
        pairs.map(|(&(gone, apart), &(_, divergence))| Self { gone, apart, divergence }).collect()
    }
}

/// A student on its way through the epochs.
#[derive(Debug)]
pub struct StudentTrainer<'r> {
    pub student: Student,
    /// The words of every text.
    pub bags: &'r Bags,
    /// Where every text is to point.
    pub targets: &'r Targets,
    /// The texts to learn from: those with words and a direction.
    pub texts: &'r [u32],
    /// Words that keep their vectors.
    pub frozen: &'r [bool],
    pub schedule: Schedule,
    /// The texts of this epoch, batch after batch.
    pub order: Vec<u32>,
    pub work: Work,
}

impl StudentTrainer<'_> {
    /// Texts of a batch; fewer where there are not so many.
    fn batch(&self) -> usize {
        self.schedule.batch.min(self.order.len()).max(1)
    }
}

impl Trainer for StudentTrainer<'_> {
    const PARTS: usize = 2;

    fn begin(&mut self, epoch: u32) -> u64 {
        let Schedule { batch, seed, .. } = self.schedule;
        self.order = blocks::batches(self.targets, self.texts, batch, seed, u64::from(epoch));
        (self.order.len() / self.batch()) as u64
    }

    fn step(&mut self, steps: Range<u64>, gone: &(dyn Fn(u64) -> f64 + Sync)) -> StepLoss {
        let (pace, size) = (self.schedule.pace, self.batch());
        let mut sum = Loss::default();
        for step in steps {
            let rate = pace.rate * (1.0 - (1.0 - LAST_RATE) * gone(step)) as f32;
            let texts = &self.order[step as usize * size..(step as usize + 1) * size];
            let what = (self.bags, self.targets, self.frozen);
            sum += self.student.step(texts, what, Pace { rate, ..pace }, &mut self.work);
        }
        StepLoss { sums: vec![sum.apart, sum.divergence], examples: sum.texts, units: sum.texts }
    }

    fn describe(&self, loss: &StepLoss, texts: u64, time: Duration) -> String {
        let count = (loss.examples as f64).max(1.0);
        let rate = texts as f64 / time.as_secs_f64().max(1e-9);
        let (apart, divergence) = (loss.sums[0] / count, loss.sums[1] / count);
        format!("1 - cosine {apart:.4}  divergence {divergence:.4}  {rate:.0} texts/s")
    }

    fn tables(&mut self) -> Vec<(&'static str, &mut [u8])> {
        let Student { rows, first, second, steps, .. } = &mut self.student;
        vec![
            ("rows", cast_slice_mut(rows)),
            ("first", cast_slice_mut(first)),
            ("second", cast_slice_mut(second)),
            ("steps", cast_slice_mut(steps)),
        ]
    }
}
