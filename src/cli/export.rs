//! Flags of `cognate export`.

use std::path::PathBuf;

use clap::Args;
use cognate::model::format::Dtype;
use cognate_pack::export;
use cognate_pack::export::{ExportOptions, Inflections, Library};

use crate::cli::choices::choice;
use crate::cli::pack::refused;
use crate::cli::{Failure, show};

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Model file
    model: PathBuf,
    /// Library to write for
    #[arg(long, value_parser = choice::<Library>())]
    to: Library,
    /// Folder to write, which must be new or empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Element type of the rows; int8 has a scale for each row, which needs sentence-transformers 6 or
    /// later
    #[arg(long, value_parser = choice::<Dtype>(), default_value = "f32")]
    dtype: Dtype,
    /// Entries for unlisted words that a suffix rule leads to a listed one [default: all for
    /// model2vec, where they share its row; none for sentence-transformers, where each has its own]
    #[arg(long, value_parser = choice::<Inflections>())]
    inflections: Option<Inflections>,
    /// Have the library scale the vector of a text to length 1
    #[arg(long)]
    normalize: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: ExportArgs) -> Result<(), Failure> {
    let by_library = match args.to {
        Library::Model2vec => Inflections::All,
        Library::SentenceTransformers => Inflections::None,
    };
    let options = ExportOptions {
        model: args.model,
        output: args.output,
        library: args.to,
        dtype: args.dtype,
        inflections: args.inflections.unwrap_or(by_library),
        normalize: args.normalize,
    };
    show(&export::export(&options).map_err(refused)?, args.json)
}
