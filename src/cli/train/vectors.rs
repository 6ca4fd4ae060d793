//! Flags of `cognate train vectors`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cognate::model::format::Limits;
use cognate::text::Normalisation;
use cognate_train::vectors;
use cognate_train::vectors::siamese::Others;
use cognate_train::vectors::trainer::Schedule;
use cognate_train::vectors::{CHECKPOINT_EVERY, Objective, VectorsOptions};

use crate::cli::choices::{choice, normalisation};
use crate::cli::train::{CheckpointArgs, refused};
use crate::cli::{Failure, MAX_EPOCHS, MAX_THREADS, count, show};

#[derive(Debug, Args)]
pub(in crate::cli) struct VectorsArgs {
    /// Running text: a sentence a line, an empty line after a paragraph, two after a document;
    /// .gz and .zst are read directly. The text is held in memory, four bytes a word
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Model file to write
    #[arg(short, long)]
    output: PathBuf,
    /// Also write the vectors as word2vec text
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Write one HTML page with the course of the loss
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Training objective
    #[arg(long, value_parser = choice::<Objective>(), default_value = "siamese-cbow")]
    objective: Objective,
    /// Continue from the vectors of this model: its normalisation is kept, new words of the text are
    /// added
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["normalisation", "dims"])]
    from: Option<PathBuf>,
    /// Rules that turn texts into words
    #[arg(long, value_name = "PRESET", default_value = "plain", value_parser = normalisation())]
    normalisation: Normalisation,
    /// Dimensions
    #[arg(long, value_name = "N", default_value = "300",
          value_parser = count::<usize>(1, Limits::DEFAULT.dims))]
    dims: usize,
    /// Minimum count of a word
    #[arg(long, value_name = "N", default_value_t = 5)]
    min_count: u64,
    /// Epochs
    #[arg(long, value_name = "N", default_value = "5", value_parser = count::<u32>(1, MAX_EPOCHS))]
    epochs: u32,
    /// Rate of the first step, falling linearly to nothing; Adagrad's does not fall [default: 0.01,
    /// for cbow 0.05, for skip-gram 0.025]
    #[arg(long)]
    rate: Option<f32>,
    /// Optimiser: sgd, as in the paper, needs about eight times as many epochs; word2vec has no other
    /// [default: adagrad, for word2vec sgd]
    #[arg(long, value_enum)]
    optimiser: Option<Optimiser>,
    /// Examples of a batch of Siamese CBOW
    #[arg(long, value_name = "N", default_value = "100", value_parser = count::<usize>(1, 10_000))]
    batch: usize,
    /// Negative samples: random sentences, or random words of word2vec [default: 2, for
    /// word2vec 5]
    #[arg(long, value_name = "K", value_parser = count::<usize>(1, 1000))]
    negatives: Option<usize>,
    /// Where the random sentences are drawn from, for Siamese CBOW
    #[arg(long, value_parser = choice::<Others>(), default_value = "document")]
    others: Others,
    /// Maximum words on each side of the centre word, for word2vec
    #[arg(long, value_name = "N", default_value = "5", value_parser = count::<usize>(1, 1000))]
    window: usize,
    /// Subsampling threshold of word2vec: words with a larger share of the text are left out at
    /// random; 0 leaves none out
    #[arg(long, value_name = "SHARE", default_value_t = 1e-5)]
    sample: f64,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads. The result of Siamese CBOW does not depend on them; that of word2vec depends on their
    /// number alone
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = count::<usize>(1, MAX_THREADS))]
    threads: usize,
    /// Threads update without locks (Hogwild): faster with many, but no two runs give the same result
    #[arg(long)]
    hogwild: bool,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Seconds between two checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = CHECKPOINT_EVERY.as_secs())]
    checkpoint_every: u64,
    /// Terms under which the vectors may be used, kept in the file
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Optimiser {
    /// Plain gradient descent
    Sgd,
    /// Each number of a vector has its own learning rate
    Adagrad,
}

impl VectorsArgs {
    fn options(self) -> VectorsOptions {
        let usual = match self.objective {
            Objective::SiameseCbow => Optimiser::Adagrad,
            Objective::Cbow | Objective::SkipGram => Optimiser::Sgd,
        };
        let adagrad = self.optimiser.unwrap_or(usual) == Optimiser::Adagrad;
        let schedule = Schedule {
            epochs: self.epochs,
            rate: self.rate.unwrap_or(self.objective.rate()),
            adagrad,
            threads: self.threads,
            hogwild: self.hogwild,
            every: Duration::from_secs(self.checkpoint_every),
        };
        VectorsOptions {
            run: self.checkpoint.files(self.output, self.report),
            files: self.files,
            text: self.text,
            objective: self.objective,
            from: self.from,
            normalisation: self.normalisation,
            dims: self.dims,
            least: self.min_count,
            batch: self.batch,
            negatives: self.negatives.unwrap_or(self.objective.negatives()),
            others: self.others,
            window: self.window,
            sample: self.sample,
            seed: self.seed,
            schedule,
            licence: self.licence,
        }
    }
}

pub(super) fn run(args: VectorsArgs) -> Result<(), Failure> {
    let as_json = args.json;
    show(&vectors::train(&args.options()).map_err(refused)?, as_json)
}
