//! Processes files of rows: answers a question for each row ([`bulk`]), finds near-duplicates
//! ([`dedupe`]), and groups a stream into events ([`events`]).

mod bad_rows;
pub mod bulk;
mod columnar;
pub mod dedupe;
pub mod events;
mod growing;

use std::path::Path;

pub use bad_rows::{LeftOut, OnBadRow};
use cognate_files::ReadError;
use cognate_files::records::{Appender, Format, Records};

/// The path that means standard input or standard output.
const STANDARD: &str = "-";

/// A writer of records with fields of these names added, of all columns or the chosen columns, in
/// the format that the output's name asks for.
fn appender(
    records: &Records,
    added: impl IntoIterator<Item = impl Into<String>>,
    columns: &[String],
    output: Option<&Path>,
) -> Result<Appender, ReadError> {
    let mut appender = Appender::new(records.format(), added);
    if !columns.is_empty() {
        appender.choose(columns, records)?;
    }
    if let Some(format) = output.and_then(Format::of_path) {
        appender.write_as(format, records)?;
    }
    Ok(appender)
}
