//! Rows of Parquet files and of Arrow files (IPC, also known as Feather): read in batches, and written
//! back with the answer's columns behind all others.

mod reader;
mod writer;

use std::path::{Path, PathBuf};

use crate::bulk::columns::reader::Reader;
use crate::bulk::columns::writer::Writer;
use crate::bulk::question::Question;
use crate::bulk::report::Tally;
use crate::bulk::{BulkError, Options, pipeline};

/// How columns are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Parquet,
    Arrow,
}

impl Layout {
    /// What the name of a file says.
    pub(super) fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" => Some(Self::Parquet),
            "arrow" | "feather" | "ipc" => Some(Self::Arrow),
            _ => None,
        }
    }
}

/// Answers the rows of files of the one layout one after the other into one file of the other, and
/// gives back its size.
pub(super) fn into_one(
    question: &Question<'_>,
    options: &Options,
    inputs: &[PathBuf],
    (read, written): (Layout, Layout),
    output: Option<&Path>,
    tally: &mut Tally,
) -> Result<u64, BulkError> {
    let path = output.unwrap_or(Path::new("standard output"));
    let mut writer: Option<Writer> = None;
    for input in inputs {
        let mut reader = Reader::open(input, read, question, options)?;
        let writer = match &mut writer {
            Some(writer) if !writer.takes(&reader) => {
                let problem = "its columns differ from those of the file before it; a folder as -o \
                               takes a file for each";
                return Err(BulkError::Options(format!("{}: {problem}", input.display())));
            }
            Some(writer) => writer,
            none => none.insert(Writer::create(path, written, &reader, question, options)?),
        };
        pipeline::run(&mut reader, writer, question, options.on_error, tally)?;
    }
    writer.map_or(Ok(0), Writer::finish)
}
