//! Records with named fields, one after another: JSON objects, or rows between tabs or commas.
//!
//! A record keeps the bytes that it was read from, so that it can be written back whole with fields
//! added ([`Appender`]). What a field means is known where it is asked for.

mod object;
mod reader;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use reader::{Options, Records};
pub use table::{Added, Appender};

use crate::records::object::Object;
use crate::records::table::Cells;

const RECORD_BYTES: usize = 4 << 20;

/// How records are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A JSON object a line.
    Ndjson,
    /// Rows split at tabs and nowhere else: there is no quoting.
    Tsv,
    /// Rows split at commas, with quoting as in RFC 4180.
    Csv,
}

impl Format {
    /// Their names, as flags spell them.
    pub const NAMES: [&'static str; 3] = ["ndjson", "tsv", "csv"];

    /// What the name of a file says, without `.gz` or `.zst`.
    pub fn of_path(path: &Path) -> Option<Self> {
        let unpacked = match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz" | "zst") => path.with_extension(""),
            _ => PathBuf::from(path),
        };
        match unpacked.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "tsv" | "tab" => Some(Self::Tsv),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// What a first line looks like.
    fn of_line(line: &[u8]) -> Self {
        match line {
            line if line.trim_ascii_start().starts_with(b"{") => Self::Ndjson,
            line if line.contains(&b'\t') => Self::Tsv,
            _ => Self::Csv,
        }
    }

    /// The byte between fields of a row; an object has none.
    fn delimiter(self) -> Option<u8> {
        match self {
            Self::Ndjson => None,
            Self::Tsv => Some(b'\t'),
            Self::Csv => Some(b','),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ndjson" => Ok(Self::Ndjson),
            "tsv" => Ok(Self::Tsv),
            "csv" => Ok(Self::Csv),
            _ => Err(format!("expected one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// A field that is asked of every record, found once with [`Records::column`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    name: String,
    /// Where it stands in a row; nothing for objects, whose fields stand anywhere.
    at: Option<usize>,
}

impl Column {
    pub fn name(&self) -> &str {
        &self.name
    }
}

pub struct Record<'r> {
    raw: &'r str,
    fields: Fields<'r>,
}

enum Fields<'r> {
    Object(Object<'r>),
    Cells(&'r Cells),
}

impl<'r> Record<'r> {
    /// The bytes that it was read from, without the end of the line.
    pub fn raw(&self) -> &'r str {
        self.raw
    }

    /// What stands in a column, as text: a string, number or truth value of an object as it would
    /// stand in a table. Nothing where an object has no such field, or `null`; a list or an object
    /// is refused.
    pub fn field(&self, column: &Column) -> Result<Option<Cow<'_, str>>, String> {
        match &self.fields {
            Fields::Cells(cells) => Ok(column.at.and_then(|at| cells.get(at)).map(Cow::Borrowed)),
            Fields::Object(object) => object.text(&column.name),
        }
    }

    /// [`Record::field`] where it must be there.
    pub fn needed(&self, column: &Column) -> Result<Cow<'_, str>, String> {
        self.field(column)?.ok_or_else(|| format!("expected a field `{}`", column.name))
    }

    /// Whether a field of this name is there, of whatever kind.
    pub fn has(&self, name: &str) -> bool {
        match &self.fields {
            Fields::Cells(cells) => cells.named(name).is_some(),
            Fields::Object(object) => object.has(name),
        }
    }
}
