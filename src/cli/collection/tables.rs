//! What `cognate collection init` and `index` do in PostgreSQL.

use cognate_collections::postgres::IndexKind;
use cognate_collections::{ChooseError, PostgresHome};
use cognate_files::progress::Progress;

use crate::cli::collection::database::{Index, IndexArgs, Indexed, InitArgs, Initialised};
use crate::cli::collection::home::{database, named};
use crate::cli::{Failure, ask, show, usage};

pub(super) fn init(url: &str, args: &InitArgs) -> Result<(), Failure> {
    let ready = PostgresHome::init(url)?;
    show(&Initialised { version: ready.now, before: ready.before }, args.json)
}

pub(super) fn index(url: &str, args: &IndexArgs) -> Result<(), Failure> {
    let model = ask::open_model(args.model.as_ref())?;
    let home = database(url)?;
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
