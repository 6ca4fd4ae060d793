//! `cognate collection plan`: estimates from a sample of its items what memory and time a collection
//! takes. It loads, reopens, ranks and matches the sample on this machine.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Instant;
use std::{fmt, io};

use clap::Args;
use cognate::engine::Likes;
use cognate::model::disk;
use cognate::window::stream::AddPolicy;
use cognate_collections::{
    Cancellation, Choice, Filter, Home, Item, ItemSelector, MatchOptions, SettingsChange,
    SharedEngine, TopQuery, Write,
};
use serde::Serialize;

use crate::cli::collection::home::{FolderArgs, named};
use crate::cli::collection::{BATCH, MAX_ITEMS, input_of, item, matching};
use crate::cli::events::FollowArgs;
use crate::cli::{Failure, ask, count, show, usage};

const MAX_SAMPLE: usize = 100_000;
const NAME: &str = "sample";

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArgs {
    /// A sample of the items, an object a line, as `load` reads them; the first 100,000 are taken
    sample: PathBuf,
    /// How many items there will be
    #[arg(long, value_name = "N", value_parser = count::<u64>(1, MAX_ITEMS))]
    items: u64,
    /// How many items a second will be matched
    #[arg(long, value_name = "N", value_parser = count::<u64>(1, 1_000_000_000))]
    rate: Option<u64>,
    #[command(flatten)]
    follow: FollowArgs,
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    model: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Measurements of the sample, and estimates for all items.
#[derive(Debug, Serialize)]
struct Plan {
    sample: usize,
    items: u64,
    memory: Size,
    /// With the vectors that rankings with a shortlist store.
    memory_ranked: Size,
    /// Bytes of an item in the window of `match`, besides its memory.
    window_bytes_an_item: f64,
    /// Items of the window, and their bytes.
    window_items: u64,
    window_bytes: u64,
    log: Size,
    start_s: f64,
    /// Items that one thread of this machine matches in a second, each 256 made durable in the
    /// temporary folder before the next.
    matched_a_second: f64,
    /// Number of such threads for the requested rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Size {
    bytes_an_item: f64,
    bytes: u64,
}

impl Size {
    fn new(bytes: u64, sample: usize, items: u64) -> Self {
        let bytes_an_item = bytes as f64 / sample as f64;
        Self { bytes_an_item, bytes: (bytes_an_item * items as f64) as u64 }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sample, items, start_s, matched_a_second, .. } = self;
        writeln!(f, "by {sample} items; {items} of them take")?;
        let sizes = [("memory", &self.memory), ("ranked", &self.memory_ranked), ("log", &self.log)];
        for (what, size) in sizes {
            let megabytes = size.bytes as f64 / 1e6;
            writeln!(f, "{what:<8} {megabytes:>10.1} MB, {:.0} bytes an item", size.bytes_an_item)?;
        }
        let (megabytes, last) = (self.window_bytes as f64 / 1e6, self.window_items);
        let each = self.window_bytes_an_item;
        writeln!(
            f,
            "{:<8} {megabytes:>10.1} MB, {each:.0} bytes for each of the last {last}",
            "window"
        )?;
        writeln!(f, "{:<8} {start_s:>10.2} s", "start")?;
        write!(f, "{:<8} {matched_a_second:>10.0} items a second on one thread", "match")?;
        match self.threads {
            Some(threads) => write!(f, ", of which the rate takes {threads:.2}"),
            None => Ok(()),
        }
    }
}

/// A folder that is removed after the plan, unless the process is killed.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let path = disk::drawn_name(&std::env::temp_dir(), "cognate-plan-")?;
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn run(args: &PlanArgs) -> Result<(), Failure> {
    let model = ask::open_model(args.model.as_ref())?;
    let stream = args.follow.settings(&model.engine, None)?;
    let items = sample(args)?;
    let sample = items.len();
    let held = |failed| Failure::from(anyhow::Error::from(failed).context("a temporary folder"));
    let folder = Scratch::new().map_err(held)?;
    let home = || FolderArgs { data: folder.0.clone() }.open();
    let now = cognate_collections::now();

    let collections = home()?;
    collections.set(NAME, SettingsChange::default(), now)?;
    let collection = named(&collections, NAME)?;
    for part in items.chunks(BATCH) {
        collection.change(Write::Put(part.to_vec()), now)?;
    }
    let loaded = collection.told(now)?;
    drop((collection, collections));

    let begun = Instant::now();
    let collections = home()?;
    let start = begun.elapsed().as_secs_f64() / sample as f64;
    let collection = named(&collections, NAME)?;
    let plain = collection.told(now)?.bytes as u64;
    // Totals include the data that is stored besides the items.
    let kept = |home: &dyn Home| (home.totals(now).bytes as u64).saturating_sub(plain);
    let likes = Likes::any_of(items.first().map(|item| &*item.text));
    let shortlist = Choice::Shortlist(TopQuery::of_liked(&model.engine, &likes, 1));
    collection.choose(&ItemSelector::default(), &shortlist, now, Cancellation::NEVER)?;
    let ranked = plain + kept(&collections);
    drop((collection, collections));

    // The window is filled and slid on, as far as the sample reaches.
    let collections = home()?;
    let collection = named(&collections, NAME)?;
    let how = MatchOptions {
        stream,
        filter: Filter::default(),
        add: AddPolicy::All,
        explain: false,
        replace: true,
    };
    let engine = SharedEngine::share(model);
    let matched =
        |part: &[Item]| matching::matched(&*collection, &engine, &how, part.to_vec()).map(drop);
    let first = items.get(..1).unwrap_or_default();
    matched(first)?;
    let in_window = sample.min(stream.limits.last) as u64;
    let window = kept(&collections);
    let begun = Instant::now();
    let mut done = 0;
    for part in items.chunks(matching::BATCH) {
        matched(part)?;
        done += part.len();
        if begun.elapsed().as_secs_f64() > 2.0 {
            break;
        }
    }
    let matched_a_second = done as f64 / begun.elapsed().as_secs_f64();
    let window_bytes_an_item = window as f64 / in_window as f64;
    let window_items = args.items.min(stream.limits.last as u64);
    let plan = Plan {
        sample,
        items: args.items,
        memory: Size::new(plain, sample, args.items),
        memory_ranked: Size::new(ranked, sample, args.items),
        window_bytes_an_item,
        window_items,
        window_bytes: (window_bytes_an_item * window_items as f64) as u64,
        log: Size::new(loaded.log_bytes.unwrap_or(0), sample, args.items),
        start_s: start * args.items as f64,
        matched_a_second,
        threads: args.rate.map(|rate| rate as f64 / matched_a_second),
    };
    show(&plan, args.json)
}

fn sample(args: &PlanArgs) -> Result<Vec<Item>, Failure> {
    let mut input = input_of(&args.sample)?;
    let (mut items, mut names) = (Vec::new(), HashSet::new());
    while items.len() < MAX_SAMPLE
        && let Some(next) = item(&mut input, cognate_collections::now())?
    {
        if names.insert(next.id.clone()) {
            items.push(next);
        }
    }
    if items.is_empty() { Err(usage("the sample has no items")) } else { Ok(items) }
}
