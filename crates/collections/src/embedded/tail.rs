//! A log that another process writes, read on as it grows.
//!
//! Only what the log itself says was synced is read, so what is shown here outlives a crash of the
//! process that writes, unless the disk itself fails. That process may write the log anew or put another
//! file in its place; then it is read from its beginning.

use std::fs::{File, Metadata, OpenOptions};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::CollectionError;
use crate::embedded::frame::{HEAD, Head};
use crate::embedded::log::Change;
use crate::embedded::replay;
use crate::embedded::replay::Place;
use crate::embedded::storage::{ReadFrom, Stored, is_nothing, open_regular};

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// How long after its last change a file may still be in the middle of one.
const UNSETTLED_MS: u64 = 3000;

/// A log as far as it was read.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    at: Place,
    /// Where the last frame that was read begins, and its head: by these another log of the same file is
    /// told.
    last: Option<(u64, [u8; HEAD])>,
}

/// By what it is seen that a file is another one, or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// The file of a path as it is now; nothing where there is none.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::from(&metadata))),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How long it is.
    pub(super) fn length(self) -> u64 {
        self.length
    }

    /// Whether it may be in the middle of a change.
    pub(super) fn is_fresh(self) -> bool {
        let modified = self.modified.0.saturating_mul(1000);
        // Clocks of other machines may be ahead.
        crate::now().abs_diff(modified) <= UNSETTLED_MS
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Tail {
    /// Opens a log, of which nothing was read.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(OpenOptions::new().read(true), path)?;
        Ok(Self { path: path.to_owned(), file, at: Place::default(), last: None })
    }

    /// Bytes that were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.at.offset
    }

    /// Whether a file of this stamp is the log that was read so far, or more of it.
    pub(super) fn goes_on_in(&self, stamp: Stamp) -> io::Result<bool> {
        let own = Stamp::from(&self.file.metadata()?);
        if own.file != stamp.file || stamp.length < self.at.offset {
            return Ok(false);
        }
        let Some((offset, head)) = self.last else { return Ok(true) };
        let mut now = [0; HEAD];
        Ok(self.file.read_at(&mut now, offset)? == HEAD && now == head)
    }

    /// Tells the changes of each frame that was written since and is certain to last; whether nothing is
    /// left, but frames of which that is not known.
    pub(super) fn read_on(
        &mut self,
        mut tell: impl FnMut(Vec<Change>),
    ) -> Result<bool, CollectionError> {
        let path = self.path.clone();
        let failed = |source| CollectionError::Read { path: path.clone(), source };
        let end = self.file.length().map_err(failed)?;
        let (certain, whole) = self.look_ahead(end).map_err(failed)?;
        let from = ReadFrom { file: &self.file, offset: self.at.offset };
        let mut reader = BufReader::with_capacity(PIECE, from);
        let mut json = Vec::new();
        while self.at.offset < certain {
            let Place { offset, frames } = self.at;
            if !replay::read_frame(&mut reader, frames, end - offset, &mut json).map_err(failed)? {
                return Err(replay::proven_damage(&path, offset, whole.offset));
            }
            let changes = replay::changes(&path, self.at, &json)?;
            let mut head = [0; HEAD];
            self.file.read_at(&mut head, offset).map_err(failed)?;
            self.last = Some((offset, head));
            self.at.pass(json.len());
            tell(changes);
        }
        if self.at == Place::default() {
            return Err(replay::without_beginning(&path, &self.file));
        }
        if whole.offset == end {
            return Ok(true);
        }
        match replay::proof(&self.file, whole.offset, end, whole.frames).map_err(failed)? {
            Some(proof) => Err(replay::proven_damage(&path, whole.offset, proof)),
            None => Ok(false),
        }
    }

    /// How many bytes were synced, as the heads of frames say that were not read yet; and where the first
    /// frame begins whose head is not whole, or whose changes are not all there.
    fn look_ahead(&self, end: u64) -> io::Result<(u64, Place)> {
        let (mut certain, mut at) = (0, self.at);
        while end.saturating_sub(at.offset) >= HEAD as u64 {
            let mut head = [0; HEAD];
            let read = self.file.read_at(&mut head, at.offset)?;
            let head = Head::read(&head).filter(|head| read == HEAD && head.number == at.frames);
            let Some(head) = head else { break };
            if head.length as u64 > end - at.offset - HEAD as u64 {
                break;
            }
            // A seal says it of all that is before it, and there is nothing in it that could be lost.
            let seals = head.length == 0 && head.synced == at.offset;
            at.pass(head.length);
            certain = certain.max(if seals { at.offset } else { head.synced });
        }
        Ok((certain.min(end), at))
    }
}
