//! The steps of a training run for vectors: rates, and workers that share a batch, work on private
//! copies, or update without synchronisation.
//!
//! What a step learns is defined by the objectives; the loop is in [`run`](crate::run).

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytemuck::cast_slice_mut;
use rayon::prelude::*;
use serde::Serialize;

use crate::run::{StepLoss, Trainer};
use crate::vectors::corpus::Corpus;
use crate::vectors::siamese::{Batch, Siamese, Tally};
use crate::vectors::tables::{Alone, Blocks, Changes, LockedRows, Through, Update};
use crate::vectors::word2vec::Word2Vec;

const BATCHES: u64 = 50;
const CHUNKS: u64 = 8;
const LAST_RATE: f64 = 1e-4;

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Schedule {
    pub epochs: u32,
    pub rate: f32,
    pub adagrad: bool,
    #[serde(skip)]
    pub threads: usize,
    /// Whether threads update without synchronisation (Hogwild); the bits then differ between runs.
    pub hogwild: bool,
    #[serde(skip)]
    pub every: Duration,
}

#[derive(Debug)]
pub enum Learner<'c> {
    Siamese(Siamese<'c>),
    Word2Vec(Word2Vec<'c>),
}

#[derive(Debug)]
pub struct Tables {
    pub rows: Vec<f32>,
    /// The output vectors of word2vec, or the sums of squares of Adagrad; else empty.
    pub beside: Vec<f32>,
}

pub(super) struct VectorsTrainer<'r> {
    corpus: &'r Corpus,
    blocks: &'r Blocks,
    schedule: Schedule,
    learner: Learner<'r>,
    workers: Workers,
    pub(super) tables: Tables,
}

impl<'r> VectorsTrainer<'r> {
    pub(super) fn new(
        corpus: &'r Corpus,
        blocks: &'r Blocks,
        schedule: Schedule,
        learner: Learner<'r>,
        tables: Tables,
    ) -> Self {
        let workers = Workers::new(&schedule, &learner, blocks);
        Self { corpus, blocks, schedule, learner, workers, tables }
    }
}

impl Trainer for VectorsTrainer<'_> {
    const PARTS: usize = 1;

    fn begin(&mut self, epoch: u32) -> u64 {
        match &mut self.learner {
            Learner::Siamese(siamese) => {
                siamese.begin(u64::from(epoch));
                siamese.batches()
            }
            Learner::Word2Vec(word2vec) => {
                word2vec.begin(u64::from(epoch));
                word2vec.chunks()
            }
        }
    }

    fn span(&self) -> u64 {
        self.workers.span()
    }

    fn step(&mut self, steps: Range<u64>, gone: &(dyn Fn(u64) -> f64 + Sync)) -> StepLoss {
        let Schedule { rate, adagrad, threads, .. } = self.schedule;
        let update = |step: u64| {
            let falling = (1.0 - gone(step)).max(LAST_RATE) as f32;
            if adagrad { Update::Adagrad(rate) } else { Update::Descend(rate * falling) }
        };
        let Self { corpus, blocks, learner, .. } = self;
        let work = Work { corpus, blocks, threads, learner, rate: &update };
        let Tally { loss, examples, words } = work.span(&mut self.workers, steps, &mut self.tables);
        StepLoss { sums: vec![loss], examples, units: words }
    }

    fn describe(&self, loss: &StepLoss, words: u64, time: Duration) -> String {
        let mean = loss.sums[0] / (loss.examples as f64).max(1.0);
        let rate = words as f64 / time.as_secs_f64().max(1e-9);
        format!("loss {mean:.4}  {:.2} million words/s", rate / 1e6)
    }

    fn tables(&mut self) -> Vec<(&'static str, &mut [u8])> {
        let Tables { rows, beside } = &mut self.tables;
        vec![("rows", cast_slice_mut(rows)), ("beside", cast_slice_mut(beside))]
    }
}

enum Workers {
    Together(Box<Batch>),
    One,
    /// Each thread takes a chunk, with its own changes to the two tables.
    Apart(Vec<[Changes; 2]>),
    Hogwild,
}

impl Workers {
    fn new(schedule: &Schedule, learner: &Learner<'_>, blocks: &Blocks) -> Self {
        let changes = || Changes::new(blocks.word_count(), blocks.dims());
        match learner {
            _ if schedule.hogwild => Self::Hogwild,
            Learner::Siamese(_) => Self::Together(Box::default()),
            Learner::Word2Vec(_) if schedule.threads == 1 => Self::One,
            Learner::Word2Vec(_) => {
                Self::Apart((0..schedule.threads).map(|_| [changes(), changes()]).collect())
            }
        }
    }

    /// Steps between two checks of the clock; workers with private copies do whole rounds.
    fn span(&self) -> u64 {
        match self {
            Self::Together(_) => BATCHES,
            Self::One => CHUNKS,
            Self::Apart(workers) => CHUNKS * workers.len() as u64,
            Self::Hogwild => BATCHES * CHUNKS,
        }
    }
}

struct Work<'w, 'c> {
    corpus: &'w Corpus,
    blocks: &'w Blocks,
    threads: usize,
    learner: &'w Learner<'c>,
    rate: &'w (dyn Fn(u64) -> Update + Sync),
}

impl Work<'_, '_> {
    fn span(&self, workers: &mut Workers, steps: Range<u64>, tables: &mut Tables) -> Tally {
        let Tables { rows, beside } = tables;
        let mut tally = Tally::default();
        match (workers, self.learner) {
            (Workers::Together(batch), Learner::Siamese(siamese)) => {
                for step in steps {
                    siamese.gather(step, batch);
                    let rate = (self.rate)(step);
                    tally += batch.step(self.corpus, self.blocks, rows, beside, rate);
                }
            }
            (Workers::Apart(workers), Learner::Word2Vec(word2vec)) => {
                let many = workers.len() as u64;
                for first in steps.clone().step_by(workers.len()) {
                    let round = first..steps.end.min(first + many);
                    tally += self.round(word2vec, workers, round, [rows, beside]);
                }
            }
            (Workers::Hogwild, Learner::Siamese(siamese)) => {
                return self.batches_at_once(siamese, steps, rows, beside);
            }
            (Workers::Hogwild, Learner::Word2Vec(word2vec)) => {
                return self.chunks_at_once(word2vec, steps, rows, beside);
            }
            (_, Learner::Word2Vec(word2vec)) => {
                let dims = self.blocks.dims();
                for step in steps {
                    let rate = (self.rate)(step).rate();
                    let mut rows = Alone { values: &mut *rows, dims };
                    let mut outputs = Alone { values: &mut *beside, dims };
                    tally += word2vec.step(step, rate, &mut rows, &mut outputs);
                }
            }
            // Workers always match their learner.
            (_, Learner::Siamese(_)) => {}
        }
        tally
    }

    /// A chunk for each worker, all from the same tables; changes are added in the order of the
    /// workers.
    fn round(
        &self,
        word2vec: &Word2Vec<'_>,
        workers: &mut [[Changes; 2]],
        steps: Range<u64>,
        tables: [&mut Vec<f32>; 2],
    ) -> Tally {
        let [rows, outputs] = tables;
        let (seen_rows, seen_outputs) = (&*rows, &*outputs);
        let work: Vec<(&mut [Changes; 2], u64)> = workers.iter_mut().zip(steps).collect();
        let done = work.into_par_iter().map(|([of_rows, of_outputs], step)| {
            let mut rows = Through { table: seen_rows, changes: of_rows };
            let mut outputs = Through { table: seen_outputs, changes: of_outputs };
            word2vec.step(step, (self.rate)(step).rate(), &mut rows, &mut outputs)
        });
        let tallies: Vec<Tally> = done.collect();
        rayon::join(
            || workers.iter().for_each(|[of_rows, _]| of_rows.add_to(rows)),
            || workers.iter().for_each(|[_, of_outputs]| of_outputs.add_to(outputs)),
        );
        workers.iter_mut().flatten().for_each(Changes::forget);
        tallies.into_iter().fold(Tally::default(), |mut all, tally| {
            all += tally;
            all
        })
    }

    fn batches_at_once(
        &self,
        siamese: &Siamese<'_>,
        steps: Range<u64>,
        rows: &mut [f32],
        squares: &mut [f32],
    ) -> Tally {
        let dims = self.blocks.dims();
        let mut squares = squares.chunks_exact_mut(dims);
        let rows: Vec<_> = rows
            .chunks_exact_mut(dims)
            .map(|row| Mutex::new((row, squares.next().unwrap_or_default())))
            .collect();
        self.at_once(steps, |next| {
            let (mut batch, mut tally) = (Batch::default(), Tally::default());
            while let Some(step) = next() {
                siamese.gather(step, &mut batch);
                let rate = (self.rate)(step);
                tally += batch.step_among_others(self.corpus, dims, &rows, rate);
            }
            tally
        })
    }

    fn chunks_at_once(
        &self,
        word2vec: &Word2Vec<'_>,
        steps: Range<u64>,
        rows: &mut [f32],
        outputs: &mut [f32],
    ) -> Tally {
        let dims = self.blocks.dims();
        let rows: Vec<_> = rows.chunks_exact_mut(dims).map(Mutex::new).collect();
        let outputs: Vec<_> = outputs.chunks_exact_mut(dims).map(Mutex::new).collect();
        self.at_once(steps, |next| {
            let mut tally = Tally::default();
            while let Some(step) = next() {
                let (mut rows, mut outputs) = (LockedRows(&rows), LockedRows(&outputs));
                tally += word2vec.step(step, (self.rate)(step).rate(), &mut rows, &mut outputs);
            }
            tally
        })
    }

    /// Every thread takes the next step as soon as it has finished one.
    fn at_once(
        &self,
        steps: Range<u64>,
        work: impl Fn(&dyn Fn() -> Option<u64>) -> Tally + Sync,
    ) -> Tally {
        let taken = AtomicU64::new(steps.start);
        let next = || Some(taken.fetch_add(1, Ordering::Relaxed)).filter(|step| *step < steps.end);
        let all = Mutex::new(Tally::default());
        rayon::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|_| {
                    let tally = work(&next);
                    *all.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += tally;
                });
            }
        });
        all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
