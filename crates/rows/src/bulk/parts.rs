//! A folder of parts, one for each input file. A part is written whole or not at all, and a
//! finished part is not made again.
//!
//! Next to each finished part there is a mark (`.NAME.done`) with the question and the digest of
//! the input file. A run skips a file if mark and part exist and question and digest match. So an
//! interrupted run resumes where it stopped, and one with another question starts again.

use std::fs;
use std::path::{Path, PathBuf};

use cognate::model::disk;
use cognate_files::input::Input;
use serde::{Deserialize, Serialize};

use crate::bad_rows::BadRows;
use crate::bulk::question::Question;
use crate::bulk::{BulkError, Options, Report, into_one, unwritten};
use crate::{OnBadRow, STANDARD};

/// The contents of a mark: what a finished part was made of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    question: serde_json::Value,
    input: String,
    bytes: u64,
}

pub(super) fn is_folder(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Answers the rows of each input file into a file of the same name in `folder`.
pub(super) fn run(
    question: &Question<'_>,
    options: &Options,
    inputs: &[PathBuf],
    folder: &Path,
    (report, bad): (&mut Report, &mut BadRows),
) -> Result<(), BulkError> {
    fs::create_dir_all(folder).map_err(unwritten(folder))?;
    let parts = parts_of(inputs, folder)?;
    let asked = asked(question, options);
    for (input, part) in inputs.iter().zip(&parts) {
        let mark = mark_of(part);
        let digest = Input::open(input)?.digest()?;
        if is_done(&mark, part, &asked, &digest) {
            report.skipped += 1;
            continue;
        }
        // A mark must not survive its part.
        match fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(unwritten(&mark)(error));
            }
            _ => {}
        }
        let input = std::slice::from_ref(input);
        let bytes = into_one(question, options, input, Some(part), (report, bad))?;
        let done = Mark { question: asked.clone(), input: digest, bytes };
        let done = serde_json::json!(done).to_string();
        disk::replace_by(&mark, done.as_bytes()).map_err(unwritten(&mark))?;
    }
    Ok(())
}

fn parts_of(inputs: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, BulkError> {
    let mut parts: Vec<PathBuf> = Vec::new();
    for input in inputs {
        let name = input.file_name().filter(|_| input.as_os_str() != STANDARD);
        let Some(name) = name else {
            let problem = format!("-o {}: standard input has no name for a part", folder.display());
            return Err(BulkError::Options(problem));
        };
        let part = folder.join(name);
        let same = |one: &Path| fs::canonicalize(one).ok();
        if parts.contains(&part) || (part.exists() && same(&part) == same(input)) {
            let problem = format!("{}: two files would be one", part.display());
            return Err(BulkError::Options(problem));
        }
        parts.push(part);
    }
    Ok(parts)
}

fn mark_of(part: &Path) -> PathBuf {
    let name = part.file_name().unwrap_or_default().to_string_lossy();
    part.with_file_name(format!(".{name}.done"))
}

/// Returns, as JSON, everything that an answer depends on except the input file.
fn asked(question: &Question<'_>, options: &Options) -> serde_json::Value {
    let limits = question.engine.limits();
    serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "model": question.engine.model().fingerprint(),
        "task": question.task,
        "method": question.query.method.name(),
        "measure": question.query.measure.map(|measure| measure.name()),
        "truncate": question.query.truncate,
        "limits": [limits.bytes, limits.chars, limits.tokens],
        "format": options.records.format.map(|format| format!("{format:?}")),
        "headless": options.records.headless,
        "on_error": options.on_error,
        "prefix": options.prefix,
        "skips_bad_rows": options.bad_rows != OnBadRow::Stop,
        "columns": options.columns,
    })
}

fn is_done(mark: &Path, part: &Path, asked: &serde_json::Value, digest: &str) -> bool {
    let known = fs::read(mark).ok().and_then(|known| serde_json::from_slice::<Mark>(&known).ok());
    let Some(known) = known else { return false };
    let whole = fs::metadata(part).is_ok_and(|found| found.len() == known.bytes);
    whole && known.question == *asked && known.input == digest
}
