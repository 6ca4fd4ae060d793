//! The model file that a command measures, fits or trains for: named by a flag, or the first that a
//! service would take.

use std::path::PathBuf;

#[cfg(any(feature = "eval", feature = "train"))]
use clap::Args;
#[cfg(any(feature = "eval", feature = "train"))]
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::cli::{Failure, machine, serve, usage};
#[cfg(any(feature = "eval", feature = "train"))]
use crate::http::NamedModel;

/// Reads `FILE`, or `NAME=FILE` without the name; of several, separated by commas, the first.
#[cfg(any(feature = "eval", feature = "train"))]
fn model_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| match text.to_str() {
        Some(text) => NamedModel::first(text).map(|model| model.path),
        None => Ok(PathBuf::from(text)),
    })
}

/// The model file that a command evaluates or trains.
#[cfg(any(feature = "eval", feature = "train"))]
#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// Model file, as FILE or NAME=FILE; the name is ignored [default: the first that `cognate serve`
    /// would take]
    #[arg(long, env = "COGNATE_MODEL", value_name = "[NAME=]FILE", value_parser = model_file())]
    model: Option<PathBuf>,
}

#[cfg(any(feature = "eval", feature = "train"))]
impl ModelArgs {
    pub(super) fn path(&self) -> Result<PathBuf, Failure> {
        self.model.clone().map_or_else(usual, Ok)
    }

    /// Refuses to write into a model that no flag names.
    #[cfg(feature = "eval")]
    pub(super) fn check_written(&self) -> Result<(), Failure> {
        match self.model {
            Some(_) => Ok(()),
            None => Err(usage("name the model that is written: --model FILE, or -o OTHER")),
        }
    }
}

/// The default model file of a command: the first that a service would take.
pub(super) fn usual() -> Result<PathBuf, Failure> {
    let loaded = machine::settings(None, Vec::new(), &[]);
    serve::refuse(&loaded.problems)?;
    match loaded.settings.model.into_iter().next() {
        Some(model) if !model.is_embedded() => Ok(model.path),
        _ => Err(usage("the model within the program is no file: name one with --model")),
    }
}
