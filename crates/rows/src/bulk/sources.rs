//! Which files are meant, and whether they hold rows of text or columns.

use std::path::{Path, PathBuf};

use cognate_files::records::Format;

use crate::bulk::BulkError;
#[cfg(feature = "columns")]
use crate::bulk::columns::Layout;

/// The path that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";
/// How the names of files end that hold columns.
const COLUMNS: [&str; 4] = ["parquet", "arrow", "feather", "ipc"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    Rows,
    /// Columns, as they are read and as they are written.
    #[cfg(feature = "columns")]
    Columns(Layout, Layout),
}

fn holds_columns(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| COLUMNS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// What the files hold that go into one, which holds the same.
pub(super) fn contents_of(
    inputs: &[PathBuf],
    output: Option<&Path>,
) -> Result<Contents, BulkError> {
    let wrong = |path: &Path, problem: &str| {
        Err(BulkError::Options(format!("{}: {problem}", path.display())))
    };
    let first = inputs.first().is_some_and(|input| holds_columns(input));
    if let Some(other) = inputs.iter().find(|input| holds_columns(input) != first) {
        return wrong(other, "rows of text and columns do not go into one file");
    }
    if !first {
        return match output {
            Some(output) if holds_columns(output) => {
                wrong(output, "rows of text are written as they are read: as NDJSON, TSV or CSV")
            }
            _ => Ok(Contents::Rows),
        };
    }
    columns_of(inputs, output)
}

#[cfg(feature = "columns")]
fn columns_of(inputs: &[PathBuf], output: Option<&Path>) -> Result<Contents, BulkError> {
    let Some(output) = output else {
        let problem = "columns are not written to standard output: name a file with -o";
        return Err(BulkError::Options(problem.to_owned()));
    };
    let Some(written) = Layout::of_path(output) else {
        let problem =
            format!("-o {}: expected a name that ends in .parquet or .arrow", output.display());
        return Err(BulkError::Options(problem));
    };
    let mut layouts = inputs.iter().filter_map(|input| Layout::of_path(input));
    let first = layouts.next().unwrap_or(written);
    if layouts.any(|layout| layout != first) {
        let problem =
            "Parquet and Arrow files do not go into one file; a folder as -o takes one for each";
        return Err(BulkError::Options(problem.to_owned()));
    }
    Ok(Contents::Columns(first, written))
}

#[cfg(not(feature = "columns"))]
fn columns_of(_: &[PathBuf], _: Option<&Path>) -> Result<Contents, BulkError> {
    let problem =
        "this program reads no Parquet and no Arrow: it was built without the feature `columns`";
    Err(BulkError::Options(problem.to_owned()))
}

/// The files that are meant, those of a folder by name.
pub(super) fn files_of(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, BulkError> {
    let mut files = Vec::new();
    for input in inputs {
        if input.as_os_str() == STANDARD_INPUT || !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let failed = |source| BulkError::Folder { path: input.clone(), source };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(input).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let path = entry.path();
            let known = Format::of_path(&path).is_some() || holds_columns(&path);
            if !hidden && known && path.is_file() {
                found.push(path);
            }
        }
        if found.is_empty() {
            let expected =
                "none of its files ends in .ndjson, .jsonl, .tsv, .csv, .parquet or .arrow";
            return Err(BulkError::Options(format!("{}: {expected}", input.display())));
        }
        found.sort();
        files.extend(found);
    }
    let standard = files.iter().filter(|path| path.as_os_str() == STANDARD_INPUT).count();
    if standard > 1 {
        return Err(BulkError::Options("standard input can be read once".to_owned()));
    }
    Ok(files)
}
