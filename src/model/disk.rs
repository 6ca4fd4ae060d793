//! Replacing a file so that a crash at any moment leaves the old bytes or the new ones, whole.
//!
//! The steps are asked of a [`Disk`], so that tests can fail each of them, kill the process between
//! any two, or drop what was never synced. It knows nothing of what is written.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

/// How every temporary file of ours begins.
pub const TEMPORARY_PREFIX: &str = ".cognate-tmp-";

/// The operations that replacing a file needs.
pub trait Disk {
    /// An open temporary file.
    type File: DiskFile;

    /// Waits until no other process replaces files in `directory`; held until dropped.
    type Lock;

    /// See [`Disk::Lock`].
    fn lock(&self, directory: &Path) -> io::Result<Self::Lock>;

    /// Names of the entries of `directory`.
    fn entries(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Creates a file that must not exist, readable by its owner only.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Moves a file over another.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes renames in `directory` last.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// A temporary file being written.
pub trait DiskFile: Read + Write + Seek {
    /// Reserves the whole size, so that a full disk is noticed before the first byte.
    fn reserve(&mut self, bytes: u64) -> io::Result<()>;

    /// Gives the file the mode that its readers need.
    fn publish(&mut self, mode: u32) -> io::Result<()>;

    /// Makes the file's bytes last.
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
        match handle.lock() {
            Ok(()) => Ok(Some(handle)),
            // Some network file systems have no locks; the rename alone still keeps files whole.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn entries(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
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

impl DiskFile for File {
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&*self, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => self.set_len(bytes),
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

/// Where the bytes meant for `target` must go: through a symbolic link to what it names, and never
/// over anything but a regular file.
pub fn resolve(target: &Path) -> io::Result<(PathBuf, u32)> {
    match fs::metadata(target) {
        Ok(found) if found.is_file() => {
            Ok((fs::canonicalize(target)?, found.permissions().mode() & 0o777))
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((target.to_owned(), 0o644)),
        Err(error) => Err(error),
    }
}

/// The directory of a file, `.` for a bare name.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A name for a temporary file in `directory` that no other process of this machine uses.
pub fn temporary_name(directory: &Path, purpose: &str) -> PathBuf {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    directory.join(format!("{TEMPORARY_PREFIX}{purpose}-{}-{serial}", std::process::id()))
}

/// Replaces `target` by what `write` puts into a temporary file of `bytes` bytes beside it.
///
/// Order matters and is what the tests hold: reserve, write, sync the file, rename, sync the
/// directory. On any error the temporary file is removed and `target` is as it was.
pub fn replace<D: Disk, T, E: From<io::Error>>(
    disk: &D,
    target: &Path,
    mode: u32,
    bytes: u64,
    write: impl FnOnce(&mut D::File) -> Result<T, E>,
) -> Result<T, E> {
    let directory = directory_of(target);
    let _lock = disk.lock(directory)?;
    // Under the lock nobody else writes here, so a temporary file is one that a crash left behind.
    for entry in disk.entries(directory)? {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| name.starts_with(TEMPORARY_PREFIX)) {
            // One that cannot be removed does no harm beyond its space.
            let _ = disk.remove(&entry);
        }
    }
    let temporary = temporary_name(directory, "model");
    let mut file = disk.create(&temporary)?;
    let outcome = fill(&mut file, mode, bytes, write).and_then(|value| {
        disk.rename(&temporary, target)?;
        Ok(value)
    });
    drop(file);
    match outcome {
        Ok(value) => {
            disk.sync_directory(directory)?;
            Ok(value)
        }
        Err(error) => {
            // The first error is the one to report; a leftover is removed by the next writer.
            let _ = disk.remove(&temporary);
            Err(error)
        }
    }
}

/// Replaces a file of this machine by `bytes`, whole or not at all.
pub fn replace_by(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (target, mode) = resolve(path)?;
    replace(&LocalDisk, &target, mode, bytes.len() as u64, |file| file.write_all(bytes))
}

fn fill<F: DiskFile, T, E: From<io::Error>>(
    file: &mut F,
    mode: u32,
    bytes: u64,
    write: impl FnOnce(&mut F) -> Result<T, E>,
) -> Result<T, E> {
    file.reserve(bytes)?;
    let value = write(file)?;
    file.publish(mode)?;
    file.sync()?;
    Ok(value)
}
