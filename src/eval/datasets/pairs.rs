//! Pairs of texts that are related or not, enough of either to be measured on.

use crate::eval::datasets::{Source, text};
use crate::files::ReadError;
use crate::files::pairs::Pairs;
use crate::files::rows::Rows;

/// The pairs of one file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::eval) struct PairSet {
    pub(in crate::eval) name: String,
    /// Whether each pair is related.
    pub(in crate::eval) labels: Vec<bool>,
    pub(in crate::eval) texts: Vec<(String, String)>,
}

/// Reads the pairs of a file.
pub(in crate::eval) fn read(source: &Source) -> Result<PairSet, ReadError> {
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
