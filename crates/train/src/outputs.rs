//! What a run writes, so that it never takes the place of what the run reads, and is whole or not there.

use std::path::{Path, PathBuf};

use cognate::model::disk;
use cognate::model::target::clash;

use crate::TrainError;

/// The files that a run writes. With `--restart` the checkpoint is even removed.
pub struct Outputs<'f> {
    pub output: &'f Path,
    pub checkpoint: Option<&'f Path>,
    /// What is written on request, with the flags that ask for it.
    pub beside: &'f [(&'static str, &'f Option<PathBuf>)],
}

impl Outputs<'_> {
    /// Refuses to write what is read. The output may be the model that the run begins with.
    pub fn check<'p>(
        &self,
        read: impl IntoIterator<Item = &'p PathBuf>,
        model: Option<&'p PathBuf>,
    ) -> Result<(), TrainError> {
        let mut beside: Vec<(&str, &Path)> =
            self.checkpoint.map(|path| ("--checkpoint", path)).into_iter().collect();
        for (flag, path) in self.beside {
            beside.extend(path.as_deref().map(|path| (*flag, path)));
        }
        let taken = clash(&beside, model.map(PathBuf::as_path));
        let all: Vec<(&str, &Path)> = [("-o", self.output)].into_iter().chain(beside).collect();
        match clash(&all, read.into_iter().map(PathBuf::as_path)).or(taken) {
            Some(problem) => Err(TrainError::Options(problem)),
            None => Ok(()),
        }
    }
}

/// Writes a file beside the model: a page, or weights.
pub fn write(path: &Path, text: &str) -> Result<(), TrainError> {
    disk::replace_by(path, text.as_bytes())
        .map_err(|source| TrainError::Write { path: path.to_owned(), source })
}
