//! Files without a name: nobody else can open them, and they are gone with the process, however it
//! ends.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::{fmt, io};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// A folder for temporary files.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// This folder, which need not exist.
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// A new file that is empty and has no name.
    pub(super) fn file(&self) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(CWD, &self.0, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(file.into()),
            // Not every file system has files that never had a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => self.unlinked(),
            Err(error) => Err(error.into()),
        }
    }

    /// A new file whose name is taken away at once.
    fn unlinked(&self) -> io::Result<File> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        let path = self.0.join(format!("cognate-{:032x}", u128::from_le_bytes(number)));
        let mut options = OpenOptions::new();
        // A name that is there already, or a link somebody laid, is refused.
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn files_leave_nothing_in_their_folder() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::new(path.path().to_owned());
        for file in [folder.file(), folder.unlinked()] {
            let mut file = file.unwrap();
            file.write_all(b"answer").unwrap();
            file.rewind().unwrap();
            let mut read = String::new();
            file.read_to_string(&mut read).unwrap();
            assert_eq!(read, "answer");
            assert_eq!(std::fs::read_dir(path.path()).unwrap().count(), 0);
        }
        assert!(Folder::new(path.path().join("none")).file().is_err());
    }
}
