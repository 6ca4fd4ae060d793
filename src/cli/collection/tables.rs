//! What `cognate collection init` and `index` do.

use std::fmt;

use serde::Serialize;

use crate::cli::Failure;
use crate::cli::ask;
use crate::cli::collection::database::Index;
use crate::cli::collection::database::IndexArgs;
use crate::cli::collection::database::InitArgs;
use crate::cli::collection::home::database;
use crate::cli::collection::home::named;
use crate::cli::show;
use crate::cli::usage;
use crate::collection;
use crate::collection::ChooseError;
use crate::collection::PostgresHome;
use crate::collection::postgres::IndexKind;
use crate::files::progress::Progress;

#[derive(Serialize)]
struct Initialised {
    version: usize,
    before: usize,
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
struct Indexed {
    vectors_made: usize,
    models_dropped: usize,
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

pub(super) fn init(args: &InitArgs) -> Result<(), Failure> {
    let ready = PostgresHome::init(&args.postgres)?;
    show(&Initialised { version: ready.now, before: ready.before }, args.json)
}

pub(super) fn index(args: &IndexArgs) -> Result<(), Failure> {
    let model = ask::open_model(args.model.as_ref())?;
    let home = database(&args.postgres)?;
    let kind = match args.kind {
        Index::Hnsw => Some(IndexKind::Hnsw),
        Index::Ivfflat => Some(IndexKind::IvfFlat),
        Index::None => None,
    };
    let all = named(&home, &args.name)?.told(collection::now())?.items as u64;
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
