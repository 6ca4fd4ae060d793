//! The file system operations that collections use, so that tests can fail each of them or cut the
//! power between any two.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use cognate::model::writer::directory_of;
use rustix::fs::{OFlags, Timespec, Timestamps, UTIME_NOW, futimens};

/// A file system. Every file that is opened for writing is locked for this process while it is
/// open; if another process has the lock, the error is `WouldBlock`.
pub(super) trait Storage: Debug + Send + Sync {
    /// Makes a folder that only its owner may read, and missing folders above it, durably.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    fn is_folder(&self, path: &Path) -> io::Result<bool>;

    /// Makes an empty file or empties an existing file, for reading and writing.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Stored>>;

    fn open(&self, path: &Path) -> io::Result<Arc<dyn Stored>>;

    fn read(&self, path: &Path) -> io::Result<Arc<dyn Stored>>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes the names added to a folder, or removed from it, durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

pub(super) trait Stored: Debug + Send + Sync {
    fn length(&self) -> io::Result<u64>;

    /// Reads from an offset on; returns 0 only at the end.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    fn set_length(&self, length: u64) -> io::Result<()>;

    fn sync(&self) -> io::Result<()>;

    fn is_at(&self, path: &Path) -> io::Result<bool>;

    fn unlock(&self) -> io::Result<()>;

    /// Sets its modification time to now, which shows other processes that it is in use.
    fn touch(&self) -> io::Result<()>;
}

/// Whether an error means that a path does not exist, or that a part of it is not a folder.
pub(super) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

pub(super) fn modified(path: &Path) -> io::Result<i64> {
    let metadata = fs::metadata(path)?;
    Ok(metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000))
}

/// Opens a regular file. A pipe, which would block, and a device are refused at once.
pub(super) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let other = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    let opened = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => other(),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// A file that only this process has open. It is unlocked before it is closed: a process that
/// another thread starts has a copy of every open file until it runs its own program, and would
/// hold the lock that long.
#[derive(Debug)]
struct LockedFile(File);

impl Borrow<File> for LockedFile {
    fn borrow(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If this fails, the close of the last copy unlocks it.
        let _ = self.0.unlock();
    }
}

fn open_alone(options: &mut OpenOptions, path: &Path) -> io::Result<LockedFile> {
    let file = open_regular(options.read(true).write(true), path)?;
    match file.try_lock() {
        Ok(()) => Ok(LockedFile(file)),
        Err(TryLockError::WouldBlock) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open_or_make(path: &Path) -> io::Result<LockedFile> {
    open_alone(OpenOptions::new().create(true).truncate(false).mode(0o600), path)
}

/// Refuses a dangling link, in whose place the system would make no folder and only report that a
/// file exists.
fn check_link(path: &Path) -> io::Result<()> {
    match fs::read_link(path) {
        Ok(to) if !path.exists() => {
            let (path, to) = (path.display(), to.display());
            let problem = format!("{path} is a link to {to}, which is not there");
            Err(io::Error::new(io::ErrorKind::NotFound, problem))
        }
        _ => Ok(()),
    }
}

#[derive(Debug)]
pub(super) struct LocalStorage;

impl Storage for LocalStorage {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let missing =
            path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let missing: Vec<&Path> = missing.collect();
        missing.iter().try_for_each(|path| check_link(path))?;
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        missing.into_iter().try_for_each(|made| self.sync_folder(directory_of(made)))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(folder)?.map(name).collect()
    }

    fn is_folder(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Err(error) if is_nothing(&error) => Ok(false),
            found => found.map(|found| found.is_dir()),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        let file = open_or_make(path)?;
        file.0.set_len(0)?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        Ok(Arc::new(open_alone(&mut OpenOptions::new(), path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        Ok(Arc::new(open_regular(OpenOptions::new().read(true), path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl<F: Borrow<File> + Debug + Send + Sync> Stored for F {
    fn length(&self) -> io::Result<u64> {
        Ok(self.borrow().metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self.borrow(), out, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.borrow().write_all_at(bytes, offset)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.borrow().set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.borrow().sync_data()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.borrow().metadata()?;
        match fs::metadata(path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
            Err(error) if is_nothing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.borrow().unlock()
    }

    fn touch(&self) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        Ok(futimens(self.borrow(), &Timestamps { last_access: now, last_modification: now })?)
    }
}

const PIECE: usize = 1 << 20;

/// Copies at most this many bytes, unless cancelled.
pub(super) fn copy(
    mut from: ReadFrom<'_>,
    bytes: u64,
    to: &dyn Stored,
    mut go_on: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let (mut piece, mut done) = (Vec::with_capacity(PIECE), 0);
    while done < bytes {
        go_on()?;
        piece.clear();
        let most = (bytes - done).min(PIECE as u64);
        if from.by_ref().take(most).read_to_end(&mut piece)? == 0 {
            break;
        }
        to.write_at(&piece, done)?;
        done += piece.len() as u64;
    }
    Ok(())
}

pub(super) struct ReadFrom<'f> {
    pub(super) file: &'f dyn Stored,
    pub(super) offset: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_closed_is_not_locked_by_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = open_or_make(&path).unwrap();
        let copy = file.0.try_clone().unwrap();
        assert_eq!(
            open_alone(&mut OpenOptions::new(), &path).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(file);
        open_alone(&mut OpenOptions::new(), &path).expect("nobody has it locked");
        drop(copy);
    }
}
