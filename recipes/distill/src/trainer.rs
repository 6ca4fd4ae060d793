//! The steps of a run over batches of texts: order, rate, and loss curve. The student defines what
//! a step learns; the loop and its checkpoints are in `cognate_train::run`.

use std::ops::Range;
use std::time::Duration;

use bytemuck::cast_slice_mut;
use cognate_train::run::{Course, StepLoss, Trainer};
use serde::Serialize;

use crate::blocks;
use crate::space::Targets;
use crate::student::{Bags, Loss, Pace, Student, Work};

/// The last rate as a share of the first.
const LAST_RATE: f64 = 0.05;

/// The schedule of a run. The serialised fields, the texts and the initial vectors determine every bit of
/// the outcome.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Schedule {
    /// Number of passes over the texts.
    pub epochs: u32,
    pub batch: usize,
    /// The first rate, and the weight of the divergence.
    pub pace: Pace,
    pub seed: u64,
    /// Interval between checkpoints.
    #[serde(skip)]
    pub every: Duration,
}

/// A point of the loss curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The share of the run's steps that are done.
    pub gone: f64,
    /// Mean of 1 - cosine between texts and their targets.
    pub apart: f64,
    /// Mean divergence of neighbours.
    pub divergence: f64,
}

impl Point {
    /// The points of the two curves of a run.
    pub(super) fn of(course: &Course) -> Vec<Self> {
        let [apart, divergence] = course.curves.as_slice() else { return Vec::new() };
        let pairs = apart.iter().zip(divergence);
        pairs.map(|(&(gone, apart), &(_, divergence))| Self { gone, apart, divergence }).collect()
    }
}

/// The state of a training run.
#[derive(Debug)]
pub struct StudentTrainer<'r> {
    pub student: Student,
    /// The words of every text.
    pub bags: &'r Bags,
    pub targets: &'r Targets,
    /// The texts to learn from: those with words and a direction.
    pub texts: &'r [u32],
    /// Words whose vectors stay unchanged.
    pub frozen: &'r [bool],
    pub schedule: Schedule,
    /// The texts of this epoch, in batches.
    pub order: Vec<u32>,
    pub work: Work,
}

impl StudentTrainer<'_> {
    /// Texts in a batch; fewer if there are not as many.
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
