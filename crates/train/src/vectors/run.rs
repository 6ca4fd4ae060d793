//! A run from its first step to its last: epochs, rates, workers, the live loss, and the state that
//! is kept now and then so that a killed run goes on to the same bits.
//!
//! What a step learns is the objectives' part; what is read and written is `mod`'s.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cognate_files::progress::Progress;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::checkpoint::Checkpoint;
use crate::vectors::corpus::Corpus;
use crate::vectors::siamese::{Batch, Siamese, Tally};
use crate::vectors::tables::{Alone, Among, Blocks, Changes, Through, Update};
use crate::vectors::word2vec::Word2Vec;

/// Points of the curve of the loss.
const POINTS: usize = 100;
/// Batches between two looks at the clock.
const BATCHES: u64 = 50;
/// Chunks, or rounds of them, between two looks at the clock.
const CHUNKS: u64 = 8;
/// The share of the first rate that is left at the end.
const LAST_RATE: f64 = 1e-4;

/// How a run goes.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Times the text is gone through.
    pub epochs: u32,
    /// Rate of the first step; it falls linearly to nothing, but for Adagrad.
    pub rate: f32,
    /// Whether rows are changed by Adagrad.
    pub adagrad: bool,
    pub threads: usize,
    /// Whether threads do not wait for each other, and bits differ from run to run.
    pub hogwild: bool,
    /// How often the state is kept.
    pub every: Duration,
}

/// What is learned from, and how.
#[derive(Debug)]
pub enum Learner<'c> {
    /// Vectors made for being averaged.
    Siamese(Siamese<'c>),
    /// Vectors that tell neighbours.
    Word2Vec(Word2Vec<'c>),
}

/// The numbers that a run changes.
#[derive(Debug)]
pub struct Tables {
    pub rows: Vec<f32>,
    /// word2vec's other vectors, or Adagrad's squares; else empty.
    pub beside: Vec<f32>,
}

/// How far a run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    epoch: u32,
    step: u64,
    /// Sums of losses as bits, and the examples they are of, by the share of the run gone.
    losses: Vec<(u64, u64)>,
}

/// How a run went.
#[derive(Debug)]
pub struct Course {
    /// Mean loss at each hundredth of the run, with the share of the run gone.
    pub losses: Vec<(f64, f64)>,
    /// Words gone through by this process.
    pub words: u64,
    /// How long it took.
    pub time: Duration,
    /// The share of the run that an earlier process had done.
    pub resumed_at: Option<f64>,
}

/// Everything that stays the same during a run.
#[derive(Debug)]
pub struct Run<'r> {
    pub corpus: &'r Corpus,
    /// How busy each row is.
    pub blocks: &'r Blocks,
    pub schedule: Schedule,
    /// Where the state is kept.
    pub checkpoint: &'r Checkpoint,
}

impl Run<'_> {
    /// Goes from where the checkpoint stands to the end.
    pub fn go(&self, learner: &mut Learner<'_>, tables: &mut Tables) -> Result<Course, TrainError> {
        let mut at = Position { epoch: 0, step: 0, losses: vec![(0, 0); POINTS] };
        let (mut resumed, mut resumed_at) = (false, None);
        if let Some(state) = self.checkpoint.load::<Position>()? {
            at = state.position;
            for (name, table) in [("rows", &mut tables.rows), ("beside", &mut tables.beside)] {
                let kept = state.tables.get(name).map(Vec::as_slice).unwrap_or_default();
                if kept.len() != size_of_val(table.as_slice()) || at.losses.len() != POINTS {
                    let problem = format!("its table `{name}` has another size; remove it");
                    return Err(self.checkpoint.problem(problem));
                }
                bytemuck::cast_slice_mut(table).copy_from_slice(kept);
            }
            resumed = true;
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.schedule.threads)
            .build()
            .map_err(|error| TrainError::Options(format!("--threads: {error}")))?;
        let progress = Progress::run("training");
        let (begun, mut kept, mut words) = (Instant::now(), Instant::now(), 0);
        let mut workers = Workers::new(&self.schedule, learner, self.blocks);
        while at.epoch < self.schedule.epochs {
            let steps = learner.begin(u64::from(at.epoch));
            while at.step < steps {
                let span = at.step..steps.min(at.step + workers.span());
                let gone = |step: u64| {
                    let of_epoch = step as f64 / steps as f64;
                    (f64::from(at.epoch) + of_epoch) / f64::from(self.schedule.epochs)
                };
                let share = gone(span.start);
                if std::mem::take(&mut resumed) {
                    resumed_at = Some(share);
                }
                let rate = |step: u64| {
                    let falling = (1.0 - gone(step)).max(LAST_RATE) as f32;
                    let rate = self.schedule.rate;
                    if self.schedule.adagrad {
                        Update::Adagrad(rate)
                    } else {
                        Update::Descend(rate * falling)
                    }
                };
                let work = Work { run: self, learner, rate: &rate };
                let tally = pool.install(|| work.span(&mut workers, span.clone(), tables));
                words += tally.words;
                let point = ((share * POINTS as f64) as usize).min(POINTS - 1);
                let (loss, examples) = &mut at.losses[point];
                *loss = (f64::from_bits(*loss) + tally.loss).to_bits();
                *examples += tally.examples;
                at.step = span.end;
                progress.at((gone(span.end) * 1e6) as u64, 1_000_000);
                progress.say(said(&tally, words, begun.elapsed()));
                if !(tally.loss.is_finite()) {
                    return Err(TrainError::Options(
                        "the loss is no longer a number; try a smaller --rate".to_owned(),
                    ));
                }
                if kept.elapsed() >= self.schedule.every {
                    self.keep(&at, tables)?;
                    kept = Instant::now();
                }
            }
            at = Position { epoch: at.epoch + 1, step: 0, ..at };
        }
        let losses = at.losses.iter().enumerate().filter(|(_, (_, examples))| *examples > 0);
        let mean = |(point, (loss, examples)): (usize, &(u64, u64))| {
            ((point as f64 + 0.5) / POINTS as f64, f64::from_bits(*loss) / *examples as f64)
        };
        let losses = losses.map(mean).collect();
        Ok(Course { losses, words, time: begun.elapsed(), resumed_at })
    }

    fn keep(&self, at: &Position, tables: &Tables) -> Result<(), TrainError> {
        let (rows, beside) =
            (bytemuck::cast_slice(&tables.rows), bytemuck::cast_slice(&tables.beside));
        self.checkpoint.save(at, &[("rows", rows), ("beside", beside)])
    }
}

fn said(tally: &Tally, words: u64, time: Duration) -> String {
    let loss = tally.loss / (tally.examples as f64).max(1.0);
    let rate = words as f64 / time.as_secs_f64().max(1e-9);
    format!("loss {loss:.4}  {:.2} million words/s", rate / 1e6)
}

impl Learner<'_> {
    /// Begins an epoch; how many steps it has.
    fn begin(&mut self, epoch: u64) -> u64 {
        match self {
            Self::Siamese(siamese) => {
                siamese.begin(epoch);
                siamese.batches()
            }
            Self::Word2Vec(word2vec) => {
                word2vec.begin(epoch);
                word2vec.chunks()
            }
        }
    }
}

/// What workers keep from step to step.
enum Workers {
    /// One batch at a time, shared by all threads.
    Together(Box<Batch>),
    /// A chunk at a time on the tables themselves.
    One,
    /// As many chunks at a time as threads, each with its own changes to the two tables.
    Apart(Vec<[Changes; 2]>),
    Hogwild,
}

impl Workers {
    fn new(schedule: &Schedule, learner: &Learner<'_>, blocks: &Blocks) -> Self {
        let changes = || Changes::new(blocks.words(), blocks.dims());
        match learner {
            _ if schedule.hogwild => Self::Hogwild,
            Learner::Siamese(_) => Self::Together(Box::default()),
            Learner::Word2Vec(_) if schedule.threads == 1 => Self::One,
            Learner::Word2Vec(_) => {
                Self::Apart((0..schedule.threads).map(|_| [changes(), changes()]).collect())
            }
        }
    }

    /// Steps between two looks at the clock; workers apart do whole rounds.
    fn span(&self) -> u64 {
        match self {
            Self::Together(_) => BATCHES,
            Self::One => CHUNKS,
            Self::Apart(workers) => CHUNKS * workers.len() as u64,
            Self::Hogwild => BATCHES * CHUNKS,
        }
    }
}

/// Some steps of a run.
struct Work<'w, 'r, 'c> {
    run: &'w Run<'r>,
    learner: &'w Learner<'c>,
    rate: &'w (dyn Fn(u64) -> Update + Sync),
}

impl Work<'_, '_, '_> {
    fn span(&self, workers: &mut Workers, steps: Range<u64>, tables: &mut Tables) -> Tally {
        let Tables { rows, beside } = tables;
        let mut tally = Tally::default();
        match (workers, self.learner) {
            (Workers::Together(batch), Learner::Siamese(siamese)) => {
                for step in steps {
                    siamese.gather(step, batch);
                    let (corpus, blocks) = (self.run.corpus, self.run.blocks);
                    tally += batch.step(corpus, blocks, rows, beside, (self.rate)(step));
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
                let dims = self.run.blocks.dims();
                for step in steps {
                    let rate = (self.rate)(step).rate();
                    let mut rows = Alone { values: &mut *rows, dims };
                    let mut outputs = Alone { values: &mut *beside, dims };
                    tally += word2vec.step(step, rate, &mut rows, &mut outputs);
                }
            }
            // Workers are made for their learner.
            (_, Learner::Siamese(_)) => {}
        }
        tally
    }

    /// A chunk a worker, all from the same tables; their changes are added in the workers' order.
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
        let dims = self.run.blocks.dims();
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
                tally += batch.step_among_others(self.run.corpus, dims, &rows, rate);
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
        let dims = self.run.blocks.dims();
        let rows: Vec<_> = rows.chunks_exact_mut(dims).map(Mutex::new).collect();
        let outputs: Vec<_> = outputs.chunks_exact_mut(dims).map(Mutex::new).collect();
        self.at_once(steps, |next| {
            let mut tally = Tally::default();
            while let Some(step) = next() {
                let (mut rows, mut outputs) = (Among(&rows), Among(&outputs));
                tally += word2vec.step(step, (self.rate)(step).rate(), &mut rows, &mut outputs);
            }
            tally
        })
    }

    /// Every thread takes the next step as soon as it has done its last.
    fn at_once(
        &self,
        steps: Range<u64>,
        work: impl Fn(&dyn Fn() -> Option<u64>) -> Tally + Sync,
    ) -> Tally {
        let taken = AtomicU64::new(steps.start);
        let next = || Some(taken.fetch_add(1, Ordering::Relaxed)).filter(|step| *step < steps.end);
        let all = Mutex::new(Tally::default());
        rayon::scope(|scope| {
            for _ in 0..self.run.schedule.threads {
                scope.spawn(|_| {
                    let tally = work(&next);
                    *all.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += tally;
                });
            }
        });
        all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
