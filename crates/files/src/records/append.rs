//! Records written back as they came, with fields added at their end.

use std::fmt::Write;

use crate::records::Format;

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
