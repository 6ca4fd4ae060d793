//! Splits rows into cells, at tabs or as comma-separated values with quotation marks, and writes
//! records with added fields.

use std::fmt::Write;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::Result;
use crate::records::{Column, Format, Object, Records, json_object};

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

    fn cut<'r>(&mut self, cells: impl Iterator<Item = &'r str>) {
        self.text.clear();
        self.ends.clear();
        for cell in cells {
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
        Format::Csv(_) => return cutter.finish(cells),
        Format::Tsv | Format::Ndjson => cells.cut(row.split('\t')),
        Format::Lines => cells.cut(std::iter::once(row)),
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Added<'a> {
    Text(&'a str),
    /// A number; if it is not finite it is written as [`Added::Nothing`].
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
    read: Format,
    format: Format,
    names: Vec<String>,
    chosen: Option<Vec<Field>>,
    cutter: Cutter,
    cells: Cells,
}

/// A written field: a field of the record, or an added field by its index.
#[derive(Debug, Clone)]
enum Field {
    Own(Column),
    Added(usize),
}

impl Appender {
    pub fn new(format: Format, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        let (cutter, cells) = (Cutter::new(format), Cells::default());
        Self { read: format, format, names, chosen: None, cutter, cells }
    }

    /// Writes only these fields, in this order: added ones, and those that `records` have, by name or
    /// number.
    pub fn choose(&mut self, fields: &[String], records: &Records) -> Result<()> {
        let field = |name: &String| match self.names.iter().position(|added| added == name) {
            Some(at) => Ok(Field::Added(at)),
            None => records.column(name).map(|column| match column.at {
                Some(at) => Field::own(at, records),
                None => Field::Own(column),
            }),
        };
        self.chosen = Some(fields.iter().map(field).collect::<Result<_, _>>()?);
        Ok(())
    }

    /// Writes in another format than that of `records`. Objects may have different fields, so those of a
    /// table must have been chosen.
    pub fn write_as(&mut self, format: Format, records: &Records) -> Result<()> {
        let same = match (format, self.read) {
            (Format::Csv(_), Format::Csv(delimiter)) => delimiter != b'\t',
            (format, read) => format.delimiter() == read.delimiter(),
        };
        if same {
            return Ok(());
        }
        if self.chosen.is_none() {
            if self.read == Format::Ndjson {
                let problem = "objects are written as rows of the columns that --columns names";
                return Err(records.wrong(problem));
            }
            let own = (0..records.names().len()).map(|at| Field::own(at, records));
            self.chosen = Some(own.chain((0..self.names.len()).map(Field::Added)).collect());
        }
        self.format = format;
        Ok(())
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Appends the header with the new names to `out`; nothing for objects.
    pub fn header(&mut self, header: Option<&str>, out: &mut String) {
        if self.format == Format::Ndjson {
            return;
        }
        if let Some(header) = header {
            let names = self.names.clone();
            let names: Vec<_> = names.iter().map(|name| Added::Text(name)).collect();
            self.record(header, &names, out);
        } else if let (Format::Ndjson, Some(chosen)) = (self.read, &self.chosen) {
            for (place, field) in chosen.iter().enumerate() {
                self.delimit(place, out);
                self.cell(self.name(field), out);
            }
            out.push('\n');
        }
    }

    /// Appends a record and its line end to `out`. Names without a value are left out.
    pub fn record(&mut self, raw: &str, values: &[Added<'_>], out: &mut String) {
        if self.read != Format::Ndjson && self.chosen.is_some() {
            self.cut(raw);
        }
        match (self.read, &self.chosen) {
            (_, Some(chosen)) => self.chosen(raw, values, chosen, out),
            (Format::Ndjson, None) if !values.is_empty() => self.object(raw, values, out),
            (_, None) => self.row(raw, values, out),
        }
    }

    fn row(&self, raw: &str, values: &[Added<'_>], out: &mut String) {
        match self.read {
            // Its tabs are no ends of cells.
            Format::Lines if !values.is_empty() => self.cell(raw, out),
            _ => out.push_str(raw),
        }
        for value in values {
            self.delimit(1, out);
            self.value(value, out);
        }
        out.push('\n');
    }

    /// Splits a row, which was complete when it was read.
    fn cut(&mut self, raw: &str) {
        if matches!(self.read, Format::Csv(_)) {
            for line in raw.split('\n') {
                self.cutter.take(line.as_bytes());
            }
        }
        let _ = cut(raw, self.read, &mut self.cutter, &mut self.cells);
    }

    /// Writes the chosen fields of an object, or of the row that was cut.
    fn chosen(&self, raw: &str, values: &[Added<'_>], chosen: &[Field], out: &mut String) {
        let (from_objects, to_objects) =
            (self.read == Format::Ndjson, self.format == Format::Ndjson);
        // An object was parsed before, when it was read.
        let object = from_objects.then(|| json_object(raw).unwrap_or(Object(Vec::new())));
        out.push_str(if to_objects { "{" } else { "" });
        for (place, field) in chosen.iter().enumerate() {
            self.delimit(place, out);
            if to_objects {
                quoted(self.name(field), out);
                out.push(':');
            }
            match (field, &object) {
                (Field::Added(at), _) => {
                    self.value(values.get(*at).unwrap_or(&Added::Nothing), out);
                }
                (Field::Own(column), None) => {
                    let cell = column.at.and_then(|at| self.cells.get(at));
                    self.cell(cell.unwrap_or_default(), out);
                }
                (Field::Own(column), Some(object)) if to_objects => {
                    out.push_str(object.value(&column.name).unwrap_or("null"));
                }
                (Field::Own(Column { name, .. }), Some(object)) => {
                    let text =
                        object.text(name).unwrap_or_else(|_| object.value(name).map(Into::into));
                    self.cell(&text.unwrap_or_default(), out);
                }
            }
        }
        out.push_str(if to_objects { "}\n" } else { "\n" });
    }

    fn name<'f>(&'f self, field: &'f Field) -> &'f str {
        match field {
            Field::Own(column) => &column.name,
            Field::Added(at) => self.names.get(*at).map_or("", String::as_str),
        }
    }

    /// Separates a field from the field before it.
    fn delimit(&self, place: usize, out: &mut String) {
        if place > 0 {
            out.push(self.format.delimiter().unwrap_or(b',').into());
        }
    }

    fn value(&self, value: &Added<'_>, out: &mut String) {
        match value {
            Added::Text(text) => self.cell(text, out),
            value if self.format == Format::Ndjson => value.json(out),
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
            Format::Ndjson => quoted(text, out),
            Format::Csv(delimiter) if text.contains(['"', delimiter.into(), '\n', '\r']) => {
                out.push('"');
                out.push_str(&text.replace('"', "\"\""));
                out.push('"');
            }
            Format::Csv(_) => out.push_str(text),
            // This format has no quoting, so characters that would end the cell become spaces.
            Format::Tsv | Format::Lines => out.push_str(&text.replace(['\t', '\n', '\r'], " ")),
        }
    }

    fn object(&self, raw: &str, values: &[Added<'_>], out: &mut String) {
        let body = raw.trim_ascii_end();
        let body = body.strip_suffix('}').unwrap_or(body).trim_ascii_end();
        out.push_str(body);
        let first = usize::from(!body.ends_with('{'));
        for (place, (name, value)) in self.names.iter().zip(values).enumerate() {
            self.delimit(first + place, out);
            quoted(name, out);
            out.push(':');
            self.value(value, out);
        }
        out.push_str("}\n");
    }
}

impl Field {
    fn own(at: usize, records: &Records) -> Self {
        Self::Own(Column {
            name: records.names().get(at).cloned().unwrap_or_default(),
            at: Some(at),
        })
    }
}

fn quoted(text: &str, out: &mut String) {
    // Serialising a string cannot fail.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

impl Added<'_> {
    fn json(&self, out: &mut String) {
        match self {
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
