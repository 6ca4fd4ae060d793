//! Replaces a file so that a crash at any moment leaves either all old bytes or all new bytes.
//!
//! The steps go through a [`Disk`], so that tests can let each step fail, kill the process between two
//! steps, or drop unsynced bytes. This module does not know what the bytes mean.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::model::target::{Target, directory_of};

/// Prefix of our temporary files.
pub const TEMPORARY_PREFIX: &str = ".cognate-tmp-";

/// The operations that replacing a file needs.
pub trait Disk {
    /// An open temporary file.
    type File: DiskFile;

    /// The turn of a process to replace files in a directory, until dropped.
    type Lock;

    /// Waits until no other process replaces files in `directory`.
    fn lock(&self, directory: &Path) -> io::Result<Self::Lock>;

    /// Removes the temporary files in `directory` that no process holds.
    fn sweep(&self, directory: &Path) -> io::Result<()>;

    /// Creates a temporary file that the process holds until it is dropped; `mode` is cut down by
    /// what the process lets others do (umask).
    fn create(&self, directory: &Path, mode: u32) -> io::Result<(PathBuf, Self::File)>;

    /// Moves a file over another.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes renames in `directory` last.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// A temporary file being written.
pub trait DiskFile {
    /// Reserves the whole size, so that a full disk is noticed before the first byte.
    fn reserve(&mut self, bytes: u64) -> io::Result<()>;

    /// Gives the new file the mode `mode`, of the file that it replaces.
    fn publish(&mut self, mode: u32) -> io::Result<()>;

    /// Makes the file's bytes durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// The machine's own file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

impl Disk for LocalDisk {
    type File = File;
    type Lock = Option<File>;

    fn lock(&self, directory: &Path) -> io::Result<Self::Lock> {
        let handle = File::open(directory)?;
        match wait(&handle, directory) {
            Ok(()) => Ok(Some(handle)),
            // Some network file systems have no locks; the rename alone still keeps files whole.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a killed run leaves behind is told from what a run is writing by a lock on the file
    /// itself, which the kernel gives up with the process. The directory's lock would not do: on
    /// network file systems it holds on one machine only, while those of files hold on all. Where
    /// files cannot be locked, leftovers stay: their space is worth less than a model. Where even
    /// locks of files hold on one machine only, a run may find its file gone and fail, but as names
    /// are drawn at random it never takes another's for its own.
    fn sweep(&self, directory: &Path) -> io::Result<()> {
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        // To write, because a network file system locks no file that is opened to be read.
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(flags);
        sweep(directory, TEMPORARY_PREFIX, |path| options.open(path), |path| fs::remove_file(path))
    }

    fn create(&self, directory: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
        loop {
            let path = drawn_name(directory, TEMPORARY_PREFIX)?;
            let mut options = fs::OpenOptions::new();
            let file = options.read(true).write(true).create_new(true).mode(mode).open(&path)?;
            // Before the file was locked, another run may have removed it as a leftover.
            let locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if locked && fs::symlink_metadata(&path).is_ok() {
                return Ok((path, file));
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }
}

/// Removes files whose names begin so and that no process holds locked.
pub(super) fn sweep(
    directory: &Path,
    prefix: &str,
    open: impl Fn(&Path) -> io::Result<File>,
    remove: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes())
            && open(&entry.path()).is_ok_and(|leftover| leftover.try_lock().is_ok())
        {
            // What cannot be removed only takes space.
            let _ = remove(&entry.path());
        }
    }
    Ok(())
}

/// Waits up to this long for another process are not reported.
const UNSAID: Duration = Duration::from_secs(1);

/// Locks a directory, and reports it if that takes a while.
fn wait(directory: &File, path: &Path) -> io::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < UNSAID {
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
    let path = path.display();
    // A full stderr cannot take it, which is no reason not to wait.
    let _ = writeln!(io::stderr(), "cognate: waiting for another process that writes in {path}");
    directory.lock()
}

impl DiskFile for File {
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&*self, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.set_len(bytes),
            other => other.map_err(io::Error::from),
        }
    }

    fn publish(&mut self, mode: u32) -> io::Result<()> {
        self.set_permissions(fs::Permissions::from_mode(mode))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A name in `directory` that begins so and that nobody else comes upon, on this machine or another.
pub fn drawn_name(directory: &Path, prefix: &str) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(directory.join(format!("{prefix}{:016x}", u64::from_ne_bytes(random))))
}

/// A file without a name, gone however the process ends, on the file system of `directory`. Where the system
/// cannot make one, it has a name for a moment.
pub fn nameless(directory: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    match born_nameless(directory) {
        Err(error) if is_without_nameless_files(&error) => {}
        other => return other,
    }
    named_then_nameless(directory)
}

#[cfg(target_os = "linux")]
fn born_nameless(directory: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(OFlags::TMPFILE.bits().cast_signed()).open(directory)
}

/// Whether an error says that this file system, or the kernel, has no nameless files.
#[cfg(target_os = "linux")]
fn is_without_nameless_files(error: &io::Error) -> bool {
    let known = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::INVAL, Errno::NOENT];
    Errno::from_io_error(error).is_some_and(|error| known.contains(&error))
}

/// A file that loses its name at once. A sweep may have removed the name before.
fn named_then_nameless(directory: &Path) -> io::Result<File> {
    let (path, file) = LocalDisk.create(directory, 0o600)?;
    match LocalDisk.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(file),
    }
}

/// Replaces `target` by what `write` puts into a temporary file of `bytes` bytes beside it.
///
/// Order matters and is what the tests hold: reserve, write, sync the file, rename, sync the
/// directory. On any error the temporary file is removed and `target` is as it was.
pub fn replace<D: Disk, T, E: From<io::Error>>(
    disk: &D,
    target: &Target,
    bytes: u64,
    write: impl FnOnce(&mut D::File) -> Result<T, E>,
) -> Result<T, E> {
    let lock = disk.lock(directory_of(&target.path))?;
    replace_locked(disk, &lock, target, bytes, write)
}

/// [`replace`] for a caller that holds the lock on the directory.
pub fn replace_locked<D: Disk, T, E: From<io::Error>>(
    disk: &D,
    _lock: &D::Lock,
    target: &Target,
    bytes: u64,
    write: impl FnOnce(&mut D::File) -> Result<T, E>,
) -> Result<T, E> {
    let directory = directory_of(&target.path);
    disk.sweep(directory)?;
    // The replaced file may be private, so the new file is private until it gets the same mode.
    let first_mode = if target.mode.is_some() { 0o600 } else { 0o666 };
    let (temporary, mut file) = disk.create(directory, first_mode)?;
    let outcome = fill(&mut file, target.mode, bytes, write).and_then(|value| {
        disk.rename(&temporary, &target.path)?;
        Ok(value)
    });
    drop(file);
    match outcome {
        Ok(value) => {
            disk.sync_directory(directory)?;
            Ok(value)
        }
        Err(error) => {
            // Only the first error is reported; a leftover is removed by the next writer.
            let _ = disk.remove(&temporary);
            Err(error)
        }
    }
}

/// Replaces a file of this machine by `bytes`, whole or not at all.
pub fn replace_by(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = Target::follow(path)?;
    replace(&LocalDisk, &target, bytes.len() as u64, |file| file.write_all(bytes))
}

fn fill<F: DiskFile, T, E: From<io::Error>>(
    file: &mut F,
    mode: Option<u32>,
    bytes: u64,
    write: impl FnOnce(&mut F) -> Result<T, E>,
) -> Result<T, E> {
    file.reserve(bytes)?;
    let value = write(file)?;
    if let Some(mode) = mode {
        file.publish(mode)?;
    }
    file.sync()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    #[test]
    fn a_nameless_file_is_read_again_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = nameless(folder.path()).unwrap();
        file.write_all(b"answer").unwrap();
        file.rewind().unwrap();
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        assert_eq!(read, "answer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(nameless(&folder.path().join("none")).is_err());
    }

    #[test]
    fn without_nameless_files_a_name_is_taken_away_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("kept");
        std::thread::scope(|scope| {
            // Every replacement clears away the temporary files that it meets.
            scope.spawn(|| {
                for _ in 0..200 {
                    replace_by(&target, b"new").unwrap();
                }
            });
            for round in 0..400_u32 {
                let mut file = named_then_nameless(folder.path()).unwrap();
                file.write_all(&round.to_le_bytes()).unwrap();
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
