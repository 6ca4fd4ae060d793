//! A log that is followed while another process writes it, or read once as a start would read it.
//! Nothing is written, not even a lock.

use std::fs::{File, Metadata, OpenOptions};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::embedded::frame::{HEAD, Head, read_frame};
use crate::embedded::home::{LOG, collection_names};
use crate::embedded::replay::Place;
use crate::embedded::storage::{LocalStorage, ReadFrom, Stored, is_nothing, open_regular};
use crate::embedded::{length, replay};
use crate::transaction::Change;
use crate::{CollectionError, Result};

const PIECE: usize = 1 << 20;
/// For this long after its last change a file may still be in the middle of a write.
const UNSETTLED_MS: u64 = 3000;

#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    at: Place,
    /// Position and head of the last frame read: they tell whether the file is still the same log.
    last: Option<(u64, [u8; HEAD])>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// The current file of a path; `None` if there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::from(&metadata))),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn length(self) -> u64 {
        self.length
    }

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
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(OpenOptions::new().read(true), path)?;
        Ok(Self { path: path.to_owned(), file, at: Place::default(), last: None })
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.at.offset
    }

    /// Whether a file of this stamp is the log that was read so far, or a longer version of it.
    pub(super) fn goes_on_in(&self, stamp: Stamp) -> io::Result<bool> {
        let own = Stamp::from(&self.file.metadata()?);
        if own.file != stamp.file || stamp.length < self.at.offset {
            return Ok(false);
        }
        let Some((offset, head)) = self.last else { return Ok(true) };
        let mut now = [0; HEAD];
        Ok(self.file.read_at(&mut now, offset)? == HEAD && now == head)
    }

    /// Passes on the changes of each frame that was written since and is known to be durable;
    /// returns whether no other frames remain.
    pub(super) fn read_on(&mut self, mut tell: impl FnMut(Vec<Change>)) -> Result<bool> {
        let path = self.path.clone();
        let failed = CollectionError::reading(&path);
        // Before the end is read: the log has at least the recorded bytes.
        let recorded = match self.at == Place::default() {
            true => replay::recorded(&LocalStorage, &path, &self.file)?,
            false => None,
        };
        let end = self.file.length().map_err(failed)?;
        let lost = |whole: u64| {
            let recorded = recorded.filter(|recorded| whole < *recorded);
            recorded.map(|known| replay::damaged(&path, whole, &length::problem(whole, end, known)))
        };
        let (certain, whole) = self.look_ahead(end).map_err(failed)?;
        if whole == Place::default() {
            return Err(replay::without_beginning(&path, &self.file));
        }
        let certain = certain.max(recorded.unwrap_or(0));
        let from = ReadFrom { file: &self.file, offset: self.at.offset };
        let mut reader = BufReader::with_capacity(PIECE, from);
        let mut json = Vec::new();
        while self.at.offset < certain {
            let Place { offset, frames } = self.at;
            let left = end.saturating_sub(offset);
            let head = read_frame(&mut reader, left, &mut json).map_err(failed)?;
            if head.is_none_or(|head| head.number != frames) {
                let proven = || replay::proven_damage(&path, offset, whole.offset);
                return Err(lost(offset).unwrap_or_else(proven));
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
        let Place { offset, frames } = whole;
        if let Some(proof) = replay::proof(&self.file, offset, end, frames).map_err(failed)? {
            return Err(replay::proven_damage(&path, offset, proof));
        }
        match lost(offset) {
            Some(lost) => Err(lost),
            None => Ok(offset == end),
        }
    }

    fn look_ahead(&self, end: u64) -> io::Result<(u64, Place)> {
        let (mut certain, mut at) = (0, self.at);
        while end.saturating_sub(at.offset) >= HEAD as u64 {
            let head = Head::at(&self.file, at.offset)?.filter(|head| head.number == at.frames);
            let Some(head) = head else { break };
            if head.length as u64 > end - at.offset - HEAD as u64 {
                break;
            }
            // A seal states it of all that is before it, and has no changes that could be lost.
            let seals = head.length == 0 && head.synced == at.offset;
            at.pass(head.length);
            certain = certain.max(if seals { at.offset } else { head.synced });
        }
        Ok((certain.min(end), at))
    }
}

/// Reads each log of a folder as a start, or a replica, does, and changes nothing: the bytes of
/// each, or why it cannot be read.
pub fn check_logs(path: &Path, is_replica: bool) -> Result<Vec<Result<u64, CollectionError>>> {
    let names = collection_names(&LocalStorage, path)?;
    let logs = names.iter().map(|name| path.join(name).join(LOG));
    let logs = logs.filter(|log| !is_replica || log.exists());
    let read = |log: PathBuf| {
        if !is_replica {
            return replay::read_only(&log, drop);
        }
        let mut tail = Tail::open(&log).map_err(|error| replay::unopened(&log, error))?;
        tail.read_on(drop)?;
        Ok(tail.read_bytes())
    };
    Ok(logs.map(read).collect())
}
