//! `cognate collection sweep`: the events that other thresholds would give for the items of a
//! collection.

use std::path::PathBuf;

use clap::Args;
use cognate::engine::least_score;
use cognate::window::stream;
use cognate_collections::{Cancellation, Choice, ItemSelector};
use cognate_eval::events::{SweepLabels, sweep_events};

use crate::cli::collection::home::{HomeArgs, named};
use crate::cli::eval::{refused, write};
use crate::cli::events::FollowArgs;
use crate::cli::{Failure, ask, share, show};

#[derive(Debug, Args)]
pub(in crate::cli) struct SweepArgs {
    /// Name of the collection, of which nothing is changed
    name: String,
    #[command(flatten)]
    home: HomeArgs,
    #[command(flatten)]
    follow: FollowArgs,
    /// Thresholds to try, separated by commas [default: nine around that of --threshold]
    #[arg(long, value_name = "SCORE", value_delimiter = ',', value_parser = share)]
    thresholds: Vec<f64>,
    /// Labelled pairs of items: fields `a` and `b` with their ids, and `label`, 1 for items of one event, else 0
    #[arg(long, value_name = "FILE", conflicts_with = "events")]
    pairs: Option<PathBuf>,
    /// Labelled items: fields `id` and `event`; one without an event is an event of its own
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    model: Option<String>,
    /// Print every figure as JSON
    #[arg(long)]
    json: bool,
    /// Write the table as one HTML page
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &SweepArgs) -> Result<(), Failure> {
    let model = ask::open_model(args.model.as_ref())?;
    let settings = args.follow.settings(&model.engine, None)?;
    let (collections, now) = (args.home.read()?, cognate_collections::now());
    let collection = named(&*collections, &args.name)?;
    let all = ItemSelector::default();
    let items = collection.choose(&all, &Choice::All, now, Cancellation::NEVER)?.items;
    let texts = items.iter().map(|(_, item)| {
        let text = stream::Item { time: item.time, text: &item.text };
        (&*item.id, text)
    });
    let texts: Vec<_> = texts.collect();
    let pairs = args.pairs.clone().map(SweepLabels::Pairs);
    let labels = pairs.or_else(|| args.events.clone().map(SweepLabels::Events));
    let thresholds: Vec<f32> = args.thresholds.iter().copied().map(least_score).collect();
    let texts = (&*args.name, &*texts);
    let swept = sweep_events(&model.engine, texts, &settings, &thresholds, labels.as_ref());
    let swept = swept.map_err(refused)?;
    if let Some(path) = &args.html {
        write(path, &swept.html())?;
    }
    show(&swept, args.json)
}
