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
struct Report<'r> {
    items: usize,
    missing: &'r [Gap],
}

impl fmt::Display for Report<'_> {
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
    salvaged.gaps.iter().for_each(|gap| eprintln!("{gap}"));
    Ok(salvaged)
}

pub(super) fn run(args: &SalvageArgs) -> Result<(), Failure> {
    let salvaged = Salvaged::read(&args.folder.data, &args.name)?;
    salvaged.write(&args.to, &args.folder.data, &args.name)?;
    show(&Report { items: salvaged.items().count(), missing: &salvaged.gaps }, args.json)
}
