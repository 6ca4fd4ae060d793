//! Flags of `cognate train ranker`.

use std::num::NonZeroU32;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::ValueEnum;

use crate::cli::Failure;
use crate::cli::show;
use crate::cli::train::refused;
use crate::train::checkpoint;
use crate::train::ranker;
use crate::train::ranker::Encoder;
use crate::train::ranker::Goal;
use crate::train::ranker::RankerOptions;
use crate::train::ranker::batch::Grouping;
use crate::train::ranker::run::CHECKPOINT_EVERY;
use crate::train::ranker::state::Pace;

#[derive(Debug, Args)]
pub(in crate::cli) struct RankerArgs {
    /// Judged posts: qid, query, label, text a row, or with id, rank, score, or under a header;
    /// .gz and .zst are read directly
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Judged posts to choose the best epoch by [default: a share of the queries of --data]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    valid: Vec<PathBuf>,
    /// That share
    #[arg(long, value_name = "SHARE", default_value_t = 0.15)]
    valid_share: f64,
    /// Model file whose vectors are the start; they are trained along
    #[arg(long, env = "COGNATE_MODEL")]
    model: PathBuf,
    /// Model file to write
    #[arg(short, long)]
    output: PathBuf,
    /// Write one HTML page with the course of loss and figures
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How the post is read: apart from the query, through kernels made for each word of the query,
    /// or with each word weighted by how alike it is to each word of the query
    #[arg(long, value_enum, default_value_t = EncoderName::Patt)]
    encoder: EncoderName,
    /// Words that a kernel spans
    #[arg(long, value_name = "N", default_value = "2")]
    kernel: NonZeroUsize,
    /// Kernels of a convolution
    #[arg(long, value_name = "N", default_value = "250")]
    filters: NonZeroUsize,
    /// Numbers of an encoded text
    #[arg(long, value_name = "N", default_value = "200")]
    hidden: NonZeroUsize,
    /// Numbers of the layer over both texts
    #[arg(long, value_name = "N", default_value = "100")]
    joint: NonZeroUsize,
    /// Share of that layer left out of each step
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    dropout: f64,
    /// Times the posts are gone through at most
    #[arg(long, value_name = "N", default_value = "15")]
    epochs: NonZeroU32,
    /// End after so many epochs without a better figure
    #[arg(long, value_name = "N", default_value = "5")]
    patience: NonZeroU32,
    /// The figure: mean average precision, or precision among the first thirty
    #[arg(long, value_enum, default_value_t = Goal::Map)]
    goal: Goal,
    /// Posts of a step at most
    #[arg(long, value_name = "N", default_value = "256")]
    batch: NonZeroUsize,
    /// Which posts go together in a step
    #[arg(long, value_enum, default_value_t = Grouping::Query)]
    grouping: Grouping,
    /// Leave the vectors as they are
    #[arg(long)]
    freeze: bool,
    /// Rate of the first steps
    #[arg(long, default_value_t = 0.03)]
    rate: f64,
    /// Share of the step before that each step repeats
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    momentum: f64,
    /// Weight decay
    #[arg(long, value_name = "SHARE", default_value_t = 1e-4)]
    decay: f64,
    /// What the rate is multiplied by after every --slow-every epochs
    #[arg(long, value_name = "FACTOR", default_value_t = 0.75)]
    slow_by: f64,
    /// See --slow-by
    #[arg(long, value_name = "EPOCHS", default_value = "5")]
    slow_every: NonZeroU32,
    /// How often a token that the model does not list must occur to become a word
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_count: u64,
    /// What fixes random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the state of the unfinished run is kept; the same command goes on from there [default:
    /// OUTPUT.checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Seconds between two checkpoints within an epoch
    #[arg(long, value_name = "SECONDS", default_value_t = CHECKPOINT_EVERY.as_secs())]
    checkpoint_every: u64,
    /// Begin anew even where there is a checkpoint
    #[arg(long)]
    restart: bool,
    /// Terms under which the outcome may be used, kept in the file
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// Say what was trained as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EncoderName {
    /// Query and post apart
    Bicnn,
    /// And the post through kernels made for each word of the query
    Qatt,
    /// And the post with each word weighted by its cosine to each word of the query
    Patt,
}

impl From<EncoderName> for Encoder {
    fn from(name: EncoderName) -> Self {
        match name {
            EncoderName::Bicnn => Self::Bicnn,
            EncoderName::Qatt => Self::Qatt,
            EncoderName::Patt => Self::Patt,
        }
    }
}

impl RankerArgs {
    fn options(self) -> RankerOptions {
        let beside = checkpoint::beside(&self.output);
        RankerOptions {
            checkpoint: self.checkpoint.unwrap_or(beside),
            files: self.data,
            valid: self.valid,
            valid_share: self.valid_share,
            model: self.model,
            output: self.output,
            report: self.report,
            encoder: self.encoder.into(),
            kernel: self.kernel.get(),
            filters: self.filters.get(),
            hidden: self.hidden.get(),
            joint: self.joint.get(),
            epochs: self.epochs.get(),
            patience: self.patience.get(),
            goal: self.goal,
            batch: self.batch.get(),
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
            restart: self.restart,
            licence: self.licence,
        }
    }
}

pub(super) fn run(args: RankerArgs) -> Result<(), Failure> {
    let as_json = args.json;
    show(&ranker::train(&args.options()).map_err(refused)?, as_json)
}
