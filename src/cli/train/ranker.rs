//! Flags of `cognate train ranker`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cognate_train::ranker;
use cognate_train::ranker::data::Grouping;
use cognate_train::ranker::trainer::{CHECKPOINT_EVERY, Pace};
use cognate_train::ranker::{Encoder, Goal, RankerOptions};

use crate::cli::choices::choice;
use crate::cli::model_file::ModelArgs;
use crate::cli::train::{CheckpointArgs, refused};
use crate::cli::{Failure, MAX_EPOCHS, count, show};

#[derive(Debug, Args)]
pub(in crate::cli) struct RankerArgs {
    /// Judged posts: qid, query, label, text a row, or with id, rank, score, or under a header;
    /// .gz and .zst are read directly
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Judged posts to choose the best epoch by [default: a share of the queries of --data]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    valid: Vec<PathBuf>,
    /// Share of the queries of --data that choose the best epoch
    #[arg(long, value_name = "SHARE", default_value_t = 0.15)]
    valid_share: f64,
    #[command(flatten)]
    model: ModelArgs,
    /// Model file to write
    #[arg(short, long)]
    output: PathBuf,
    /// Write one HTML page with the course of loss and figures
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Encoder of the post: without the query, through kernels made for each word of the query, or with
    /// each word weighted by its cosine to each word of the query
    #[arg(long, value_parser = choice::<Encoder>(), default_value = "patt")]
    encoder: Encoder,
    /// Width of a kernel in words
    #[arg(long, value_name = "N", default_value = "2")]
    kernel: NonZeroUsize,
    /// Number of kernels
    #[arg(long, value_name = "N", default_value = "250")]
    filters: NonZeroUsize,
    /// Dimensions of an encoded text
    #[arg(long, value_name = "N", default_value = "200")]
    hidden: NonZeroUsize,
    /// Units of the layer over both texts
    #[arg(long, value_name = "N", default_value = "100")]
    joint: NonZeroUsize,
    /// Dropout of that layer
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    dropout: f64,
    /// Maximum number of epochs
    #[arg(long, value_name = "N", default_value = "15",
          value_parser = count::<u32>(1, MAX_EPOCHS))]
    epochs: u32,
    /// Stop after this many epochs without improvement
    #[arg(long, value_name = "N", default_value = "5")]
    patience: NonZeroU32,
    /// Measure that chooses the best epoch: mean average precision, or precision at 30
    #[arg(long, value_parser = choice::<Goal>(), default_value = "map")]
    goal: Goal,
    /// Maximum number of posts in a step
    #[arg(long, value_name = "N", default_value = "256",
          value_parser = count::<usize>(1, 4096))]
    batch: usize,
    /// Which posts go together in a step
    #[arg(long, value_parser = choice::<Grouping>(), default_value = "query")]
    grouping: Grouping,
    /// Do not train the vectors
    #[arg(long)]
    freeze: bool,
    /// Learning rate of the first steps
    #[arg(long, default_value_t = 0.03)]
    rate: f64,
    /// Momentum
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    momentum: f64,
    /// Weight decay
    #[arg(long, value_name = "SHARE", default_value_t = 1e-4)]
    decay: f64,
    /// Factor of the learning rate after every --slow-every epochs
    #[arg(long, value_name = "FACTOR", default_value_t = 0.75)]
    slow_by: f64,
    /// Epochs between two applications of --slow-by
    #[arg(long, value_name = "EPOCHS", default_value = "5")]
    slow_every: NonZeroU32,
    /// Minimum count of a token that the model does not list; such a token becomes a word
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_count: u64,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Seconds between two checkpoints within an epoch
    #[arg(long, value_name = "SECONDS", default_value_t = CHECKPOINT_EVERY.as_secs())]
    checkpoint_every: u64,
    /// Licence of the result, stored in the file
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl RankerArgs {
    fn options(self) -> Result<RankerOptions, Failure> {
        Ok(RankerOptions {
            run: self.checkpoint.files(self.output, self.report),
            files: self.data,
            valid: self.valid,
            valid_share: self.valid_share,
            model: self.model.path()?,
            encoder: self.encoder,
            kernel: self.kernel.get(),
            filters: self.filters.get(),
            hidden: self.hidden.get(),
            joint: self.joint.get(),
            epochs: self.epochs,
            patience: self.patience.get(),
            goal: self.goal,
            batch: self.batch,
            grouping: self.grouping,
            pace: Pace {
                rate: self.rate,
                momentum: self.momentum,
                decay: self.decay,
                dropout: self.dropout,
                freeze: self.freeze,
            },
            slowing: (self.slow_by, self.slow_every.get()),
            least: self.min_count,
            seed: self.seed,
            every: Duration::from_secs(self.checkpoint_every),
            licence: self.licence,
        })
    }
}

pub(super) fn run(args: RankerArgs) -> Result<(), Failure> {
    let as_json = args.json;
    show(&ranker::train(&args.options()?).map_err(refused)?, as_json)
}
