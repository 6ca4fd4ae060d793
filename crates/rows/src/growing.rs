//! A file that is written sequentially under a temporary name beside its target, and replaces the
//! target when it is complete.
//!
//! Unlike `disk::replace` it does not hold the folder's lock, because a run may take hours.

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use cognate::model::disk::{Disk, DiskFile, LocalDisk};
use cognate::model::writer::{Target, directory_of};
use cognate_files::written::Written;

/// An incomplete file. If dropped before it is finished, it is removed.
pub struct Growing {
    target: Target,
    temporary: PathBuf,
    sink: Option<Written>,
}

impl Growing {
    /// Begins a file that will replace `path`, packed as its name says.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = Target::follow(path)?;
        let folder = directory_of(&target.path);
        LocalDisk.sweep(folder)?;
        // The file to replace may be private, so the new one is private until it gets the same
        // mode.
        let mode = if target.mode.is_some() { 0o600 } else { 0o666 };
        let (temporary, file) = LocalDisk.create(folder, mode)?;
        let sink = Written::new(file, path);
        Ok(Self { target, temporary, sink: Some(sink) })
    }

    /// Syncs the file, moves it to its target and returns its size.
    pub fn finish(mut self) -> io::Result<u64> {
        let Some(sink) = self.sink.take() else { return Ok(0) };
        let outcome = sink.into_file().and_then(|mut file| {
            if let Some(mode) = self.target.mode {
                file.publish(mode)?;
            }
            file.sync()?;
            LocalDisk.rename(&self.temporary, &self.target.path)?;
            file.metadata()
        });
        match outcome {
            Ok(written) => {
                LocalDisk.sync_directory(directory_of(&self.target.path))?;
                Ok(written.len())
            }
            Err(error) => {
                self.remove();
                Err(error)
            }
        }
    }

    /// If this fails, the next writer removes the file.
    fn remove(&self) {
        let _ = LocalDisk.remove(&self.temporary);
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.as_mut().map_or(Ok(bytes.len()), |sink| sink.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.as_mut().map_or(Ok(()), Written::flush)
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if self.sink.take().is_some() {
            self.remove();
        }
    }
}

pub enum Destination {
    File(Growing),
    Standard(io::Stdout),
}

impl Destination {
    /// The file that will replace `path`, or standard output if there is no path.
    pub fn create(path: Option<&Path>) -> io::Result<Self> {
        match path {
            Some(path) => Ok(Self::File(Growing::create(path)?)),
            None => Ok(Self::Standard(io::stdout())),
        }
    }

    /// Writes bytes; returns whether the output is still read. A reader that has closed is no
    /// error.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let written = match self {
            Self::File(file) => return file.write_all(bytes).map(|()| true),
            Self::Standard(out) => out.write_all(bytes).and_then(|()| out.flush()),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            other => other.map(|()| true),
        }
    }

    pub fn finish(self) -> io::Result<u64> {
        match self {
            Self::File(file) => file.finish(),
            Self::Standard(_) => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stands_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.tsv");
        std::fs::write(&path, "old").unwrap();
        let mut dropped = Growing::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        let mut growing = Growing::create(&path).unwrap();
        growing.write_all(b"new rows").unwrap();
        growing.flush().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(growing.finish().unwrap(), 8);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new rows");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
