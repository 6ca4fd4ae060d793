//! `cognate collection`: makes, fills, describes, ranks, matches, exports, tidies and copies the
//! collections of a folder or a database without a service. One process at a time writes to a
//! folder; others may read or copy it meanwhile.

mod database;
mod home;
mod matching;
mod plan;
mod promote;
mod rank;
mod salvage;
#[cfg(feature = "eval")]
mod sweep;

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use clap::{Args, Subcommand};
use cognate::engine::TextLimits;
use cognate_collections::{
    BackedUp, Cancellation, Choice, CollectionError, CollectionInfo, Incoming, Item, ItemSelector,
    Outgoing, SettingsChange, back_up,
};
use cognate_files::input::Input;
use cognate_files::instant;
use cognate_files::progress::Progress;
use serde::Serialize;

use crate::cli::collection::home::{FolderArgs, HomeArgs, named};
use crate::cli::events::stop_at_signals;
use crate::cli::{Failure, show, usage};

const BATCH: usize = 1000;
const LINE_BYTES: usize = 1 << 20;
const MAX_ITEMS: u64 = 100_000_000;

#[derive(Debug, Subcommand)]
pub(super) enum CollectionCommand {
    /// Make the tables of a database for collections, or bring older ones up to date
    Init(database::InitArgs),
    /// Create a collection, or change the settings of an existing one
    Create(CreateArgs),
    /// Add the items of a file to a collection, each in the place of another of its id
    Load(LoadArgs),
    /// For each item of a file in turn find its nearest and its event, and add it
    Match(Box<matching::MatchArgs>),
    /// Show the events that other thresholds would make of the items of a collection, and how they agree with labels
    #[cfg(feature = "eval")]
    Sweep(Box<sweep::SweepArgs>),
    /// Rank the items of a collection by similarity to a text, or to some of them
    Rank(Box<rank::RankArgs>),
    /// Make the vectors of a collection in a database, and an index that finds the nearest
    Index(database::IndexArgs),
    /// Show the collections of a folder or a database
    Info(InfoArgs),
    /// Tell from a sample of items what so many of them would take: memory, log, start, threads
    Plan(Box<plan::PlanArgs>),
    /// Write the items of a collection, one a line, as `load` reads them
    Export(ExportArgs),
    /// Write what can be read of a damaged log as a collection of a new folder, and name what is missing
    Salvage(salvage::SalvageArgs),
    /// Write the log of a collection anew with what is there
    Compact(CompactArgs),
    /// Make a folder whose writer is gone one that another may write: check that nobody has it, open every
    /// log, and say what is in it
    Promote(promote::PromoteArgs),
    /// Copy the collections of a folder to another, also while a service writes there, and read the copy
    /// back; one whose log is damaged is left out and named
    Backup(BackupArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Name: at most 64 of a-z, 0-9, `.`, `_` and `-`, the first a letter or digit
    name: String,
    #[command(flatten)]
    home: HomeArgs,
    /// Most items: of more the oldest leave; `none` takes the bound away [default: as it is]
    #[arg(long, value_name = "N", value_parser = |text: &str| bound(text, most_items))]
    max_items: Option<Bound<usize>>,
    /// Items whose time is further back leave: 30s, 15m, 24h, 7d; `none` lets them stay [default: as it is]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| bound(text, ttl))]
    ttl: Option<Bound<i64>>,
    /// Delete the items that are beyond these bounds
    #[arg(long)]
    drop: bool,
}

#[derive(Debug, Clone, Copy)]
struct Bound<T>(Option<T>);

fn bound<T>(text: &str, read: fn(&str) -> Result<T, String>) -> Result<Bound<T>, String> {
    if text == "none" { Ok(Bound(None)) } else { read(text).map(|it| Bound(Some(it))) }
}

fn most_items(text: &str) -> Result<usize, String> {
    let most = text.parse().ok().filter(|most| (1..=MAX_ITEMS as usize).contains(most));
    most.ok_or_else(|| format!("expected `none`, or a number from 1 to {MAX_ITEMS}"))
}

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Name of the collection, which is there
    name: String,
    /// Items, an object a line: id, text, and optional time, attributes, data; .gz and .zst are read
    /// directly, `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    home: HomeArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InfoArgs {
    #[command(flatten)]
    home: HomeArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Name of the collection
    name: String,
    #[command(flatten)]
    home: HomeArgs,
    /// Of a damaged log write what can be read, and name what is missing
    #[arg(long, conflicts_with = "postgres")]
    salvage: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompactArgs {
    /// Name of the collection
    name: String,
    #[command(flatten)]
    folder: FolderArgs,
}

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Folder to create; `cognate serve --data` can serve it
    to: PathBuf,
    #[command(flatten)]
    folder: FolderArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn ttl(text: &str) -> Result<i64, String> {
    let wrong = || format!("expected `none`, or {}", instant::LASTING_SPANS);
    instant::lasting_span(text).ok_or_else(wrong)
}

pub(super) fn run(command: CollectionCommand) -> Result<(), Failure> {
    match command {
        CollectionCommand::Init(args) => database::init(&args),
        CollectionCommand::Index(args) => database::index(&args),
        CollectionCommand::Create(args) => create(&args),
        CollectionCommand::Load(args) => load(&args),
        CollectionCommand::Match(args) => matching::run(&args),
        #[cfg(feature = "eval")]
        CollectionCommand::Sweep(args) => sweep::run(&args),
        CollectionCommand::Rank(args) => rank::run(&args),
        CollectionCommand::Info(args) => info(&args),
        CollectionCommand::Plan(args) => plan::run(&args),
        CollectionCommand::Export(args) => export(&args),
        CollectionCommand::Salvage(args) => salvage::run(&args),
        CollectionCommand::Compact(args) => compact(&args),
        CollectionCommand::Promote(args) => promote::run(&args),
        CollectionCommand::Backup(args) => backup(&args),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let change = SettingsChange {
        max_items: args.max_items.map(|Bound(most)| most),
        ttl_ms: args.ttl.map(|Bound(ttl)| ttl),
        drop: args.drop,
    };
    let collections = args.home.make()?;
    match collections.set(&args.name, change, cognate_collections::now()) {
        Ok(_) => Ok(()),
        Err(error @ CollectionError::BadName) => Err(usage(error)),
        Err(error @ CollectionError::WouldDrop { .. }) => {
            Err(usage(format!("{error}; --drop does")))
        }
        Err(error) => Err(error.into()),
    }
}

/// The outcome of loading a file of items.
#[derive(Debug, Default, Serialize)]
struct Loaded {
    added: usize,
    replaced: usize,
    left: usize,
    expired: usize,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items added, {} replaced", self.added, self.replaced)?;
        if self.left > 0 {
            write!(f, ", {} left because there are newer ones", self.left)?;
        }
        match self.expired {
            0 => Ok(()),
            expired => write!(f, ", {expired} too old for its ttl"),
        }
    }
}

fn load(args: &LoadArgs) -> Result<(), Failure> {
    let collections = args.home.open()?;
    let collection = named(&*collections, &args.name)?;
    let mut input = input_of(&args.file)?;
    let progress = Progress::bytes("items");
    let (mut loaded, mut batch, now) = (Loaded::default(), Vec::new(), cognate_collections::now());
    loop {
        let item = item(&mut input, now)?;
        let ended = item.is_none();
        batch.extend(item);
        if batch.len() >= BATCH || (ended && !batch.is_empty()) {
            let wanted = cognate_collections::Write::Put(std::mem::take(&mut batch));
            let applied = collection.change(wanted, now)?;
            loaded.added += applied.added;
            loaded.replaced += applied.replaced;
            loaded.left += applied.left;
            loaded.expired += applied.expired;
            progress.follow(&input);
        }
        if ended {
            drop(progress);
            return show(&loaded, args.json);
        }
    }
}

fn input_of(file: &Path) -> Result<Input, Failure> {
    Ok(Input::open_stream(file)?)
}

/// The next item of a file; blank lines are skipped.
fn item(input: &mut Input, now: i64) -> Result<Option<Item>, Failure> {
    loop {
        let Some(line) = input.read_line_bounded(LINE_BYTES)? else { return Ok(None) };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let read = serde_json::from_slice::<Incoming>(line)
            .map_err(|error| format!("expected an item as a JSON object: {error}"));
        let checked = read.and_then(|incoming| {
            let item = incoming.into_item(now);
            match item.check(TextLimits::DEFAULT.bytes) {
                Ok(()) => Ok(item),
                Err(problem) => Err(problem.to_string()),
            }
        });
        let place = cognate_files::Place::Line(input.lines());
        return match checked {
            Ok(item) => Ok(Some(item)),
            Err(problem) => Err(input.malformed(place, problem).into()),
        };
    }
}

#[derive(Debug, Serialize)]
struct Info {
    collections: Vec<One>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    damaged: Vec<Unread>,
}

#[derive(Debug, Serialize)]
struct One {
    name: String,
    items: usize,
    bytes: usize,
    log_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_s: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Unread {
    name: String,
    problem: String,
}

impl From<(String, String)> for Unread {
    fn from((name, problem): (String, String)) -> Self {
        Self { name, problem }
    }
}

/// Fails if collections could not be read, which were reported already.
fn check_read(unread: usize, what: &str) -> Result<(), Failure> {
    match unread {
        0 => Ok(()),
        1 => Err(anyhow::anyhow!("1 collection {what}").into()),
        _ => Err(anyhow::anyhow!("{unread} collections {what}").into()),
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for One { name, items, bytes, log_bytes, max_items, ttl_s } in &self.collections {
            write!(f, "{name}: {items} items, {bytes} bytes in memory, {log_bytes} in its log")?;
            if let Some(max_items) = max_items {
                write!(f, ", at most {max_items} items")?;
            }
            if let Some(ttl) = ttl_s {
                write!(f, ", none older than {ttl} s")?;
            }
            writeln!(f)?;
        }
        for Unread { name, problem } in &self.damaged {
            writeln!(f, "{name}: cannot be read: {problem}")?;
        }
        let is_empty = self.collections.is_empty() && self.damaged.is_empty();
        if is_empty { f.write_str("no collections") } else { Ok(()) }
    }
}

fn info(args: &InfoArgs) -> Result<(), Failure> {
    let (collections, now) = (args.home.read()?, cognate_collections::now());
    let told: Result<Vec<CollectionInfo>, _> =
        collections.all()?.iter().map(|one| one.told(now)).collect();
    let one = |told: CollectionInfo| One {
        name: told.name,
        items: told.items,
        bytes: told.bytes,
        log_bytes: told.log_bytes.unwrap_or(0),
        max_items: told.settings.max_items,
        ttl_s: told.settings.ttl_ms.map(|ttl| ttl / 1000),
    };
    let damaged: Vec<Unread> = collections.damaged().into_iter().map(Unread::from).collect();
    let unread = damaged.len();
    show(&Info { collections: told?.into_iter().map(one).collect(), damaged }, args.json)?;
    check_read(unread, "cannot be read")
}

fn export(args: &ExportArgs) -> Result<(), Failure> {
    if let (true, Some(data)) = (args.salvage, &args.home.data) {
        let salvaged = salvage::read(data, &args.name)?;
        return write_items(salvaged.items());
    }
    let collections = args.home.read()?;
    let collection = named(&*collections, &args.name)?;
    let (all, now) = (ItemSelector::default(), cognate_collections::now());
    let items = collection.choose(&all, &Choice::All, now, Cancellation::NEVER)?.items;
    write_items(items.iter().map(|(_, item)| item))
}

fn write_items<'i>(mut items: impl Iterator<Item = &'i Arc<Item>>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = items.try_for_each(|item| {
        serde_json::to_writer(&mut out, &Outgoing::whole(item))?;
        out.write_all(b"\n")
    });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[derive(Debug, Serialize)]
struct Copied {
    collections: usize,
    bytes: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: Vec<Unread>,
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collections, bytes, left_out } = self;
        write!(f, "{collections} collections copied and read back: {bytes} bytes")?;
        let mut each = left_out.iter();
        each.try_for_each(|Unread { name, problem }| write!(f, "\nleft out: {name}: {problem}"))
    }
}

fn backup(args: &BackupArgs) -> Result<(), Failure> {
    let stop = Arc::default();
    stop_at_signals(&stop)?;
    let done = back_up(&args.folder.data, &args.to, &stop)?;
    let BackedUp { collections, bytes, left_out } = done;
    let left_out: Vec<Unread> = left_out.into_iter().map(Unread::from).collect();
    let unread = left_out.len();
    show(&Copied { collections, bytes, left_out }, args.json)?;
    check_read(unread, "left out of the copy: its log cannot be read")
}

fn compact(args: &CompactArgs) -> Result<(), Failure> {
    let collections = args.folder.open()?;
    named(&collections, &args.name)?;
    let collection = collections.named(&args.name)?;
    Ok(collection.compact(cognate_collections::now())?)
}
