//! A collection's log: every change in the order in which it was made, in frames (`frame`). What was
//! changed together stands in one frame, so it is there as a whole or not at all.
//!
//! A frame is written before anything else knows of the change and synced before anybody is told; who
//! waits for that waits together with all others. A crash may leave any of the frames that were not
//! synced unwhole, and the power may write later ones back before earlier ones. Each frame says how much
//! was synced before it, so a frame that is not whole is told from damage: no frame says that it was
//! synced. From there on the log is cut off when it is opened, and kept beside it; what is damaged is
//! refused as it is. A log that is at rest gets a seal, a frame without changes, so that its last frame is
//! no exception.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cognate::model::writer::directory_of;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::embedded::length::Length;
use crate::embedded::storage::{Storage, Stored};
use crate::{CollectionError, Item, Settings};

/// The name of the shape, which the first frame begins with.
pub(super) const FORMAT: &str = "cognate-collection-2";
/// How the name of a log ends that is not whole yet.
pub(super) const UNWHOLE: &str = "new";
/// Bytes of changes after which another frame is begun where a log is written anew.
const PIECE: usize = 1 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change<I = Box<Item>> {
    /// The shape of the file.
    Format(Box<str>),
    /// What the collection keeps.
    Set(Settings),
    /// An item is added, in the place of another of its name.
    Put(I),
    /// The item of this name is taken out.
    Remove(Box<str>),
    /// Items from before this time are taken out.
    Expire(i64),
}

impl Change {
    pub(super) fn put(item: Item) -> Self {
        Self::Put(Box::new(item))
    }
}

/// A log that is written to.
pub(super) struct Log {
    file: Arc<dyn Stored>,
    path: PathBuf,
    length: u64,
    frames: u64,
    /// Whether the last frame is a seal.
    sealed: bool,
    /// Bytes that the file beside it says were synced, if it says anything.
    recorded: Option<u64>,
    last: Arc<Lasting>,
}

/// How far a log is certain to outlive a crash.
#[derive(Debug)]
pub(super) struct Lasting {
    file: Arc<dyn Stored>,
    path: PathBuf,
    /// Bytes that were written.
    written: AtomicU64,
    /// Bytes of them that were synced.
    synced: AtomicU64,
    /// One syncs at a time.
    syncing: Mutex<()>,
    /// Why it takes nothing more.
    ended: OnceLock<Ended>,
}

/// Why a log takes nothing more.
#[derive(Debug)]
enum Ended {
    /// It is not known what is on the disk beyond what was synced.
    Unsynced,
    /// This file is not where it was opened any more.
    Away(PathBuf),
}

impl Lasting {
    /// Waits until the first `bytes` bytes were synced.
    pub(super) fn wait(&self, bytes: u64) -> Result<(), CollectionError> {
        if self.synced() >= bytes {
            return Ok(());
        }
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.synced() >= bytes {
            return Ok(());
        }
        if self.has_ended() {
            return Err(self.error());
        }
        // What others wrote meanwhile is synced with it, so they find it done.
        let written = self.written.load(Ordering::Acquire);
        if self.file.sync().is_err() {
            // After a failure a second attempt may succeed without the first one's bytes.
            self.end(Ended::Unsynced);
            return Err(self.error());
        }
        // Nobody finds again what is in a file that has no name any more, or whose name another has.
        self.look()?;
        self.synced.store(written, Ordering::Release);
        Ok(())
    }

    /// Ends the log if its path leads to another file or to none, or the file lost its end.
    fn look(&self) -> Result<(), CollectionError> {
        // Where that cannot be told now it is asked again. One that has ended may have been replaced here.
        let written = self.written.load(Ordering::Acquire);
        let is_away = || matches!(self.file.is_at(&self.path), Ok(false));
        if self.ended.get().is_none()
            && (is_away() || self.file.length().is_ok_and(|length| length < written))
        {
            self.end(Ended::Away(self.path.clone()));
        }
        match self.ended.get() {
            Some(Ended::Away(_)) => Err(self.error()),
            Some(Ended::Unsynced) | None => Ok(()),
        }
    }

    /// Takes nothing more, for the first reason that is given.
    fn end(&self, reason: Ended) {
        let _ = self.ended.set(reason);
    }

    /// Bytes that were synced.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// The error of a log that takes nothing more.
    fn error(&self) -> CollectionError {
        match self.ended.get() {
            Some(Ended::Away(path)) => CollectionError::Away { path: path.clone() },
            Some(Ended::Unsynced) | None => CollectionError::Unsynced { path: self.path.clone() },
        }
    }
}

impl Log {
    /// A log that ends after so many bytes and frames, all of which are synced.
    pub(super) fn at(path: PathBuf, file: Arc<dyn Stored>, length: u64, frames: u64) -> Self {
        let last = Lasting {
            file: Arc::clone(&file),
            path: path.clone(),
            written: AtomicU64::new(length),
            synced: AtomicU64::new(length),
            syncing: Mutex::default(),
            ended: OnceLock::new(),
        };
        Self { file, path, length, frames, sealed: false, recorded: None, last: Arc::new(last) }
    }

    /// The same, of which a file beside it says how many bytes were synced.
    pub(super) fn with_record(self, recorded: Option<u64>) -> Self {
        Self { recorded, ..self }
    }

    /// Writes a log of these settings and items that takes the place of another, if there is one. What
    /// was there stays until all of it is synced.
    pub(super) fn create<'i>(
        storage: &dyn Storage,
        path: &Path,
        settings: Settings,
        items: impl Iterator<Item = &'i Item>,
    ) -> Result<Self, CollectionError> {
        let failed = |source| CollectionError::Write { path: path.to_owned(), source };
        let unwhole = path.with_extension(UNWHOLE);
        let made = storage.create(&unwhole).and_then(|file| {
            let (length, frames) = write_all(&*file, settings, items)?;
            file.sync()?;
            storage.rename(&unwhole, path)?;
            Ok((file, length, frames))
        });
        match made {
            Ok((file, length, frames)) => match storage.sync_folder(directory_of(path)) {
                Ok(()) => {
                    let log = Self::at(path.to_owned(), file, length, frames);
                    Ok(Self { sealed: true, ..log })
                }
                // It took the place of the other, and nobody knows for how long.
                Err(_) => Err(CollectionError::Unsynced { path: path.to_owned() }),
            },
            Err(error) => {
                // What cannot be removed now is when the folder is opened again.
                let _ = storage.remove_file(&unwhole);
                Err(failed(error))
            }
        }
    }

    /// The same log, of which the folder has another name.
    pub(super) fn moved(self, path: PathBuf) -> Self {
        let log = Self::at(path, self.file, self.length, self.frames);
        Self { sealed: self.sealed, ..log }
    }

    /// Takes nothing more: another took its place, or may have.
    pub(super) fn end(&self) {
        self.last.end(Ended::Unsynced);
    }

    /// Takes nothing more: this file is not where it was opened.
    pub(super) fn end_away(&self, path: PathBuf) {
        self.last.end(Ended::Away(path));
    }

    /// Ends it if it is not as it was left.
    pub(super) fn look(&self) -> Result<(), CollectionError> {
        self.last.look()
    }

    /// Whether it takes nothing more.
    pub(super) fn has_ended(&self) -> bool {
        self.last.has_ended()
    }

    /// The error of a log that takes nothing more.
    pub(super) fn ended(&self) -> CollectionError {
        self.last.error()
    }

    /// Writes beside it how many bytes of it were synced, where that is not known there yet.
    pub(super) fn record(&mut self, storage: &dyn Storage) -> Result<(), CollectionError> {
        let synced = self.last.synced();
        if self.recorded == Some(synced) || self.has_ended() {
            return Ok(());
        }
        // Beside another log it would be wrong.
        self.look()?;
        let written = Length::of(&*self.file, synced)
            .and_then(|length| length.write(storage, &self.path))
            .map_err(|error| self.unwritten(error));
        self.recorded = written.is_ok().then_some(synced);
        written
    }

    /// Removes what is known beside it, before another log takes its place.
    pub(super) fn forget_record(&mut self, storage: &dyn Storage) -> Result<(), CollectionError> {
        self.recorded = None;
        Length::forget(storage, &self.path).map_err(|error| self.unwritten(error))
    }

    /// How long it is.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What tells when what is written to it lasts.
    pub(super) fn lasting(&self) -> &Arc<Lasting> {
        &self.last
    }

    /// What tells when all that was written so far outlives a crash.
    pub(super) fn written(&self) -> (Arc<Lasting>, u64) {
        (Arc::clone(&self.last), self.length)
    }

    /// Writes changes as one frame; nothing of it if it does not fit. What was written lasts once
    /// that was [waited](Lasting::wait) for.
    pub(super) fn append(&mut self, changes: &[Change]) -> Result<(), CollectionError> {
        let mut json = Vec::new();
        for change in changes {
            let written = serde_json::to_writer(&mut json, change);
            written.map_err(|error| self.unwritten(error.into()))?;
        }
        self.add(&json)?;
        self.sealed = false;
        Ok(())
    }

    /// Says in the log that all of it was synced, if it was and nothing says so.
    pub(super) fn seal(&mut self) -> Result<(), CollectionError> {
        if self.sealed || self.has_ended() || self.last.synced() < self.length {
            return Ok(());
        }
        self.add(&[])?;
        self.sealed = true;
        Ok(())
    }

    fn add(&mut self, json: &[u8]) -> Result<(), CollectionError> {
        // Behind the end of a file that was cut off nobody would find it again.
        if self.file.length().is_ok_and(|length| length != self.length) {
            self.end_away(self.path.clone());
        }
        if self.has_ended() {
            return Err(self.ended());
        }
        let mut bytes = Vec::new();
        let framed = add_frame(self.frames, self.last.synced(), json, &mut bytes);
        framed.map_err(|error| self.unwritten(error))?;
        if let Err(error) = self.file.write_at(&bytes, self.length) {
            if self.file.set_length(self.length).is_err() {
                self.end();
            }
            return Err(self.unwritten(error));
        }
        self.length += bytes.len() as u64;
        self.frames += 1;
        self.last.written.store(self.length, Ordering::Release);
        Ok(())
    }

    fn unwritten(&self, source: io::Error) -> CollectionError {
        CollectionError::Write { path: self.path.clone(), source }
    }

    /// Takes off what was written and is not known to last, as far as that can be done.
    pub(super) fn take_back(&mut self) {
        self.length = self.length.min(self.last.synced());
        // One that was cut off is not to grow.
        if self.file.length().is_ok_and(|length| length > self.length) {
            let _ = self.file.set_length(self.length);
        }
    }
}

/// Writes a whole log; its bytes and frames. It has its name only once it was synced, so every frame says
/// that it was, and a seal is the last.
fn write_all<'i>(
    file: &dyn Stored,
    settings: Settings,
    items: impl Iterator<Item = &'i Item>,
) -> io::Result<(u64, u64)> {
    let (mut json, mut bytes, mut length, mut frames) = (Vec::new(), Vec::new(), 0_u64, 0_u64);
    serde_json::to_writer(&mut json, &Change::<&Item>::Format(FORMAT.into()))?;
    serde_json::to_writer(&mut json, &Change::<&Item>::Set(settings))?;
    let mut items = items.peekable();
    loop {
        if let Some(item) = items.next() {
            serde_json::to_writer(&mut json, &Change::Put(item))?;
        }
        let ended = items.peek().is_none();
        if ended || json.len() >= PIECE {
            bytes.clear();
            add_frame(frames, length, &json, &mut bytes)?;
            json.clear();
            frames += 1;
            if ended {
                let end = length + bytes.len() as u64;
                add_frame(frames, end, &json, &mut bytes)?;
                frames += 1;
            }
            file.write_at(&bytes, length)?;
            length += bytes.len() as u64;
        }
        if ended {
            return Ok((length, frames));
        }
    }
}

/// What every frame begins with.
pub(super) const MARK: [u8; 4] = *b"cgc2";
/// What frames began with that had another head.
pub(super) const OLD_MARK: [u8; 4] = *b"cgc1";
/// Bytes of a frame before its changes.
pub(super) const HEAD: usize = 40;
/// Bytes of a head before its own checksum.
const SUMMED: usize = 32;
/// Most bytes of the changes of a frame.
pub(super) const MOST_FRAME: usize = 1 << 30;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of its changes.
    pub(super) length: usize,
    /// Its number in the file, from 0.
    pub(super) number: u64,
    /// Bytes of the file that were synced when it was written.
    pub(super) synced: u64,
    /// The checksum of its changes.
    pub(super) sum: u64,
}

impl Head {
    /// The head that these bytes are, if they are one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_at_checked(HEAD)?;
        let (summed, sum) = head.split_at_checked(SUMMED)?;
        let eight =
            |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let length = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let whole =
            head.starts_with(&MARK) && sum == xxh3_64(summed).to_le_bytes() && length <= MOST_FRAME;
        whole.then_some(Self { length, number: eight(8)?, synced: eight(16)?, sum: eight(24)? })
    }
}

/// Adds a frame to bytes.
pub(super) fn add_frame(
    number: u64,
    synced: u64,
    changes: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "too much is changed at once");
    let length = u32::try_from(changes.len()).ok().filter(|_| changes.len() <= MOST_FRAME);
    let start = out.len();
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&length.ok_or_else(too_long)?.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&synced.to_le_bytes());
    out.extend_from_slice(&xxh3_64(changes).to_le_bytes());
    let sum = xxh3_64(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(changes);
    Ok(())
}
