//! The settings file: reads TOML, with the lines of keys and values as written. Which keys exist is
//! not known here, except the table of models.

use toml::de::{DeTable, DeValue};

use crate::http::settings::value::{RawValue, quoted};

/// Name of the table that a file can have instead of `model`.
pub(super) const MODELS: &str = "models";

pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) written: Result<RawValue, String>,
}

/// The entries of a file in order, and its syntax errors: line and problem.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) entries: Vec<Entry>,
    pub(super) broken: Vec<(usize, String)>,
}

pub(super) fn entries(text: &str) -> Entries {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |at: usize| 1 + ends.partition_point(|&end| end < at);
    let (table, errors) = DeTable::parse_recoverable(text);
    let reports = errors
        .iter()
        .map(|error| (line(error.span().map_or(0, |span| span.start)), error.message().to_owned()));
    let mut broken: Vec<(usize, String)> = reports.collect();
    // The parser reports one bare word several times.
    broken.sort_by_key(|(line, _)| *line);
    broken.dedup_by_key(|(line, _)| *line);
    if !broken.is_empty() {
        // Entries recovered after a syntax error may be wrong.
        return Entries { entries: Vec::new(), broken };
    }
    let entries = in_order(table.get_ref()).into_iter().map(|(at, key, value)| Entry {
        key: key.to_owned(),
        line: line(at),
        written: match value {
            DeValue::Table(models) if key == MODELS => named(models),
            value => written(value),
        },
    });
    Entries { entries: entries.collect(), broken: Vec::new() }
}

/// A table's keys and values in the order of the file.
fn in_order<'t>(table: &'t DeTable<'_>) -> Vec<(usize, &'t str, &'t DeValue<'t>)> {
    let rows = table.iter();
    let rows = rows.map(|(key, value)| (key.span().start, key.get_ref().as_ref(), value.get_ref()));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|&(at, ..)| at);
    rows
}

fn written(value: &DeValue<'_>) -> Result<RawValue, String> {
    match value {
        DeValue::Array(values) => {
            let values = values.iter().map(|value| single(value.get_ref()));
            values.collect::<Result<_, _>>().map(RawValue::Many)
        }
        value => single(value).map(RawValue::One),
    }
}

fn single(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        DeValue::Integer(value) => match i128::from_str_radix(value.as_str(), value.radix()) {
            Ok(value) => Ok(value.to_string()),
            Err(_) => Err("is no number within range".to_owned()),
        },
        other => Err(format!("{} is no value of a setting", kind(other))),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// `[models]`: a name and a file per row.
fn named(models: &DeTable<'_>) -> Result<RawValue, String> {
    let rows = in_order(models).into_iter().map(|(_, name, value)| match value {
        DeValue::String(_) if name.contains(['=', '/']) => {
            Err(format!("{} is no name", quoted(name)))
        }
        DeValue::String(path) => Ok(format!("{name}={path}")),
        other => Err(format!("{}: {} is no file", quoted(name), kind(other))),
    });
    rows.collect::<Result<_, _>>().map(RawValue::Many)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Result<RawValue, String> {
        let Entries { mut entries, broken } = entries(text);
        assert!(broken.is_empty(), "{broken:?}");
        assert_eq!(entries.len(), 1);
        entries.remove(0).written
    }

    #[test]
    fn values_of_every_kind_become_text() {
        let one = |text: &str| Ok(RawValue::One(text.to_owned()));
        assert_eq!(only("a = 8_192"), one("8192"));
        assert_eq!(only("a = 0x10"), one("16"));
        assert_eq!(only("a = -1"), one("-1"));
        assert_eq!(only("a = '8MiB'"), one("8MiB"));
        assert_eq!(only("a = true"), one("true"));
        assert_eq!(only("a = []"), Ok(RawValue::Many(Vec::new())));
        for (wrong, expected) in [
            ("a = 1.5", "a number with a fraction is no value of a setting"),
            ("a = 1979-05-27", "a date is no value of a setting"),
            ("a.b = 1", "a table is no value of a setting"),
            ("a = [[1]]", "a list is no value of a setting"),
            ("a = [{}]", "a table is no value of a setting"),
        ] {
            assert_eq!(only(wrong), Err(expected.to_owned()));
        }
    }

    #[test]
    fn models_keep_their_order() {
        let expected = ["z=1.safetensors", "a=2.safetensors"].map(str::to_owned).to_vec();
        let read = only("[models]\nz = '1.safetensors'\na = '2.safetensors'\n");
        assert_eq!(read, Ok(RawValue::Many(expected)));
        assert!(only("[models]\n'a=b' = 'c'").is_err());
        assert!(only("[models]\n'a/b' = 'c'").is_err());
        assert!(only("[models]\na = 3").is_err());
    }

    #[test]
    fn keys_and_errors_know_their_lines() {
        let read = entries("# a\n\nb = 1\nc = 2\n");
        let lines: Vec<usize> = read.entries.iter().map(|entry| entry.line).collect();
        assert_eq!(lines, [3, 4]);
        let read = entries("a = 1\nb = \nc = 'x\n");
        let lines: Vec<usize> = read.broken.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3]);
        assert_eq!(entries("a = 1\na = 2\n").broken[0].0, 2);
    }
}
