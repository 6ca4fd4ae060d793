//! The model file that a tool works on, given as `cognate serve` takes its models, so that one
//! variable of the environment serves both.

use std::path::PathBuf;

use clap::builder::OsStringValueParser;
use clap::builder::TypedValueParser;

use crate::http::NamedModel;

/// Takes `FILE`, or `NAME=FILE` whose name says nothing here; of a list the first.
pub(super) fn model_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| match text.to_str() {
        Some(text) => NamedModel::first(text).map(|model| model.path),
        None => Ok(PathBuf::from(text)),
    })
}
