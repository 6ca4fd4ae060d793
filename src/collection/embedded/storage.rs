//! What collections ask of a file system, so that tests can fail each step of it or take the power away
//! between any two.

use std::fmt::Debug;
use std::fs;
use std::fs::DirBuilder;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::model::target::directory_of;

/// A file system.
pub(super) trait Storage: Debug + Send + Sync {
    /// Makes a folder that is its owner's alone, and those above it, where they are not there, and makes
    /// them last.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// The lock of one process on a file, as long as it is not dropped; nothing where another has it.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;

    /// The names of what is in a folder.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Whether there is such a file.
    fn has_file(&self, path: &Path) -> bool;

    /// Makes an empty file, of one that is there too, to be read and written.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Stored>>;

    /// Opens a file to be read and written.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn Stored>>;

    /// Gives a file or a folder another name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder with all that is in it.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes names that came to a folder, or left it, last.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is open.
pub(super) trait Stored: Debug + Send + Sync {
    /// How long it is.
    fn length(&self) -> io::Result<u64>;

    /// Reads from a byte on; how many bytes, which are none at the end alone.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of these bytes from a byte on.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes it as long as this.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Makes its bytes last.
    fn sync(&self) -> io::Result<()>;
}

/// The lock of one process.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, and asked nothing")] Option<File>);

impl Lock {
    /// The lock of a file system that has one process.
    #[cfg(test)]
    pub(super) fn of_nobody() -> Self {
        Self(None)
    }
}

/// The machine's own file system.
#[derive(Debug)]
pub(super) struct LocalStorage;

impl Storage for LocalStorage {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let missing =
            path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let missing: Vec<&Path> = missing.collect();
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // Without that the power may take the folders, and all that was synced within them.
        missing.into_iter().try_for_each(|made| self.sync_folder(directory_of(made)))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(folder)?.map(name).collect()
    }

    fn has_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(options.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(path)?))
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

impl Stored for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, out, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file read from a byte on, in pieces.
pub(super) struct ReadFrom<'f> {
    pub(super) file: &'f dyn Stored,
    pub(super) offset: u64,
}

impl io::Read for ReadFrom<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
