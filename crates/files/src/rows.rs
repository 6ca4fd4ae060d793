//! Reads rows with fields separated by tabs.
//!
//! There is no quoting, because sentences contain unbalanced quotation marks. What the fields mean
//! is known to the caller.

use std::path::Path;

use crate::input::Input;
use crate::records::{Column, Options, Record, Records};
use crate::{Place, ReadError, Result};

const ROW_BYTES: usize = 1 << 20;

pub struct Rows {
    input: Input,
}

impl Rows {
    pub fn open(path: &Path) -> Result<Self> {
        Self::new(Input::open(path)?)
    }

    pub fn new(mut input: Input) -> Result<Self> {
        input.skip_byte_order_mark()?;
        Ok(Self { input })
    }

    /// Calls `take` with the fields of the next row; `None` at the end of the file. An error of
    /// `take` is reported with file and line.
    pub fn next<T>(
        &mut self,
        take: impl FnOnce(&[&str]) -> Result<T, String>,
    ) -> Result<Option<T>> {
        let outcome = match self.input.read_line_bounded(ROW_BYTES)? {
            None => return Ok(None),
            Some(line) => match std::str::from_utf8(line) {
                Ok(line) => take(&line.split('\t').collect::<Vec<_>>()),
                Err(_) => Err("the row is not UTF-8".to_owned()),
            },
        };
        outcome.map(Some).map_err(|problem| self.wrong(problem))
    }

    pub fn peek(&mut self) -> Result<Vec<String>> {
        let line = self.input.peek_line(ROW_BYTES)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(line).split('\t').map(str::to_owned).collect())
    }

    pub fn wrong(&self, problem: impl Into<String>) -> ReadError {
        self.input.malformed(Place::Line(self.input.lines().max(1)), problem)
    }
}

pub fn exactly<'r, const N: usize>(
    fields: &[&'r str],
    names: &str,
) -> Result<[&'r str; N], String> {
    <[&str; N]>::try_from(fields)
        .map_err(|_| format!("expected {N} columns ({names}), found {}", fields.len()))
}

pub fn field<'r>(fields: &[&'r str], place: usize, name: &str) -> Result<&'r str, String> {
    let missing = || format!("the row ends before column {} ({name})", place + 1);
    fields.get(place).copied().ok_or_else(missing)
}

pub fn number(field: &str, name: &str) -> Result<f64, String> {
    let wrong = || format!("{name}: expected a number, found `{}`", short(field));
    field.trim().parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong)
}

pub fn short(field: &str) -> String {
    let mut shown: String = field.chars().take(30).collect();
    if shown.len() < field.len() {
        shown.push('…');
    }
    shown
}

/// Labelled pairs of texts, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs {
    pub labels: Vec<bool>,
    pub texts: Vec<(String, String)>,
}

/// The caller's check of a text field, which receives the field and its name for messages: returns
/// the text, or what is wrong with it.
pub type Accept = for<'r> fn(&'r str, &str) -> Result<&'r str, String>;

impl Pairs {
    /// Opens a file of pairs, of any format of records.
    pub fn open(path: &Path) -> Result<Records> {
        Records::open(path, Options { format: None, headless: true })
    }

    /// Reads records that have the fields label, text1 and text2, or rows of these three without a header.
    pub fn read(records: &mut Records, accept: Accept) -> Result<Self> {
        let named = ["label", "text1", "text2"];
        let found = records.names().len();
        let columns = match records.take_header(&named)? {
            true => named,
            false if found == 3 => ["1", "2", "3"],
            false => {
                return Err(records.wrong(format!(
                    "expected 3 columns, found {found}; without a header naming label, text1 and text2 \
                     they are label, text, text"
                )));
            }
        };
        let [label, one, other] = columns.map(|name| records.column(name));
        let columns = [label?, one?, other?];
        let mut pairs = Self::default();
        loop {
            let taken = match records.read()? {
                None => return Ok(pairs),
                Some(record) => pair(&record, &columns, accept),
            };
            let (label, texts) = taken.map_err(|problem| records.wrong(problem))?;
            pairs.labels.push(label);
            pairs.texts.push(texts);
        }
    }

    pub fn related(&self) -> usize {
        self.labels.iter().filter(|&&label| label).count()
    }
}

fn pair(
    record: &Record<'_>,
    [label, one, other]: &[Column; 3],
    accept: Accept,
) -> Result<(bool, (String, String)), String> {
    let label = match &*record.needed(label)? {
        "1" | "true" => true,
        "0" | "false" => false,
        other => return Err(format!("label: expected 0 or 1, found `{}`", short(other))),
    };
    let (one, other) = (record.needed(one)?, record.needed(other)?);
    let one = accept(&one, "the first text")?.to_owned();
    Ok((label, (one, accept(&other, "the second text")?.to_owned())))
}
