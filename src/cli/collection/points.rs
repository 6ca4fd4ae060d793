//! What `cognate collection init` and `index` do in Qdrant.

use crate::cli::Failure;
use crate::cli::ask;
use crate::cli::collection::database::IndexArgs;
use crate::cli::collection::database::Indexed;
use crate::cli::collection::database::InitArgs;
use crate::cli::collection::database::Initialised;
use crate::cli::collection::home::named;
use crate::cli::collection::home::qdrant;
use crate::cli::show;
use crate::cli::usage;
use crate::collection;
use crate::collection::ChooseError;
use crate::collection::QdrantHome;
use crate::files::progress::Progress;

pub(super) fn init(url: &str, args: &InitArgs) -> Result<(), Failure> {
    let ready = QdrantHome::init(url)?;
    show(&Initialised { version: ready.now, before: ready.before }, args.json)
}

pub(super) fn index(url: &str, args: &IndexArgs) -> Result<(), Failure> {
    if args.kind.is_some() {
        return Err(usage("`--kind` is for PostgreSQL; Qdrant makes an index by itself"));
    }
    let model = ask::open_model(args.model.as_ref())?;
    let home = qdrant(url)?;
    let all = named(&home, &args.name)?.told(collection::now())?.items as u64;
    let progress = Progress::count("vectors");
    let indexed =
        home.index(&args.name, &model.engine, args.only, &mut |made| progress.at(made as u64, all));
    drop(progress);
    let indexed = indexed.map_err(|error| match error {
        ChooseError::Query(error) => usage(error),
        other => Failure::from(other),
    })?;
    show(&Indexed { vectors_made: indexed.made, models_dropped: indexed.dropped }, args.json)
}
