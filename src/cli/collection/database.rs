//! `cognate collection init` and `index`: set up a database for collections, and the index of its
//! vectors.

use std::fmt;

use clap::{Args, ValueEnum};
#[cfg(not(feature = "postgres"))]
use cognate_collections::NO_POSTGRES;
#[cfg(feature = "postgres")]
use cognate_collections::{ChooseError, PostgresHome, postgres::IndexKind};
#[cfg(feature = "postgres")]
use cognate_files::progress::Progress;
use serde::Serialize;

#[cfg(feature = "postgres")]
use crate::cli::collection::home::{database, named};
use crate::cli::{Failure, usage};
#[cfg(feature = "postgres")]
use crate::cli::{ask, show};

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
    /// No index: a search reads every vector. Vectors are made now, not at the first search
    None,
}

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
    let ready = PostgresHome::init(&args.database.postgres)?;
    show(&Initialised { version: ready.now, before: ready.before }, args.json)
}

#[cfg(feature = "postgres")]
pub(super) fn index(args: &IndexArgs) -> Result<(), Failure> {
    let model = ask::open_model(args.model.as_ref())?;
    let home = database(&args.database.postgres)?;
    let kind = match args.kind.unwrap_or(Index::Hnsw) {
        Index::Hnsw => Some(IndexKind::Hnsw),
        Index::Ivfflat => Some(IndexKind::IvfFlat),
        Index::None => None,
    };
    let all = named(&home, &args.name)?.told(cognate_collections::now())?.items as u64;
    let progress = Progress::count("vectors");
    let asked = (kind, args.only);
    let indexed =
        home.index(&args.name, &model.engine, asked, &mut |made| progress.at(made as u64, all));
    drop(progress);
    let indexed = indexed.map_err(|error| match error {
        ChooseError::Query(error) => usage(error),
        other => Failure::from(other),
    })?;
    show(&Indexed { vectors_made: indexed.made, models_dropped: indexed.dropped }, args.json)
}

#[cfg(not(feature = "postgres"))]
pub(super) fn init(_: &InitArgs) -> Result<(), Failure> {
    Err(usage(NO_POSTGRES))
}

#[cfg(not(feature = "postgres"))]
pub(super) fn index(_: &IndexArgs) -> Result<(), Failure> {
    Err(usage(NO_POSTGRES))
}
