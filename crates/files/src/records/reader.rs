//! Reads records from a file or a stream, one after another, in constant memory.

use std::path::Path;

use crate::input::Input;
use crate::progress::Progress;
use crate::records::table::{Cells, Cutter};
use crate::records::{
    Column, Fields, Format, Object, RECORD_BYTES, Record, ending, json_object, table,
};
use crate::{Place, ReadError, Result};

/// The column of a file with a text a line.
const TEXT: &str = "text";
/// Bytes of a line that is too long by which it can be found.
const SHOWN_BYTES: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The format; if absent, that of the file's name, or else the one its first line suggests.
    pub format: Option<Format>,
    /// Whether rows have no header; columns are then named by numbers from 1.
    pub headless: bool,
}

pub struct Records {
    input: Input,
    format: Format,
    cutter: Cutter,
    cells: Cells,
    header: Option<String>,
    raw: String,
    line: u64,
    /// Whether the end of the last record is known, so that reading can continue after it.
    passable: bool,
}

impl Records {
    /// Opens a file, a pipe, or standard input where the path is `-`. A `.txt` without tabs or objects
    /// holds a text a line, in a column `text`.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let format = options.format.or_else(|| Format::of_path(path));
        let is_text = ending(path).is_some_and(|ending| ending == "txt");
        Self::begin(Input::open_stream(path)?, Options { format, ..options }, is_text)
    }

    pub fn new(input: Input, options: Options) -> Result<Self> {
        Self::begin(input, options, false)
    }

    /// Begins to read; `is_text` where the name says that each line is a text.
    fn begin(mut input: Input, options: Options, is_text: bool) -> Result<Self> {
        input.skip_byte_order_mark()?;
        let line = input.peek_line(RECORD_BYTES)?.unwrap_or_default();
        let looks = options.format.unwrap_or_else(|| Format::of_line(line));
        let is_text = is_text
            && options == Options { format: None, headless: false }
            && looks == Format::CSV
            && line != TEXT.as_bytes();
        let looks = if is_text { Format::Lines } else { looks };
        let array = line.trim_ascii().strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
        if !matches!(looks, Format::Tsv | Format::Lines)
            && array.is_some_and(|rest| matches!(rest, [] | [b'{', ..]))
        {
            let problem = "a JSON array; an object a line is read: `jq -c '.[]'` makes such lines";
            return Err(input.unsupported(problem));
        }
        let mut records = Self {
            input,
            format: looks,
            cutter: Cutter::new(looks),
            cells: Cells::default(),
            header: None,
            raw: String::new(),
            line: 1,
            passable: false,
        };
        if records.format != Format::Ndjson {
            records.read_header(options.headless || is_text)?;
        }
        if is_text {
            records.cells.names = vec![TEXT.to_owned()];
        }
        Ok(records)
    }

    fn read_header(&mut self, headless: bool) -> Result<()> {
        if headless {
            let line = self.input.peek_line(RECORD_BYTES)?.unwrap_or_default();
            let line = String::from_utf8_lossy(line).into_owned();
            self.cutter.take(line.as_bytes());
            let cut = table::cut(&line, self.format, &mut self.cutter, &mut self.cells);
            cut.map_err(|problem| self.wrong(problem))?;
            self.cells.names = (1..=self.cells.len()).map(|number| number.to_string()).collect();
            return Ok(());
        }
        if !self.advance()? {
            return Err(self
                .input
                .malformed(Place::Line(1), "expected a header; the file is empty"));
        }
        let names: Vec<String> = self.cells.iter().map(str::to_owned).collect();
        self.cells.names = names;
        self.header = Some(self.raw.clone());
        Ok(())
    }

    /// Takes the first row of records without a header for one if it has these names; whether objects or
    /// rows have them.
    pub fn take_header(&mut self, names: &[&str]) -> Result<bool> {
        if self.format == Format::Ndjson {
            return Ok(true);
        }
        let there = names.iter().all(|name| self.cells.iter().any(|cell| cell == *name));
        if there {
            self.read_header(false)?;
        }
        Ok(there)
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// The names of the columns; empty for objects, each of which has its own.
    pub fn names(&self) -> &[String] {
        &self.cells.names
    }

    /// The column with this name, or else with this number, from 1. For objects every name is
    /// accepted, because their fields are not known before they are read.
    pub fn column(&self, name: &str) -> Result<Column> {
        if self.cells.names.iter().filter(|known| *known == name).count() > 1 {
            let problem = format!("several columns are called `{name}`: name one by its number");
            return Err(self.input.malformed(Place::Line(1), problem));
        }
        self.find(name).ok_or_else(|| {
            let known = self.cells.names.join(", ");
            let mut problem = format!("expected a column `{name}`; the columns are {known}");
            if self.cells.names.len() == 1 && known.contains(';') {
                problem += ": cells between semicolons are split where that is said (--delimiter)";
            }
            self.input.malformed(Place::Line(1), problem)
        })
    }

    /// [`Records::column`], or `None` if there is no such column.
    pub fn find(&self, name: &str) -> Option<Column> {
        if self.format == Format::Ndjson {
            return Some(Column { name: name.to_owned(), at: None });
        }
        let by_number = || {
            let number: usize = name.parse().ok()?;
            number.checked_sub(1).filter(|&at| at < self.cells.names.len())
        };
        let at = self.cells.named(name).or_else(by_number)?;
        Some(Column { name: name.to_owned(), at: Some(at) })
    }

    /// The next record; `None` at the end. Empty lines are skipped, except in a table with one
    /// column.
    pub fn read(&mut self) -> Result<Option<Record<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        let (found, expected) = (self.cells.len(), self.cells.names.len());
        if self.format != Format::Ndjson && found != expected {
            return Err(self.wrong(format!("expected {expected} columns, found {found}")));
        }
        let fields = match self.format {
            Format::Ndjson => match json_object(&self.raw) {
                Ok(object) => Fields::Object(object),
                Err(problem) => return Err(self.wrong(problem)),
            },
            Format::Tsv | Format::Csv(_) | Format::Lines => Fields::Cells(&self.cells),
        };
        Ok(Some(Record { raw: &self.raw, fields }))
    }

    /// The field names of the next record, without consuming it.
    pub fn peek_names(&mut self) -> Result<Vec<String>> {
        if self.format != Format::Ndjson {
            return Ok(self.cells.names.clone());
        }
        let line = self.input.peek_line(RECORD_BYTES)?.unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let object: Option<Object<'_>> = json_object(&line).ok();
        Ok(object.iter().flat_map(Object::names).map(str::to_owned).collect())
    }

    /// Whether reading the next record will not block, judged by the buffered bytes.
    pub fn is_ready(&self) -> bool {
        self.input.has_line()
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether [`Records::read`] failed for the last record alone, and can read those after it.
    pub fn is_passable(&self) -> bool {
        self.passable
    }

    pub fn path(&self) -> &Path {
        self.input.path()
    }

    pub fn follow(&self, progress: &Progress) {
        progress.follow(&self.input);
    }

    pub fn wrong(&self, problem: impl Into<String>) -> ReadError {
        self.input.malformed(Place::Line(self.line), problem)
    }

    /// Reads the bytes of one record, and splits a row into its cells.
    fn advance(&mut self) -> Result<bool> {
        self.raw.clear();
        self.passable = false;
        loop {
            let first = self.raw.is_empty();
            let left = RECORD_BYTES.saturating_sub(self.raw.len());
            let number = self.input.lines().saturating_add(1);
            let line = match self.input.read_line_bounded(left) {
                Err(ReadError::Malformed { .. }) if !first => {
                    return Err(self.wrong(format!(
                        "the row is longer than {RECORD_BYTES} bytes; a quotation mark of it may not be \
                         closed"
                    )));
                }
                Err(error @ ReadError::Malformed { .. }) => {
                    let beginning = self.input.skip_line(SHOWN_BYTES)?;
                    self.raw = String::from_utf8_lossy(&beginning).into_owned();
                    self.line = number;
                    self.pass_over();
                    return Err(error);
                }
                line => line?,
            };
            let Some(line) = line else {
                if first {
                    return Ok(false);
                }
                self.pass_over();
                return Err(self.wrong("a quotation mark is not closed"));
            };
            let Ok(line) = std::str::from_utf8(line) else {
                let line = String::from_utf8_lossy(line);
                self.raw.push_str(&line);
                self.line = number;
                self.pass_over();
                return Err(self.wrong("the line is not UTF-8"));
            };
            let blank = line.trim_ascii().is_empty();
            let has_empty = matches!(self.format, Format::Tsv | Format::Lines);
            if first && blank && (!has_empty || self.cells.names.len() != 1) {
                continue;
            }
            if first {
                self.line = number;
            } else {
                self.raw.push('\n');
            }
            self.raw.push_str(line);
            let quotes = matches!(self.format, Format::Csv(_));
            if !quotes || self.cutter.take(line.as_bytes()) {
                break;
            }
        }
        self.passable = true;
        match self.format.delimiter() {
            None => Ok(true),
            Some(_) => {
                let cut = table::cut(&self.raw, self.format, &mut self.cutter, &mut self.cells);
                cut.map(|()| true).map_err(|problem| self.wrong(problem))
            }
        }
    }

    /// Skips a record whose cells cannot be read.
    fn pass_over(&mut self) {
        self.passable = true;
        self.cutter = Cutter::new(self.format);
    }
}
