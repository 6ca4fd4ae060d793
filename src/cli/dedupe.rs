//! Flags of `cognate dedupe`.

use std::path::PathBuf;

use clap::Args;
use cognate::window::usual::DUPLICATES;
use cognate_rows::dedupe;
use cognate_rows::dedupe::{DedupeError, MEMORY, MIN_MEMORY, Options, Search};

use crate::cli::ask::Chosen;
use crate::cli::files::{Reading, bytes, file, folder_for};
use crate::cli::{Failure, usage};

#[derive(Debug, Args)]
pub(super) struct DedupeArgs {
    /// Records to look at, or `-` for standard input: NDJSON, TSV or CSV, or a text a line
    /// (.txt); .gz and .zst are read directly
    #[arg(id = "input", value_name = "FILE")]
    file: PathBuf,
    /// Look for the texts of FILE in this file instead
    #[arg(long, value_name = "OTHER")]
    against: Option<PathBuf>,
    /// File to write: the records as they came, with `cluster` (the number of the record that stands
    /// for it, its own if none does) and `score`; its name says how: .ndjson, .tsv or .csv, .gz or .zst behind
    /// it [default: as they came, to standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Column of texts, by name or number [default: text, or the only one]
    #[arg(long, value_name = "COLUMN")]
    text: Option<String>,
    /// The least score of duplicates: what the method says, or by `auto` the share of their words that are
    /// the same (Dice) where that is more
    #[arg(long, value_name = "SCORE", default_value_t = DUPLICATES as f32, value_parser = share)]
    threshold: f32,
    /// Write the records that no other stands for as they came, and leave the others out
    #[arg(long)]
    drop: bool,
    /// Write, as `shared`, the words that a duplicate has in common with its kept record
    #[arg(long)]
    explain: bool,
    /// File for all pairs found, by the numbers of their records
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Prefix of the names of added fields
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    chosen: Chosen,
    /// Score only pairs whose mean vectors have at least this cosine, or which share words enough by
    /// themselves [default: the threshold less 0.07 by `auto`, 0.01 by a vector method, 0.1 by others]
    #[arg(long, value_name = "COSINE", value_parser = share)]
    floor: Option<f32>,
    /// Memory for vectors, texts and sorting; data that does not fit is written to disk
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = memory)]
    memory: usize,
    /// Folder for what lies on disk [default: that of -o]
    #[arg(long, value_name = "FOLDER")]
    temp: Option<PathBuf>,
    /// Measure the recall: compare a sample of N texts with all others, which takes as long as scoring the
    /// file N times
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    check: usize,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().and_then(dedupe::share);
    share.ok_or_else(|| format!("expected {}", dedupe::SHARE))
}

fn memory(text: &str) -> Result<usize, String> {
    let bytes = bytes(text)?;
    if bytes < MIN_MEMORY {
        return Err(format!("expected at least {}M", MIN_MEMORY >> 20));
    }
    Ok(bytes)
}

pub(super) fn run(args: DedupeArgs) -> Result<(), Failure> {
    let model = args.chosen.open()?;
    let query = args.chosen.query(&model.engine)?;
    let output = file(args.output);
    let folder = folder_for(args.temp, output.as_deref());
    let options = Options {
        file: args.file,
        against: args.against,
        records: args.reading.records.options()?,
        bad_rows: args.reading.records.bad_rows(),
        text: args.text,
        search: Search {
            copies: args.chosen.is_auto(),
            floor: args.floor,
            explain: args.explain,
            memory: args.memory,
            folder,
            check: args.check,
            ..Search::new(query, args.threshold)
        },
        output,
        prefix: args.prefix,
        columns: args.reading.records.columns(),
        drop: args.drop,
        pairs: args.pairs,
    };
    let done = args.reading.on_threads(|| dedupe::run(&model.engine, &options))?;
    args.reading.report(&done.map_err(refused)?, options.output.as_deref(), args.json)
}

fn refused(error: DedupeError) -> Failure {
    match error {
        DedupeError::Options(problem) => usage(problem),
        DedupeError::OnlyTokens { .. } => usage(format!("--method: {error}")),
        DedupeError::Room { .. } => {
            let hint = format!("{error}; another folder can be named with --temp");
            anyhow::Error::from(error).context(hint).into()
        }
        DedupeError::Query(error) => crate::cli::ask::refused(error),
        other => other.into(),
    }
}

// The help text of `--memory` states 1 GiB.
const _: () = assert!(MEMORY == 1 << 30);
