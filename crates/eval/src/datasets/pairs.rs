//! Pairs of texts that are related or not, enough of either to be measured on.

use cognate_files::ReadError;
use cognate_files::rows::{Pairs, Rows};

use crate::datasets::{Source, text};

/// The pairs of one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PairSet {
    pub(crate) name: String,
    /// Whether each pair is related.
    pub(crate) labels: Vec<bool>,
    pub(crate) texts: Vec<(String, String)>,
}

/// Reads the pairs of a file.
pub(crate) fn read(source: &Source) -> Result<PairSet, ReadError> {
    of(Rows::open(&source.path)?, source.name.clone())
}

pub(super) fn of(mut rows: Rows, name: String) -> Result<PairSet, ReadError> {
    let pairs = Pairs::read(&mut rows, text)?;
    let related = pairs.related();
    if related < 2 || pairs.labels.len() - related < 2 {
        return Err(rows.wrong(format!(
            "expected at least 2 pairs of either label, found {related} with 1 and {} with 0",
            pairs.labels.len() - related
        )));
    }
    Ok(PairSet { name, labels: pairs.labels, texts: pairs.texts })
}
