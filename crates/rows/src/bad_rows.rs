//! Rows that cannot be read: the run stops at the first, or they are left out, counted, and written
//! to a file of their own. Which rows have no score is not known here.

use std::io::Write;
use std::path::{Path, PathBuf};

use cognate_files::ReadError;
use cognate_files::records::{Record, Records};
use serde::Serialize;

use crate::growing::Growing;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OnBadRow {
    #[default]
    Stop,
    Skip,
    /// They are left out and written to this file: an object per line, with file, line, reason and
    /// row.
    Keep(PathBuf),
}

impl OnBadRow {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Keep(path) => Some(path),
            Self::Stop | Self::Skip => None,
        }
    }
}

pub(crate) struct BadRows {
    stops: bool,
    out: Option<(PathBuf, Growing)>,
    left_out: LeftOut,
}

/// How many rows were left out, and the reason of the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    #[serde(rename = "bad_rows")]
    pub count: u64,
    #[serde(rename = "first_bad_row", skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

impl LeftOut {
    /// The message for people, if rows were left out.
    pub(crate) fn told(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let rows = if self.count == 1 { "row" } else { "rows" };
        Some(format!("{} broken {rows} left out; the first: {first}", self.count))
    }
}

impl BadRows {
    pub(crate) fn create(on_bad_row: &OnBadRow) -> Result<Self, ReadError> {
        let create = |path: &Path| {
            Ok::<_, ReadError>((path.to_owned(), Growing::create(path).map_err(failed(path))?))
        };
        let out = on_bad_row.path().map(create).transpose()?;
        Ok(Self { out, ..Self::again(on_bad_row) })
    }

    /// For files that are read again: their bad rows were written and counted before.
    pub(crate) fn again(on_bad_row: &OnBadRow) -> Self {
        Self { stops: *on_bad_row == OnBadRow::Stop, out: None, left_out: LeftOut::default() }
    }

    /// The result of `take` for the next readable record.
    pub(crate) fn next<T>(
        &mut self,
        records: &mut Records,
        mut take: impl FnMut(&Record<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, ReadError> {
        loop {
            let taken = match records.read() {
                Ok(None) => return Ok(None),
                Ok(Some(record)) => take(&record).map_err(|problem| records.wrong(problem)),
                Err(error) => Err(error),
            };
            match taken {
                Ok(taken) => return Ok(Some(taken)),
                Err(error) => self.leave_out(error, records)?,
            }
        }
    }

    /// Leaves out the last record, or returns the error that ends the run.
    fn leave_out(&mut self, error: ReadError, records: &Records) -> Result<(), ReadError> {
        if self.stops || !records.is_passable() {
            return Err(error);
        }
        if let Some((path, out)) = &mut self.out {
            let reason = match &error {
                ReadError::Malformed { problem, .. } => problem.clone(),
                other => other.to_string(),
            };
            let row = serde_json::json!({
                "file": records.path().display().to_string(),
                "line": records.line(),
                "reason": reason,
                "row": records.raw(),
            });
            writeln!(out, "{row}").map_err(failed(path))?;
        }
        self.left_out.count += 1;
        self.left_out.first.get_or_insert_with(|| error.to_string());
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<LeftOut, ReadError> {
        if let Some((path, out)) = self.out {
            out.finish().map_err(failed(&path))?;
        }
        Ok(self.left_out)
    }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> ReadError {
    let path = path.to_owned();
    move |source| ReadError::Io { path: path.clone(), source }
}
