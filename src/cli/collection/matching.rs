//! `cognate collection match`: finds for each item of a file in turn its nearest items and its
//! event, and then adds it.

use std::collections::HashSet;
use std::io;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;
use cognate::window::stream::AddPolicy;
use cognate_collections::{
    Cancellation, ChooseError, Collection, Item, MatchOptions, Matched, SharedEngine,
};
use cognate_files::progress::Progress;

use crate::cli::choices::choice;
use crate::cli::collection::home::{HomeArgs, named};
use crate::cli::collection::rank::filter;
use crate::cli::collection::{input_of, item};
use crate::cli::events::FollowArgs;
use crate::cli::{Failure, ask, usage};
use crate::http::api::collections::MatchedEntry;

pub(super) const BATCH: usize = 256;

#[derive(Debug, Args)]
pub(in crate::cli) struct MatchArgs {
    /// Name of the collection, which is there
    name: String,
    /// Items, an object a line: id, text, and optional time, attributes, data; .gz and .zst are read
    /// directly, `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    home: HomeArgs,
    #[command(flatten)]
    follow: FollowArgs,
    /// Least score at which a text is a duplicate of its nearest, whose event it joins [default: the
    /// highest of the method that scores]
    #[arg(long, value_name = "SCORE")]
    duplicate_score: Option<f64>,
    /// Which items are added: all, those that are duplicates of none, or none
    #[arg(long, value_name = "WHICH", value_parser = choice::<AddPolicy>(), default_value = "all")]
    add: AddPolicy,
    /// Match items whose names are there anew, in the places of those. Without it one of the same text has
    /// the answer that it had, and another text is refused
    #[arg(long)]
    replace: bool,
    /// Items that texts are matched against, as `/rank` has it: '{"lang": "en"}'. It must admit those that
    /// are added
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// Tell of each why it has its event
    #[arg(long)]
    explain: bool,
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    model: Option<String>,
}

pub(super) fn run(args: &MatchArgs) -> Result<(), Failure> {
    let model = ask::open_model(args.model.as_ref())?;
    let stream = args.follow.settings(&model.engine, args.duplicate_score)?;
    let how = MatchOptions {
        stream,
        filter: filter(args.filter.as_deref())?,
        add: args.add,
        explain: args.explain,
        replace: args.replace,
    };
    let engine = SharedEngine::share(model);
    let collections = args.home.open()?;
    let collection = named(&*collections, &args.name)?;
    let mut input = input_of(&args.file)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let progress = Progress::bytes("items");
    let mut ended = false;
    while !ended {
        let (mut batch, mut names) = (Vec::new(), HashSet::new());
        // A repeated name is matched after the earlier item was added.
        while batch.len() < BATCH && (batch.is_empty() || input.has_line()) {
            let Some(next) = item(&mut input, cognate_collections::now())? else {
                ended = true;
                break;
            };
            if !names.insert(next.id.clone()) {
                answer(&*collection, &engine, &how, std::mem::take(&mut batch), &mut out)?;
                names = HashSet::from([next.id.clone()]);
            }
            batch.push(next);
        }
        match answer(&*collection, &engine, &how, batch, &mut out) {
            Err(Failure { error, .. }) if is_gone(&error) => return Ok(()),
            other => other?,
        }
        progress.follow(&input);
    }
    Ok(())
}

fn is_gone(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(ErrorKind::BrokenPipe)
}

/// Matches items and waits until their writes are durable.
pub(super) fn matched(
    collection: &dyn Collection,
    engine: &SharedEngine,
    how: &MatchOptions,
    items: Vec<Item>,
) -> Result<Vec<Matched>, Failure> {
    let (now, never) = (cognate_collections::now(), Cancellation::NEVER);
    let matched = collection.follow(engine.clone(), how, items, now, never);
    let (matched, pending) = matched.map_err(|error| match error {
        ChooseError::Collection(error) => error.into(),
        error => usage(error),
    })?;
    collection.wait_durable(pending)?;
    Ok(matched)
}

/// Matches items, and writes a line for each.
fn answer(
    collection: &dyn Collection,
    engine: &SharedEngine,
    how: &MatchOptions,
    items: Vec<Item>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let ids: Vec<Box<str>> = items.iter().map(|item| item.id.clone()).collect();
    let matched = matched(collection, engine, how, items)?;
    for (id, one) in ids.iter().zip(&matched) {
        serde_json::to_writer(&mut *out, &MatchedEntry::new(id, one)).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
