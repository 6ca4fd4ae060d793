//! The folder that is exported, and its files. Knows nothing of what is in them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use cognate::model::disk::TEMPORARY_PREFIX;
use cognate::model::whole_folder::WholeFolder;
use cognate::model::writer::directory_of;

use crate::export::ExportError;

/// A folder being written. Dropped before [`Folder::finish`], it leaves nothing behind.
pub(super) struct Folder {
    target: PathBuf,
    whole: WholeFolder,
    bytes: u64,
}

impl Folder {
    /// A folder to become `target`, which must not exist or be empty.
    pub(super) fn begin(target: &Path) -> Result<Self, ExportError> {
        let refuse = |what: &str| {
            Err(ExportError::Options(format!("-o {}: expected {what}", target.display())))
        };
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return refuse("a folder that is new or empty");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return refuse("a folder, found a file");
            }
            Err(error) => return Err(ExportError::io(target)(error)),
        }
        if target.file_name().is_none() {
            return refuse("a folder with a name");
        }
        let whole = WholeFolder::begin(target, TEMPORARY_PREFIX, 0o777);
        let whole = whole.map_err(ExportError::io(target))?;
        Ok(Self { target: target.to_owned(), whole, bytes: 0 })
    }

    /// Writes one file, given by its path within the folder.
    pub(super) fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ExportError> {
        let path = self.whole.path().join(name);
        let write = || {
            fs::create_dir_all(directory_of(&path))?;
            let mut out = BufWriter::new(File::create_new(&path)?);
            fill(&mut out)?;
            let file = out.into_inner()?;
            file.sync_all()?;
            file.metadata().map(|metadata| metadata.len())
        };
        let shown = self.target.join(name);
        self.bytes = self.bytes.saturating_add(write().map_err(ExportError::io(&shown))?);
        Ok(())
    }

    /// Writes one JSON file.
    pub(super) fn write_json(
        &mut self,
        name: &str,
        value: &serde_json::Value,
    ) -> Result<(), ExportError> {
        self.write(name, |out| writeln!(out, "{value:#}"))
    }

    /// Size of the files written.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves the folder to its place.
    pub(super) fn finish(self) -> Result<PathBuf, ExportError> {
        self.whole.finish().map_err(ExportError::io(&self.target))?;
        Ok(self.target)
    }
}
