//! Flags of `cognate collection init` and `index`: the tables of a database, and what finds nearest items
//! there.

use clap::Args;
use clap::ValueEnum;

#[cfg(not(feature = "postgres"))]
use crate::cli::Failure;
#[cfg(not(feature = "postgres"))]
use crate::cli::usage;
#[cfg(not(feature = "postgres"))]
use crate::collection::NO_POSTGRES;

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
pub(in crate::cli) struct InitArgs {
    /// URL of a PostgreSQL database with the extension pgvector
    #[arg(long, value_name = "URL", env = "COGNATE_POSTGRES", hide_env_values = true)]
    pub(super) postgres: String,
    /// Print what came of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
pub(in crate::cli) struct IndexArgs {
    /// Name of the collection, which is there
    pub(super) name: String,
    /// URL of the PostgreSQL database that it is kept in
    #[arg(long, value_name = "URL", env = "COGNATE_POSTGRES", hide_env_values = true)]
    pub(super) postgres: String,
    /// How the nearest are found
    #[arg(long, value_enum, default_value_t = Index::Hnsw)]
    pub(super) kind: Index,
    /// Drop the vectors of other models
    #[arg(long)]
    pub(super) only: bool,
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    pub(super) model: Option<String>,
    /// Print what came of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// How the nearest are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Index {
    /// By a graph of neighbours
    Hnsw,
    /// By lists of vectors around centres: sooner made, finds less
    Ivfflat,
    /// By looking at each vector, which are made now rather than when they are first asked for
    None,
}

#[cfg(not(feature = "postgres"))]
pub(super) fn init(_: &InitArgs) -> Result<(), Failure> {
    Err(usage(NO_POSTGRES))
}

#[cfg(not(feature = "postgres"))]
pub(super) fn index(_: &IndexArgs) -> Result<(), Failure> {
    Err(usage(NO_POSTGRES))
}
