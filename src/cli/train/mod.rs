//! Flags of `cognate train`.

#[cfg(feature = "train-ranker")]
mod ranker;
mod vectors;
mod weights;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cognate_train::run::RunFiles;
use cognate_train::{TrainError, checkpoint};

use crate::cli::{Failure, usage};

#[derive(Debug, Subcommand)]
pub(super) enum TrainCommand {
    /// A network that ranks posts for a query, from judged posts
    #[cfg(feature = "train-ranker")]
    Ranker(Box<ranker::RankerArgs>),
    /// A network that ranks posts for a query, from judged posts; this build has it left out
    #[cfg(not(feature = "train-ranker"))]
    Ranker(NotBuilt),
    /// Word vectors from running text: Siamese CBOW, or word2vec's CBOW and skip-gram
    Vectors(Box<vectors::VectorsArgs>),
    /// Weights for the ranks of a text's words by idf, from pairs labelled related or not
    Weights(Box<weights::WeightsArgs>),
}

/// Whatever flags are given, the answer is how to get them.
#[cfg(not(feature = "train-ranker"))]
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct NotBuilt {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<std::ffi::OsString>,
}

/// Flags about the state of an unfinished run.
#[derive(Debug, Args)]
struct CheckpointArgs {
    /// Checkpoint file; the same command resumes an interrupted run from it [default:
    /// OUTPUT.checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Start over even if there is a checkpoint
    #[arg(long)]
    restart: bool,
}

impl CheckpointArgs {
    fn files(self, output: PathBuf, report: Option<PathBuf>) -> RunFiles {
        let checkpoint = self.checkpoint.unwrap_or_else(|| checkpoint::beside(&output));
        RunFiles { output, report, checkpoint, restart: self.restart }
    }
}

pub(super) fn refused(error: TrainError) -> Failure {
    match error {
        TrainError::Options(problem) => usage(problem),
        other => other.into(),
    }
}

pub(super) fn run(command: TrainCommand) -> Result<(), Failure> {
    match command {
        #[cfg(feature = "train-ranker")]
        TrainCommand::Ranker(args) => ranker::run(*args),
        #[cfg(not(feature = "train-ranker"))]
        TrainCommand::Ranker(_) => Err(usage(
            "this build serves rankers but cannot train them; install one that can: `cargo install \
             --locked --path . --features train-ranker`",
        )),
        TrainCommand::Vectors(args) => vectors::run(*args),
        TrainCommand::Weights(args) => weights::run(*args),
    }
}
