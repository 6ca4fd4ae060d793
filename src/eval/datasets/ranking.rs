//! Queries with their candidates, and judgements of them.

use crate::eval::datasets::Source;
use crate::eval::datasets::text;
use crate::files::ReadError;
use crate::files::rows::Rows;
use crate::files::topics;

pub(in crate::eval) use crate::files::topics::Judgements;
pub(in crate::eval) use crate::files::topics::Topic;

/// The topics of one file, in its order.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::eval) struct RankingSet {
    pub(in crate::eval) name: String,
    pub(in crate::eval) topics: Vec<Topic>,
}

/// Reads the topics of a file, and the numbers of the columns named.
pub(in crate::eval) fn read(source: &Source, columns: &[String]) -> Result<RankingSet, ReadError> {
    of(Rows::open(&source.path)?, source.name.clone(), columns)
}

pub(super) fn of(mut rows: Rows, name: String, wanted: &[String]) -> Result<RankingSet, ReadError> {
    Ok(RankingSet { name, topics: topics::read(&mut rows, wanted, text)? })
}

/// Reads judgements into those already there.
pub(in crate::eval) fn read_judgements(
    source: &Source,
    judgements: &mut Judgements,
) -> Result<(), ReadError> {
    topics::add_judgements(&mut Rows::open(&source.path)?, judgements)
}
