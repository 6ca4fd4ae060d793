//! Splits rows into cells, at tabs or as comma-separated values with quotation marks, and writes
//! records with added fields.

use std::fmt::Write;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::ReadError;
use crate::records::{Column, Format, Object, Records};

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

    /// The index of the column with this name; of several the first.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    fn cut_at_tabs(&mut self, row: &str) {
        self.text.clear();
        self.ends.clear();
        for cell in row.split('\t') {
            self.text.push_str(cell);
            self.ends.push(self.text.len());
        }
    }
}

/// The state of parsing comma-separated values: a row continues on the next line while a quotation
/// mark is open.
#[derive(Debug)]
pub(super) struct Cutter {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    used: (usize, usize),
}

impl Cutter {
    /// For rows in this format; only one with quotation marks is split here.
    pub(super) fn new(format: Format) -> Self {
        let delimiter = format.delimiter().unwrap_or(b',');
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        Self { reader, text: vec![0; 256], ends: vec![0; 16], used: (0, 0) }
    }

    /// Adds one line with its end; returns whether the row ends with it.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        // The library takes an empty input for the end of the file.
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

    /// Returns the cells of the row, and begins the next row.
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

pub(super) fn cut(
    row: &str,
    format: Format,
    cutter: &mut Cutter,
    cells: &mut Cells,
) -> Result<(), String> {
    match format {
        Format::Csv(_) => cutter.finish(cells),
        Format::Tsv | Format::Ndjson => {
            cells.cut_at_tabs(row);
            Ok(())
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Added<'a> {
    Text(&'a str),
    /// A number; one that is not finite is written as [`Added::Nothing`].
    Number(f64),
    /// A number with the digits of single precision; handled like [`Added::Number`].
    Score(f32),
    Count(u64),
    Truth(bool),
    /// A list of numbers; in a row they are separated by spaces.
    Row(&'a [f32]),
    /// No value: `null`, or an empty cell.
    Nothing,
}

#[derive(Debug)]
pub struct Appender {
    format: Format,
    names: Vec<String>,
    chosen: Option<Vec<Field>>,
    cutter: Cutter,
    cells: Cells,
}

/// A written field: one of the record, or an added one by its index.
#[derive(Debug, Clone)]
enum Field {
    Own(Column),
    Added(usize),
}

impl Appender {
    pub fn new(format: Format, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        let (cutter, cells) = (Cutter::new(format), Cells::default());
        Self { format, names, chosen: None, cutter, cells }
    }

    /// Writes only these fields, in this order: added ones, and those that `records` have, by name or
    /// number.
    pub fn choose(&mut self, fields: &[String], records: &Records) -> Result<(), ReadError> {
        let field = |name: &String| match self.names.iter().position(|added| added == name) {
            Some(at) => Ok(Field::Added(at)),
            None => records.column(name).map(Field::Own),
        };
        self.chosen = Some(fields.iter().map(field).collect::<Result<_, _>>()?);
        Ok(())
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Appends the header with the new names to `out`; nothing for objects.
    pub fn header(&mut self, header: Option<&str>, out: &mut String) {
        if let (Some(header), Some(_)) = (header, self.format.delimiter()) {
            let names = self.names.clone();
            let names: Vec<_> = names.iter().map(|name| Added::Text(name)).collect();
            self.record(header, &names, out);
        }
    }

    /// Appends a record and its line end to `out`. Names without a value are left out.
    pub fn record(&mut self, raw: &str, values: &[Added<'_>], out: &mut String) {
        if self.format != Format::Ndjson && self.chosen.is_some() {
            self.cut(raw);
        }
        match (self.format, &self.chosen) {
            (Format::Ndjson, None) => self.object(raw, values, out),
            (Format::Ndjson, Some(chosen)) => self.chosen_object(raw, values, chosen, out),
            (Format::Tsv | Format::Csv(_), None) => self.row(raw, values, out),
            (Format::Tsv | Format::Csv(_), Some(chosen)) => self.chosen_row(values, chosen, out),
        }
    }

    fn row(&self, raw: &str, values: &[Added<'_>], out: &mut String) {
        out.push_str(raw);
        for value in values {
            self.delimit(out);
            self.value(value, out);
        }
        out.push('\n');
    }

    /// Splits a row, which was complete when it was read.
    fn cut(&mut self, raw: &str) {
        if matches!(self.format, Format::Csv(_)) {
            for line in raw.split('\n') {
                self.cutter.take(line.as_bytes());
            }
        }
        let _ = cut(raw, self.format, &mut self.cutter, &mut self.cells);
    }

    fn chosen_row(&self, values: &[Added<'_>], chosen: &[Field], out: &mut String) {
        for (place, field) in chosen.iter().enumerate() {
            if place > 0 {
                self.delimit(out);
            }
            match field {
                Field::Own(column) => {
                    let cell = column.at.and_then(|at| self.cells.get(at));
                    self.cell(cell.unwrap_or_default(), out);
                }
                Field::Added(at) => self.value(values.get(*at).unwrap_or(&Added::Nothing), out),
            }
        }
        out.push('\n');
    }

    fn delimit(&self, out: &mut String) {
        out.push(self.format.delimiter().unwrap_or(b' ').into());
    }

    fn value(&self, value: &Added<'_>, out: &mut String) {
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

    fn cell(&self, text: &str, out: &mut String) {
        match self.format {
            Format::Csv(delimiter) if text.contains(['"', delimiter.into(), '\n', '\r']) => {
                out.push('"');
                out.push_str(&text.replace('"', "\"\""));
                out.push('"');
            }
            Format::Csv(_) => out.push_str(text),
            // This format has no quoting, so characters that would end the cell become spaces.
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
            value.json(out);
        }
        out.push_str("}\n");
    }

    fn chosen_object(&self, raw: &str, values: &[Added<'_>], chosen: &[Field], out: &mut String) {
        // The object was parsed before, when it was read.
        let object = Object::read(raw).unwrap_or(Object(Vec::new()));
        out.push('{');
        for (place, field) in chosen.iter().enumerate() {
            out.push_str(if place == 0 { "" } else { "," });
            let name = match field {
                Field::Own(column) => Some(&column.name),
                Field::Added(at) => self.names.get(*at),
            };
            quoted(name.map_or("", String::as_str), out);
            out.push(':');
            match field {
                Field::Own(column) => out.push_str(object.value(&column.name).unwrap_or("null")),
                Field::Added(at) => values.get(*at).unwrap_or(&Added::Nothing).json(out),
            }
        }
        out.push_str("}\n");
    }
}

fn quoted(text: &str, out: &mut String) {
    // Serialising a string cannot fail.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

impl Added<'_> {
    fn json(&self, out: &mut String) {
        match self {
            Self::Text(text) => quoted(text, out),
            Self::Row(numbers) => {
                out.push('[');
                for (at, &number) in numbers.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    Self::Score(number).plain(out);
                }
                out.push(']');
            }
            value => value.plain(out),
        }
    }

    /// Writes a value that needs no quoting; writing to a string cannot fail.
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
