//! Files of tweets: rows under a header, split at tabs, or JSON objects, one a line.
//!
//! Here it is known in which column a thing stands, and which rows are meant. What a text holds
//! is not.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cognate_files::input::{Input, shown};
use cognate_files::progress::Progress;
use cognate_files::{Place, ReadError, instant};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// Longest row; an object of Twitter's with all its fields is some thousand bytes.
const ROW_BYTES: usize = 1 << 20;

/// Names of the column that holds the time, where none is said; the first that is there.
const TIMES: [&str; 4] = ["time", "time_utc", "created_at", "timestamp"];

/// Which columns hold what.
#[derive(Debug, Clone)]
pub struct Columns {
    pub text: String,
    /// The time; without it, the first of `time`, `time_utc`, `created_at`, `timestamp`.
    pub time: Option<String>,
    /// What the tweet is about, in the place of its hashtags.
    pub event: Option<String>,
    /// Which rows are meant: all of these must hold.
    pub filters: Vec<Filter>,
}

/// A value that a column must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    column: String,
    value: String,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.is_empty() => {
                Ok(Self { column: column.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected a column, `=` and a value".to_owned()),
        }
    }
}

/// A row that is meant.
pub(super) struct Row<'r> {
    pub(super) text: Cow<'r, str>,
    /// Milliseconds since 1970 began.
    pub(super) time: i64,
    /// What it is about; empty where it does not say.
    pub(super) event: Cow<'r, str>,
}

impl Columns {
    /// Hands every row of a file to `take`, with `None` for one that is not meant. What `take` says
    /// is wrong is reported with file and line.
    pub(super) fn each(
        &self,
        path: &Path,
        mut take: impl FnMut(Option<Row<'_>>) -> Result<(), String>,
    ) -> Result<(), ReadError> {
        let mut input = Input::open(path)?;
        input.skip_byte_order_mark()?;
        let progress = Progress::bytes("tweets");
        let table = match is_objects(path) {
            true => None,
            false => Some(Table::of(self, &mut input)?),
        };
        while let Some(line) = input.read_line_bounded(ROW_BYTES)? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let outcome = match (std::str::from_utf8(line), &table) {
                (Err(_), _) => Err("the row is not UTF-8".to_owned()),
                (Ok(line), Some(table)) => table.row(self, line).and_then(&mut take),
                (Ok(line), None) => {
                    self.object(line).and_then(|object| self.row_of(&object).and_then(&mut take))
                }
            };
            outcome.map_err(|problem| input.malformed(Place::Line(input.lines()), problem))?;
            progress.follow(&input);
        }
        Ok(())
    }

    fn object(&self, line: &str) -> Result<Map<String, Value>, String> {
        serde_json::from_str(line).map_err(|error| match error.classify() {
            // That would hold what was found, of whatever length.
            Category::Data => format!("expected a JSON object, found {}", shown(line.as_bytes())),
            _ => format!("expected a JSON object: {error}"),
        })
    }

    fn row_of<'r>(&self, object: &'r Map<String, Value>) -> Result<Option<Row<'r>>, String> {
        let meant = |filter: &Filter| {
            scalar(object.get(&filter.column)) == Some(filter.value.as_str().into())
        };
        if !self.filters.iter().all(meant) {
            return Ok(None);
        }
        let named = |name: &str| object.get(name).map(|value| (name.to_owned(), value));
        let (name, time) = match &self.time {
            Some(name) => named(name).ok_or_else(|| format!("expected a field `{name}` (--time)")),
            None => TIMES.iter().find_map(|name| named(name)).ok_or_else(|| {
                format!("expected a field with the time (--time), one of {}", TIMES.join(", "))
            }),
        }?;
        let time = scalar(Some(time)).unwrap_or_default();
        let time = milliseconds(&name, &time)?;
        let text = match object.get(&self.text) {
            Some(Value::String(text)) => Cow::from(text),
            Some(_) => return Err(format!("`{}`: expected a string", self.text)),
            None => return Err(format!("expected a field `{}` (--text)", self.text)),
        };
        let event = self.event.as_ref().and_then(|name| scalar(object.get(name)));
        Ok(Some(Row { text, time, event: event.unwrap_or_default() }))
    }
}

/// Where in a row stands what.
struct Table {
    columns: usize,
    text: usize,
    time: usize,
    time_name: String,
    event: Option<usize>,
    filters: Vec<usize>,
}

impl Table {
    /// Finds the columns in the header.
    fn of(columns: &Columns, input: &mut Input) -> Result<Self, ReadError> {
        let header = input.read_line_bounded(ROW_BYTES)?.unwrap_or_default();
        let header = String::from_utf8_lossy(header).into_owned();
        let names: Vec<&str> = header.split('\t').collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let missing = |what: String| {
            let found = shown(header.as_bytes());
            let problem = format!("expected {what} in the header, found {found}");
            input.malformed(Place::Line(1), problem)
        };
        let find = |name: &str, flag: &str| {
            place(name).ok_or_else(|| missing(format!("a column `{name}` ({flag})")))
        };
        let time = match &columns.time {
            Some(name) => find(name, "--time")?,
            None => TIMES.iter().find_map(|name| place(name)).ok_or_else(|| {
                missing(format!("a column with the time (--time), one of {}", TIMES.join(", ")))
            })?,
        };
        let event = columns.event.as_ref().map(|name| find(name, "--event-column")).transpose()?;
        let filters = columns.filters.iter().map(|filter| find(&filter.column, "--where"));
        Ok(Self {
            columns: names.len(),
            text: find(&columns.text, "--text")?,
            time,
            time_name: names[time].to_owned(),
            event,
            filters: filters.collect::<Result<_, _>>()?,
        })
    }

    fn row<'r>(&self, columns: &Columns, line: &'r str) -> Result<Option<Row<'r>>, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields.len() != self.columns {
            return Err(format!("expected {} columns, found {}", self.columns, fields.len()));
        }
        let mut filters = columns.filters.iter().zip(&self.filters);
        if !filters.all(|(filter, &place)| fields[place] == filter.value) {
            return Ok(None);
        }
        let time = milliseconds(&self.time_name, fields[self.time])?;
        let event = self.event.map_or("", |place| fields[place]);
        Ok(Some(Row { text: fields[self.text].into(), time, event: event.into() }))
    }
}

fn milliseconds(column: &str, value: &str) -> Result<i64, String> {
    instant::milliseconds(value).ok_or_else(|| {
        let found = shown(value.as_bytes());
        format!("`{column}`: expected {}, found {found}", instant::FORMS)
    })
}

/// A value that is neither list nor object, as it would stand in a table.
fn scalar(value: Option<&Value>) -> Option<Cow<'_, str>> {
    match value? {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether the name says that lines are JSON objects.
fn is_objects(path: &Path) -> bool {
    let unpacked = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz" | "zst") => path.with_extension(""),
        _ => PathBuf::from(path),
    };
    unpacked.extension().is_some_and(|ending| ending == "ndjson" || ending == "jsonl")
}
