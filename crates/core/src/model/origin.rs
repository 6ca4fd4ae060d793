//! The file behind a model's bytes: whether it is still the file that was opened.
//!
//! The open file is looked at, not its path, so another file renamed over it changes nothing. What
//! the bytes mean, and whether they matter once the file has changed, is not known here.

use std::fs::{File, Metadata};
use std::io;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The marks of a file that change when it is written to. The time of its last change of any kind
/// is none: a rename, a link and another mode change that as well, and leave the bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl From<&Metadata> for FileIdentity {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

/// The result of another look at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Unchanged since the last look.
    Same,
    /// The file was touched or written, and its bytes are still the same.
    Sound,
    /// The file was truncated, changed, or cannot be read.
    Damaged,
}

#[derive(Debug)]
pub(super) struct Origin {
    file: File,
    size: u64,
    /// The identity of the file at the last look.
    seen: Mutex<FileIdentity>,
    damaged: AtomicBool,
}

impl Origin {
    pub(super) fn new(file: File, found: &Metadata) -> Self {
        let seen = Mutex::new(found.into());
        Self { file, size: found.size(), seen, damaged: AtomicBool::new(false) }
    }

    /// Whether the file is unchanged since it was opened or last checked.
    pub(super) fn untouched(&self) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.identity().is_ok_and(|now| now == seen)
    }

    pub(super) fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// Looks again. Of a file that was touched, `is_sound` reads the bytes from the first on and
    /// says whether they are those that were opened.
    pub(super) fn look_again(
        &self,
        is_sound: impl FnOnce(Bytes<'_>) -> io::Result<bool>,
    ) -> FileState {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(now) = self.identity() else { return self.say(true) };
        if now == *seen {
            return FileState::Same;
        }
        *seen = now;
        let sound = now.size == self.size
            && is_sound(Bytes { file: &self.file, at: 0 }).unwrap_or(false)
            // Bytes read while another process wrote prove nothing; the next look sees the later time.
            && self.identity().is_ok_and(|after| after == now);
        self.say(!sound)
    }

    fn say(&self, damaged: bool) -> FileState {
        match (self.damaged.swap(damaged, Ordering::AcqRel), damaged) {
            (true, true) => FileState::Same,
            (_, true) => FileState::Damaged,
            (_, false) => FileState::Sound,
        }
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.file.metadata().map(|found| (&found).into())
    }
}

/// The bytes of a file, read and not mapped: a file that is cut meanwhile is an end here, where a
/// touch of the missing page would be a signal.
pub(super) struct Bytes<'f> {
    file: &'f File,
    at: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}
