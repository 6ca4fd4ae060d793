//! Flags of `cognate train`.

#[cfg(feature = "train-ranker")]
mod ranker;
mod vectors;
mod weights;

use clap::Subcommand;

use crate::cli::Failure;
use crate::cli::usage;
use crate::train::TrainError;

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
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct NotBuilt {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<std::ffi::OsString>,
}

fn refused(error: TrainError) -> Failure {
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
            "this build serves rankers but cannot train them; build one that can with `cargo build \
             --release --features train-ranker`",
        )),
        TrainCommand::Vectors(args) => vectors::run(*args),
        TrainCommand::Weights(args) => weights::run(*args),
    }
}
