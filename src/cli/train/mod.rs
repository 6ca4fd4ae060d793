//! Flags of `cognate train`.

mod vectors;
mod weights;

use clap::Subcommand;

use crate::cli::Failure;
use crate::cli::usage;
use crate::train::TrainError;

#[derive(Debug, Subcommand)]
pub(super) enum TrainCommand {
    /// Word vectors from running text: Siamese CBOW, or word2vec's CBOW and skip-gram
    Vectors(Box<vectors::VectorsArgs>),
    /// Weights for the ranks of a text's words by idf, from couples that are related or not
    Weights(Box<weights::WeightsArgs>),
}

fn refused(error: TrainError) -> Failure {
    match error {
        TrainError::Options(problem) => usage(problem),
        other => other.into(),
    }
}

pub(super) fn run(command: TrainCommand) -> Result<(), Failure> {
    match command {
        TrainCommand::Vectors(args) => vectors::run(*args),
        TrainCommand::Weights(args) => weights::run(*args),
    }
}
