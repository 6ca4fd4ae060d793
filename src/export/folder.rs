//! A folder that is there whole or not at all: its files are written beside its place and moved there
//! together. Knows nothing of what is in them.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use crate::export::ExportError;
use crate::model::disk::TEMPORARY_PREFIX;
use crate::model::target::directory_of;

/// A folder being written. Dropped before [`Folder::finish`], it leaves nothing behind.
pub(super) struct Folder {
    target: PathBuf,
    partial: PathBuf,
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
        let Some(name) = target.file_name() else {
            return refuse("a folder with a name");
        };
        let unfinished =
            format!("{TEMPORARY_PREFIX}{}-{}", name.to_string_lossy(), std::process::id());
        let partial = directory_of(target).join(unfinished);
        fs::create_dir(&partial).map_err(ExportError::io(&partial))?;
        Ok(Self { target: target.to_owned(), partial, bytes: 0 })
    }

    /// Writes one file, given by its path within the folder.
    pub(super) fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ExportError> {
        let path = self.partial.join(name);
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
        let sync = |path: &Path| File::open(path)?.sync_all();
        let failed = ExportError::io(&self.target);
        sync(&self.partial).map_err(&failed)?;
        fs::rename(&self.partial, &self.target).map_err(&failed)?;
        sync(directory_of(&self.target)).map_err(&failed)?;
        Ok(self.target.clone())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Gone already where it was finished; what cannot be removed does no harm beyond its space.
        let _ = fs::remove_dir_all(&self.partial);
    }
}
