//! `cognate collection salvage`: reads what is readable of a damaged log.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use cognate_collections::{Gap, Salvaged};
use serde::Serialize;

use crate::cli::collection::home::FolderArgs;
use crate::cli::{Failure, show};

#[derive(Debug, Args)]
pub(in crate::cli) struct SalvageArgs {
    /// Name of the collection
    name: String,
    /// Folder to create, with the collection in it; move the collection's folder from there to where the
    /// damaged one was
    to: PathBuf,
    #[command(flatten)]
    folder: FolderArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    items: usize,
    missing: Vec<Missing>,
}

#[derive(Debug, Serialize)]
struct Missing {
    from_byte: u64,
    to_byte: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<u64>,
}

impl From<&Gap> for Missing {
    fn from(gap: &Gap) -> Self {
        Self { from_byte: gap.from, to_byte: gap.to, writes: gap.writes }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_byte, to_byte, writes } = self;
        match writes {
            Some(writes) => write!(f, "missing: {writes} writes, bytes {from_byte} to {to_byte}"),
            None => write!(f, "missing: the end, bytes {from_byte} to {to_byte}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items written", self.items)?;
        if self.missing.is_empty() {
            return f.write_str("; nothing is missing");
        }
        self.missing.iter().try_for_each(|missing| write!(f, "\n{missing}"))
    }
}

/// Reads what is readable of a collection, and reports on standard error what is missing.
pub(super) fn read(data: &Path, name: &str) -> Result<Salvaged, Failure> {
    let salvaged = Salvaged::read(data, name)?;
    salvaged.gaps.iter().for_each(|gap| eprintln!("{}", Missing::from(gap)));
    Ok(salvaged)
}

pub(super) fn run(args: &SalvageArgs) -> Result<(), Failure> {
    let salvaged = Salvaged::read(&args.folder.data, &args.name)?;
    salvaged.write(&args.to, &args.folder.data, &args.name)?;
    let missing = salvaged.gaps.iter().map(Missing::from).collect();
    show(&Report { items: salvaged.items().count(), missing }, args.json)
}
