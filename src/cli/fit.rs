//! Flags of `cognate fit`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use cognate::text::Bylines;
use cognate_pack::fit;
use cognate_pack::fit::{FitOptions, UniverseChoice};

use crate::cli::choices::choice;
use crate::cli::model_file::usual;
use crate::cli::pack::refused;
use crate::cli::{Failure, show, usage};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("sections").required(true).multiple(true))]
pub(super) struct FitArgs {
    /// Model file; keeps all else that it holds [default with -o: the first that `cognate serve` would
    /// take]
    model: Option<PathBuf>,
    /// Sentences, one a line, to fit the components of sif-pca and usif on; .gz and .zst are read
    /// directly
    #[arg(long, value_name = "FILE", group = "sections")]
    components: Option<PathBuf>,
    /// Fixed universe of fbow-jaccard to make of the vocabulary, as axes:K or centroids:K
    #[arg(long, value_name = "KIND:K", group = "sections")]
    universe: Option<UniverseChoice>,
    /// File of negating words, opposites and numbers, for polarity-blend
    #[arg(long, value_name = "FILE", group = "sections")]
    polarity: Option<PathBuf>,
    /// Names, for polarity-blend; lines without counted words, as `same` lines of one's own, are added to the
    /// list of the model
    #[arg(long, value_name = "FILE", group = "sections")]
    names: Option<PathBuf>,
    /// Who publishes a headline, and labels of it, in texts that the model reads: `Quake hits Lima - BBC News`
    #[arg(long, value_name = "POLICY", value_parser = choice::<Bylines>(), group = "sections")]
    bylines: Option<Bylines>,
    /// Model file to write [default: MODEL]
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: FitArgs) -> Result<(), Failure> {
    let FitArgs { model, components, universe, polarity, names, bylines, output, json } = args;
    let (model, output) = match (model, output) {
        (Some(model), output) => (model.clone(), output.unwrap_or(model)),
        (None, Some(output)) => (usual()?, output),
        (None, None) => return Err(usage("name the model that is written: MODEL, or -o OTHER")),
    };
    let fitted =
        fit::fit(&FitOptions { model, output, components, universe, polarity, names, bylines });
    show(&fitted.map_err(refused)?, json)
}
