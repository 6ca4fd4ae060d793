//! Flags of `cognate inspect`.

use std::path::PathBuf;

use clap::Args;
use cognate::model::{OpenOptions, Verify};
use cognate_pack::inspect;
use cognate_pack::inspect::InspectOptions;

use crate::cli::{Failure, count, show};

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// Model file
    model: PathBuf,
    /// Words or texts to look up
    texts: Vec<String>,
    /// Nearest words to show for each word
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<usize>(0, 1000))]
    neighbours: usize,
    /// How much of the file is checked (full, structure)
    #[arg(long, default_value = "full")]
    verify: Verify,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: InspectArgs) -> Result<(), Failure> {
    let open = OpenOptions { verify: args.verify, ..OpenOptions::default() };
    let options = InspectOptions { open, texts: args.texts, neighbours: args.neighbours };
    show(&inspect::inspect(&args.model, &options)?, args.json)
}
