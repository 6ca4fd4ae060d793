//! `cognate train ranker`: a network that says how well a post answers a query, learned from judged
//! posts (Shi, Rao and Lin 2019, "samCNN").
//!
//! A convolution reads query and post apart; with attention, the post is read once more for every
//! word of the query, its words weighted by how alike they are to that word. [`network`] is the
//! computation, [`pool`] the part of it that attention would make slow, [`data`] and [`batch`] what
//! goes in, [`trainer`] the way from the first step to the best state. What comes out is a model file:
//! the vectors, fine-tuned, with the network as its section `ranker`.
//!
//! Where the paper and its authors' program differ, the paper is followed: the joint layer is
//! rectified, then normalised; the encoders' layers are rectified, too; dropout is before the last
//! layer alone. Momentum and the falling rate are the program's.

pub mod data;
pub mod network;
pub mod output;
pub mod pool;
pub mod trainer;

use std::path::PathBuf;
use std::time::Duration;

use candle_core::Device;
pub use cognate::methods::ranker::Encoder;
use cognate::methods::ranker::Shape;
use cognate::model::writer::Written;
use cognate::model::{Model, OpenOptions};
use cognate_kernels::random::Random;
use serde::Serialize;

use crate::ranker::data::{Data, Grouping};
use crate::ranker::trainer::{Epoch, Pace, Run, State};
use crate::run::RunFiles;
use crate::{TrainError, sampling};

/// Purposes of random numbers.
const START: u64 = 3;
/// Numbers of a new word's vector lie within this of 0.
const NEW_WORD: f64 = 0.05;

/// The figure that chooses the best epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    Map,
    /// Precision among the first thirty
    P30,
}

/// What to train and how. What is serialised fixes the bits of the outcome, with the topics and the
/// model.
#[derive(Debug, Clone, Serialize)]
pub struct RankerOptions {
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// Topics to judge by; without any, a share of those trained on.
    #[serde(skip)]
    pub valid: Vec<PathBuf>,
    pub valid_share: f64,
    /// The model whose vectors training starts from.
    #[serde(skip)]
    pub model: PathBuf,
    #[serde(skip)]
    pub run: RunFiles,
    pub encoder: Encoder,
    /// Words that a kernel spans.
    pub kernel: usize,
    pub filters: usize,
    /// Numbers of an encoded text.
    pub hidden: usize,
    /// Numbers of the layer over both texts.
    pub joint: usize,
    /// Maximum number of epochs.
    pub epochs: u32,
    /// Epochs without improvement after which the run ends.
    pub patience: u32,
    pub goal: Goal,
    /// Examples of a step at most.
    pub batch: usize,
    pub grouping: Grouping,
    /// Step size and regularisation of the first epoch.
    pub pace: Pace,
    /// Factor of the rate, and the epochs between two applications.
    pub slowing: (f64, u32),
    /// How often a token must occur in the texts trained on to become a word.
    pub least: u64,
    pub seed: u64,
    /// How often a checkpoint is written within an epoch.
    #[serde(skip)]
    pub every: Duration,
    /// Licence that the model states.
    #[serde(skip)]
    pub licence: Option<String>,
}

impl RankerOptions {
    /// Step size and regularisation of an epoch.
    fn pace(&self, epoch: usize) -> Pace {
        let (factor, every) = self.slowing;
        let times = epoch as u32 / every.max(1);
        Pace { rate: self.pace.rate * factor.powi(times as i32), ..self.pace }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    pub encoder: Encoder,
    /// Queries trained on, and queries that judged.
    pub queries: [usize; 2],
    /// Ids of the queries that judged.
    pub judges: Vec<String>,
    /// Judged posts trained on.
    pub examples: usize,
    /// Words of the texts, and how many of them the given model did not list.
    pub words: [usize; 2],
    pub epochs: Vec<Epoch>,
    /// Which of them was the best, from 1.
    pub best_epoch: usize,
    /// Epochs and batches restored from a checkpoint.
    pub resumed_at: Option<(usize, usize)>,
    /// Seconds of training and of judging in this process.
    pub seconds: [f64; 2],
    /// The weight of query likelihood beside the network's score, and mean average precision and
    /// precision among the first thirty with it; nothing where the model has no counts.
    pub with_ql: Option<output::WithQl>,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [trained_on, judges] = self.queries;
        let [words, new] = self.words;
        writeln!(f, "{}", self.written.path.display())?;
        writeln!(f, "  {}, {} bytes", self.encoder.name(), self.written.bytes)?;
        let examples = self.examples;
        writeln!(f, "  {examples} posts of {trained_on} queries, judged by {judges} queries")?;
        writeln!(f, "  {words} words in the texts, {new} of them new")?;
        if let Some((epochs, batches)) = self.resumed_at {
            writeln!(f, "  went on after {epochs} epochs and {batches} batches")?;
        }
        for (at, epoch) in self.epochs.iter().enumerate() {
            let Epoch { loss, map, p30 } = epoch;
            let mark = if at + 1 == self.best_epoch { "  kept" } else { "" };
            writeln!(f, "  epoch {:2}  loss {loss:.4}  MAP {map:.4}  P30 {p30:.4}{mark}", at + 1)?;
        }
        if let Some(output::WithQl { alpha, map, p30 }) = self.with_ql {
            writeln!(f, "  with {alpha} × ql  MAP {map:.4}  P30 {p30:.4}")?;
        }
        let [training, judging] = self.seconds;
        writeln!(f, "  {training:.1} s training, {judging:.1} s judging")?;
        write!(f, "{}", self.written)
    }
}

/// Trains a ranker and writes the model.
pub fn train(options: &RankerOptions) -> Result<Trained, TrainError> {
    let model = Model::open(&options.model, &OpenOptions::default())?;
    let shape = shape(options, &model)?;
    let data = Data::read(&model, options)?;
    let device = Device::cuda_if_available(0)?;
    let checkpoint = options.run.checkpoint(options, &(model.fingerprint(), &data.files))?;
    let mut random = sampling::generator(options.seed, START, [0, 0]);
    let rows = rows(&model, &data, &mut random);
    let mut state = State::new(shape, rows, device, &mut random)?;
    let run = Run { options, data: &data, checkpoint: &checkpoint };
    let course = run.go(&mut state)?;
    let with_ql = output::with_ql(&run, &model, &mut state)?;
    let output = output::Output { options, model: &model, data: &data, shape, course: &course };
    let written = output.write(&state, with_ql.as_ref())?;
    let trained = Trained {
        encoder: options.encoder,
        queries: [data.queries, data.judges.len()],
        judges: data.judges.iter().map(|(topic, _)| topic.id.clone()).collect(),
        examples: data.examples.len(),
        words: [data.words.ids.len(), data.words.new.len()],
        best_epoch: course.best + 1,
        epochs: course.epochs,
        resumed_at: course.resumed_at,
        seconds: course.seconds,
        with_ql,
        written,
    };
    options.run.finish(&checkpoint, || output::html(&trained, options))?;
    Ok(trained)
}

/// The sizes of the network, if the options make sense.
fn shape(options: &RankerOptions, model: &Model) -> Result<Shape, TrainError> {
    let refuse = |problem: &str| Err(TrainError::Options(problem.to_owned()));
    let Pace { rate, momentum, decay, dropout, .. } = options.pace;
    if !(rate.is_finite() && rate > 0.0) {
        return refuse("--rate: expected a number above 0");
    }
    for (flag, share) in [("--momentum", momentum), ("--dropout", dropout)] {
        if !(0.0..1.0).contains(&share) {
            return refuse(&format!("{flag}: expected a share from 0, below 1"));
        }
    }
    if !(options.slowing.0.is_finite() && options.slowing.0 > 0.0) {
        return refuse("--slow-by: expected a number above 0");
    }
    if !(decay.is_finite() && decay >= 0.0) {
        return refuse("--decay: expected a number from 0");
    }
    if !(options.valid_share > 0.0 && options.valid_share < 1.0) {
        return refuse("--valid-share: expected a share above 0, below 1");
    }
    options.run.check(&[], options.files.iter().chain(&options.valid), Some(&options.model))?;
    let RankerOptions { encoder, kernel, filters, hidden, joint, .. } = *options;
    let dims = model.vectors().dims();
    let shape = Shape { encoder, dims, kernel, filters, hidden, joint };
    shape.check().map_err(TrainError::Options)?;
    Ok(shape)
}

/// The first vector of each word: the model's, or within [`NEW_WORD`] of 0. The first row stands
/// for no word.
fn rows(model: &Model, data: &Data, random: &mut Random) -> Vec<f32> {
    let dims = model.vectors().dims();
    let mut rows = vec![0.0; (data.words.ids.len() + 1) * dims];
    for (&id, row) in data.words.ids.iter().zip(rows.chunks_exact_mut(dims).skip(1)) {
        match model.vectors().row(id) {
            Some(stored) => stored.copy_to(row),
            None => row.fill_with(|| ((2.0 * sampling::share(random) - 1.0) * NEW_WORD) as f32),
        }
    }
    rows
}
