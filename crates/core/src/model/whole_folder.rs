//! A folder that is there whole or not at all: what is in it is written beside its place, under a
//! temporary name, and gets its name when all of it lasts.
//!
//! What a killed run leaves is removed by the next one that makes a folder there. It is told from what a
//! run is writing by a lock on the folder itself, which the kernel gives up with the process; where folders
//! cannot be locked, as on some network file systems, leftovers stay. It knows nothing of what is written.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Mode, OFlags};

use crate::model::disk::{drawn_name, sweep};
use crate::model::target::directory_of;

/// A folder being made. Dropped before it is [finished](Self::finish), it leaves nothing.
#[derive(Debug)]
pub struct WholeFolder {
    target: PathBuf,
    partial: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl WholeFolder {
    /// Begins a folder that becomes `target`, where only an empty folder may be. Until then its name
    /// begins with `prefix`; leftovers with such a name are removed. The process's umask restricts `mode`.
    pub fn begin(target: &Path, prefix: &str, mode: u32) -> io::Result<Self> {
        let beside = directory_of(target);
        sweep(beside, prefix, open, |path| fs::remove_dir_all(path))?;
        loop {
            let partial = drawn_name(beside, prefix)?;
            DirBuilder::new().mode(mode).create(&partial)?;
            let lock = open(&partial)?;
            // Before it was locked, another run may have taken it for a leftover.
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && fs::symlink_metadata(&partial).is_ok() {
                return Ok(Self { target: target.to_owned(), partial, _lock: lock });
            }
        }
    }

    /// The folder that files are written to.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Syncs all names in the folder and renames it. Its files were synced by their writers.
    pub fn finish(self) -> io::Result<()> {
        sync_folders(&self.partial)?;
        fs::rename(&self.partial, &self.target)?;
        File::open(directory_of(&self.target))?.sync_all()
    }
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        // If this fails, the next run removes the folder.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// Opens a folder; a link to one, or another kind of file, is refused.
fn open(folder: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(folder, flags, Mode::empty())?))
}

/// Syncs the names in a folder and in the folders within it, so that they outlive a loss of power.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = ".cognate-test-";

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn leftovers_go_and_what_is_being_made_stays() {
        let folder = tempfile::tempdir().unwrap();
        let leftover = folder.path().join(".cognate-test-of-a-killed-run");
        fs::create_dir_all(leftover.join("within")).unwrap();
        fs::write(leftover.join("within/file"), "half").unwrap();
        fs::write(folder.path().join(".cognate-test-file"), "no folder").unwrap();
        let first = WholeFolder::begin(&folder.path().join("one"), PREFIX, 0o777).unwrap();
        assert!(!leftover.exists());
        fs::create_dir(first.path().join("within")).unwrap();
        fs::write(first.path().join("within/file"), "whole").unwrap();
        // While it is being made another one is begun, and given up.
        drop(WholeFolder::begin(&folder.path().join("two"), PREFIX, 0o777).unwrap());
        first.finish().unwrap();
        assert_eq!(names(folder.path()), [".cognate-test-file", "one"]);
        assert_eq!(fs::read(folder.path().join("one/within/file")).unwrap(), b"whole");
    }

    #[test]
    fn one_that_has_no_place_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("taken");
        let made = WholeFolder::begin(&target, PREFIX, 0o777).unwrap();
        fs::create_dir_all(target.join("full")).unwrap();
        made.finish().unwrap_err();
        assert_eq!(names(folder.path()), ["taken"]);
    }
}
