//! `cognate collection init` and `index`: what a database needs for collections, and what finds nearest items
//! there.

use std::fmt;

use clap::{Args, ValueEnum};
#[cfg(not(feature = "postgres"))]
use cognate_collections::NO_POSTGRES;
use serde::Serialize;

use crate::cli::Failure;
#[cfg(feature = "postgres")]
use crate::cli::collection::tables;
#[cfg(not(feature = "postgres"))]
use crate::cli::usage;

/// The database that collections are kept in.
#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    /// URL of a PostgreSQL database with the extension pgvector
    #[arg(long, value_name = "URL", env = "COGNATE_POSTGRES", hide_env_values = true)]
    pub(super) postgres: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Print what came of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
pub(in crate::cli) struct IndexArgs {
    /// Name of the collection, which is there
    pub(super) name: String,
    #[command(flatten)]
    database: DatabaseArgs,
    /// How PostgreSQL finds the nearest [default: hnsw]
    #[arg(long, value_enum)]
    pub(super) kind: Option<Index>,
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

/// What was made in a database.
#[derive(Serialize)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
pub(super) struct Initialised {
    pub(super) version: usize,
    pub(super) before: usize,
}

impl fmt::Display for Initialised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, before } = self;
        match before {
            0 => write!(f, "made the tables of version {version}"),
            before if before == version => write!(f, "the tables have version {version} already"),
            before => write!(f, "brought the tables from version {before} to {version}"),
        }
    }
}

/// What was made of a collection's items.
#[derive(Serialize)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
pub(super) struct Indexed {
    pub(super) vectors_made: usize,
    pub(super) models_dropped: usize,
}

impl fmt::Display for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vectors made", self.vectors_made)?;
        match self.models_dropped {
            0 => Ok(()),
            dropped => write!(f, ", those of {dropped} other models dropped"),
        }
    }
}

#[cfg(feature = "postgres")]
pub(super) fn init(args: &InitArgs) -> Result<(), Failure> {
    tables::init(&args.database.postgres, args)
}

#[cfg(feature = "postgres")]
pub(super) fn index(args: &IndexArgs) -> Result<(), Failure> {
    tables::index(&args.database.postgres, args)
}

#[cfg(not(feature = "postgres"))]
pub(super) fn init(_: &InitArgs) -> Result<(), Failure> {
    Err(usage(NO_POSTGRES))
}

#[cfg(not(feature = "postgres"))]
pub(super) fn index(_: &IndexArgs) -> Result<(), Failure> {
    Err(usage(NO_POSTGRES))
}
