//! Labelled texts in files: which files are meant. What their rows mean is in the file of each kind.

pub(super) mod pairs;
pub(super) mod ranking;
pub(super) mod sts;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use cognate::engine::{Place as TextPlace, QueryError, TextLimits};

use crate::EvalError;

/// What the names of files in a folder end in. A file named outright may be called anything.
const ENDINGS: [&str; 3] = [".tsv", ".tsv.gz", ".tsv.zst"];

/// A file to be read, and the name that its figures stand under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Its name without folder and ending; with the folder where two would be called the same.
    pub(super) name: String,
}

/// Every file that is meant: those named, and those in the folders named, by path. Judgements
/// (`*.qrels.tsv`) in a folder are no data set.
pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, EvalError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            walk(path, &mut files)?;
            if files.len() == before {
                let endings = ENDINGS.join(", ");
                let problem = format!("the folder holds no file ending in {endings}");
                return Err(EvalError::Data { file: path.display().to_string(), problem });
            }
        } else {
            files.push(path.clone());
        }
    }
    let mut unique = std::collections::BTreeSet::new();
    files.retain(|file| unique.insert(file.clone()));
    let stems: Vec<String> = files.iter().map(|file| stem(file)).collect();
    let name = |stem: &String, file: &PathBuf| {
        let shared = stems.iter().filter(|other| *other == stem).count() > 1;
        if shared { file.display().to_string() } else { stem.clone() }
    };
    let named = stems.iter().zip(&files).map(|(stem, file)| name(stem, file)).collect::<Vec<_>>();
    Ok(files.into_iter().zip(named).map(|(path, name)| Source { path, name }).collect())
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), EvalError> {
    let failed = |source| EvalError::Folder { path: folder.to_owned(), source };
    let mut entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link to a folder is not followed: it may lead back here.
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&path, files)?;
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.contains(".qrels.") {
            files.push(path);
        }
    }
    Ok(())
}

/// The name of a file without what says how it is stored.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut stem = name.as_str();
    for ending in [".gz", ".zst", ".tsv", ".txt"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    if stem.is_empty() { name } else { stem.to_owned() }
}

/// A text as it may be asked of the engine. A text of white space passes: it is unscored later.
fn text<'r>(field: &'r str, name: &str) -> Result<&'r str, String> {
    match TextLimits::DEFAULT.check_text(field, TextPlace::Query) {
        Err(QueryError::TextTooLong { unit, limit, actual, .. }) => {
            Err(format!("{name} has {actual} {unit}; the limit is {limit}"))
        }
        _ => Ok(field),
    }
}

/// Whether a text is white space, which the engine refuses and evaluation counts as unscored.
pub(super) fn is_blank(text: &str) -> bool {
    TextLimits::DEFAULT.check_text(text, TextPlace::Query).is_err()
}
