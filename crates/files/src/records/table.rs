//! Rows cut into cells: at tabs, or as comma-separated values with quotation marks.

use std::fmt::Write;

use csv_core::{ReadRecordResult, Reader};

use crate::records::Format;

/// The cells of one row under the names of all columns.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) names: Vec<String>,
    text: String,
    ends: Vec<usize>,
}

impl Cells {
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.text.get(start.unwrap_or(0)..end)
    }

    /// Where the column of a name stands; of several the first.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Cuts a row that lies between tabs.
    fn cut_at_tabs(&mut self, row: &str) {
        self.text.clear();
        self.ends.clear();
        for cell in row.split('\t') {
            self.text.push_str(cell);
            self.ends.push(self.text.len());
        }
    }
}

/// What cutting comma-separated values works in: it goes on from line to line while a quotation
/// mark is open.
pub(super) struct Cutter {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    used: (usize, usize),
}

impl Cutter {
    pub(super) fn new() -> Self {
        Self { reader: Reader::new(), text: vec![0; 256], ends: vec![0; 16], used: (0, 0) }
    }

    /// Takes in one more line with its end; whether the row ends with it.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        // To the library, no bytes at all are the end of the file.
        (!line.is_empty() && self.feed(line)) || self.feed(b"\n")
    }

    fn feed(&mut self, mut line: &[u8]) -> bool {
        loop {
            let (text, ends) = (&mut self.text[self.used.0..], &mut self.ends[self.used.1..]);
            let (result, read, written, ended) = self.reader.read_record(line, text, ends);
            self.used = (self.used.0 + written, self.used.1 + ended);
            line = &line[read..];
            match result {
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::InputEmpty => return false,
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
    }

    /// Hands the cells of the row over, and begins another.
    pub(super) fn finish(&mut self, cells: &mut Cells) -> Result<(), String> {
        let (text, ends) = (&self.text[..self.used.0], &self.ends[..self.used.1]);
        cells.text.clear();
        cells.text.push_str(std::str::from_utf8(text).map_err(|_| "the row is not UTF-8")?);
        cells.ends.clear();
        cells.ends.extend_from_slice(ends);
        self.used = (0, 0);
        self.reader.reset();
        Ok(())
    }
}

/// Cuts a row that is known to be whole.
pub(super) fn cut(
    row: &str,
    format: Format,
    cutter: &mut Cutter,
    cells: &mut Cells,
) -> Result<(), String> {
    match format {
        Format::Csv => cutter.finish(cells),
        Format::Tsv | Format::Ndjson => {
            cells.cut_at_tabs(row);
            Ok(())
        }
    }
}

/// What is added to a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Added<'a> {
    Text(&'a str),
    /// A number; one that is not finite is nothing.
    Number(f64),
    /// A number in the digits of single precision; one that is not finite is nothing.
    Score(f32),
    Count(u64),
    /// Whether something is so.
    Truth(bool),
    /// Numbers in a list; in a row they stand between spaces.
    Row(&'a [f32]),
    /// Nothing: `null`, or an empty cell.
    Nothing,
}

/// Writes records with fields of the same names added to each.
#[derive(Debug, Clone)]
pub struct Appender {
    format: Format,
    names: Vec<String>,
}

impl Appender {
    /// Adds fields of these names.
    pub fn new(format: Format, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { format, names: names.into_iter().map(Into::into).collect() }
    }

    /// The names of the fields that are added.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds a header with the new names; none where records name their own fields.
    pub fn header(&self, header: Option<&str>, out: &mut String) {
        if let (Some(header), Some(_)) = (header, self.format.delimiter()) {
            let names: Vec<_> = self.names.iter().map(|name| Added::Text(name)).collect();
            self.row(header, &names, out);
        }
    }

    /// Adds a record and its line end. Names without a value are left out.
    pub fn record(&self, raw: &str, values: &[Added<'_>], out: &mut String) {
        match self.format {
            Format::Ndjson => self.object(raw, values, out),
            Format::Tsv | Format::Csv => self.row(raw, values, out),
        }
    }

    fn row(&self, raw: &str, values: &[Added<'_>], out: &mut String) {
        out.push_str(raw);
        for value in values {
            out.push(self.format.delimiter().unwrap_or(b' ').into());
            match value {
                Added::Text(text) => self.cell(text, out),
                // Writing to a string cannot fail.
                Added::Row(numbers) => {
                    for (at, number) in numbers.iter().enumerate() {
                        let space = if at == 0 { "" } else { " " };
                        let _ = write!(out, "{space}{number}");
                    }
                }
                Added::Nothing => {}
                value => value.plain(out),
            }
        }
        out.push('\n');
    }

    fn cell(&self, text: &str, out: &mut String) {
        match self.format {
            Format::Csv if text.contains(['"', ',', '\n', '\r']) => {
                out.push('"');
                out.push_str(&text.replace('"', "\"\""));
                out.push('"');
            }
            Format::Csv => out.push_str(text),
            // There is no quoting: what would end the cell becomes a space.
            _ => out.push_str(&text.replace(['\t', '\n', '\r'], " ")),
        }
    }

    fn object(&self, raw: &str, values: &[Added<'_>], out: &mut String) {
        let body = raw.trim_ascii_end();
        let body = body.strip_suffix('}').unwrap_or(body).trim_ascii_end();
        out.push_str(body);
        let mut separator = if body.ends_with('{') { "" } else { "," };
        for (name, value) in self.names.iter().zip(values) {
            out.push_str(separator);
            separator = ",";
            quoted(name, out);
            out.push(':');
            match value {
                Added::Text(text) => quoted(text, out),
                Added::Row(numbers) => {
                    out.push('[');
                    for (at, &number) in numbers.iter().enumerate() {
                        out.push_str(if at == 0 { "" } else { "," });
                        Added::Score(number).plain(out);
                    }
                    out.push(']');
                }
                value => value.plain(out),
            }
        }
        out.push_str("}\n");
    }
}

/// A text as JSON has it.
fn quoted(text: &str, out: &mut String) {
    // A string is always valid JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

impl Added<'_> {
    /// What needs no quoting; writing to a string cannot fail.
    fn plain(&self, out: &mut String) {
        let _ = match *self {
            Self::Number(number) if number.is_finite() => write!(out, "{number}"),
            Self::Score(number) if number.is_finite() => write!(out, "{number}"),
            Self::Count(number) => write!(out, "{number}"),
            Self::Truth(truth) => write!(out, "{truth}"),
            _ => write!(out, "null"),
        };
    }
}
