//! `cognate collection promote`: prepares a folder whose writer is gone for another one.

use std::fmt;
use std::time::Duration;

use clap::Args;
use cognate_collections::Promoted;
use cognate_files::instant;
use serde::Serialize;

use crate::cli::collection::home::{FolderArgs, LIMITS, told};
use crate::cli::{Failure, show};

/// How long the lock is watched: longer than two intervals between a writer's touches of its lock.
const WATCH: Duration = Duration::from_secs(12);

#[derive(Debug, Args)]
pub(in crate::cli) struct PromoteArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    collections: Vec<One>,
}

#[derive(Debug, Serialize)]
struct One {
    name: String,
    items: usize,
    log_bytes: u64,
    written: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<Newest>,
}

#[derive(Debug, Serialize)]
struct Newest {
    id: String,
    time: String,
}

impl From<Promoted> for One {
    fn from(one: Promoted) -> Self {
        let newest = one.newest.map(|item| Newest {
            id: item.id.to_string(),
            time: instant::written_exactly(item.time),
        });
        let Promoted { name, items, log_bytes, written, .. } = one;
        Self { name, items, log_bytes, written: instant::written_exactly(written), newest }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for One { name, items, log_bytes, written, newest } in &self.collections {
            write!(
                f,
                "{name}: {items} items, {log_bytes} bytes in its log, last written {written}"
            )?;
            if let Some(Newest { id, time }) = newest {
                write!(f, ", newest item {id} of {time}")?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "nobody has these {} collections; `cognate serve --data` may",
            self.collections.len()
        )
    }
}

pub(super) fn run(args: &PromoteArgs) -> Result<(), Failure> {
    let folder = args.folder.folder()?;
    let tell = || {
        let seconds = WATCH.as_secs();
        eprintln!(
            "somebody had this folder less than a minute ago; watching for {seconds} s whether they \
             still do"
        );
    };
    let promoted = told(cognate_collections::promote(folder, LIMITS, WATCH, tell)?);
    show(&Report { collections: promoted.into_iter().map(One::from).collect() }, args.json)
}
