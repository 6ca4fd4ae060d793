//! A collection's log: every change in the order in which it was made, in frames (`frame`). Changes
//! that were made together are in one frame, so they are there as a whole or not at all.
//!
//! A frame is written before anything else knows of the change and synced before anybody is told;
//! one sync serves all waiting callers. A crash may leave any of the unsynced frames incomplete,
//! and a power failure may keep later frames and lose earlier ones. Each frame records how much was
//! synced before it, which tells an incomplete frame from damage: no frame says that an incomplete
//! one was synced. When the log is opened, everything from an incomplete frame on is cut off and
//! stored beside it; a damaged log is refused and left as it is. A log at rest gets a seal, a frame
//! without changes, so that its last frame is covered too.

use std::io;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cognate::model::writer::directory_of;
use parking_lot::Mutex;

use crate::embedded::frame::{FORMAT, HEAD, add_frame, read_frame};
use crate::embedded::length::Length;
use crate::embedded::storage;
use crate::embedded::storage::{ReadFrom, Storage, Stored, is_full};
use crate::transaction::Change;
use crate::{CollectionError, Item, Result, Settings};

/// Extension of a log that is still being written.
pub(super) const UNWHOLE: &str = "new";
/// Bytes of changes after which a rewritten log begins another frame.
const PIECE: usize = 1 << 20;

pub(super) struct Log {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) file: Arc<dyn Stored>,
    pub(super) path: PathBuf,
    pub(super) length: u64,
    frames: u64,
    sealed: bool,
    /// Bytes that the file beside the log records as synced, if it exists.
    recorded: Option<u64>,
    /// Bytes that a crash left beyond its end, still to be copied aside once there is room.
    torn: Option<u64>,
    /// Whether the last write found no room.
    pub(super) is_full: bool,
    pub(super) last: Arc<Lasting>,
}

#[derive(Debug)]
pub struct Lasting {
    file: Arc<dyn Stored>,
    path: PathBuf,
    written: AtomicU64,
    /// Bytes of the file that were synced.
    synced: AtomicU64,
    syncing: Mutex<()>,
    ended: OnceLock<Ended>,
}

#[derive(Debug)]
enum Ended {
    /// A sync failed, so beyond the synced bytes the state of the disk is unknown.
    Unsynced,
    Away(PathBuf),
    HandedOver,
}

impl Lasting {
    pub(super) fn wait(&self, bytes: u64) -> Result<()> {
        if self.synced() >= bytes {
            return Ok(());
        }
        let _one = self.syncing.lock();
        if self.synced() >= bytes {
            return Ok(());
        }
        if self.has_ended() {
            return Err(self.error());
        }
        // One sync covers the writes of all threads that wait.
        let written = self.written.load(Ordering::Acquire);
        if self.file.sync().is_err() {
            // After a failure a second attempt may succeed without the first one's bytes.
            self.end(Ended::Unsynced);
            return Err(self.error());
        }
        // Readers cannot find the bytes of a file that was renamed or replaced.
        self.look()?;
        self.synced.store(written, Ordering::Release);
        Ok(())
    }

    /// Ends the log if its file was replaced, removed or truncated.
    pub(super) fn look(&self) -> Result<()> {
        // If this check fails, the next one decides. An ended log may have been replaced by its own
        // copy.
        let written = self.written.load(Ordering::Acquire);
        let is_away = || matches!(self.file.is_at(&self.path), Ok(false));
        if self.ended.get().is_none()
            && (is_away() || self.file.length().is_ok_and(|length| length < written))
        {
            self.end(Ended::Away(self.path.clone()));
        }
        match self.ended.get() {
            Some(Ended::Away(_)) => Err(self.error()),
            Some(Ended::Unsynced | Ended::HandedOver) | None => Ok(()),
        }
    }

    fn end(&self, reason: Ended) {
        let _ = self.ended.set(reason);
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    fn is_handed_over(&self) -> bool {
        matches!(self.ended.get(), Some(Ended::HandedOver))
    }

    fn error(&self) -> CollectionError {
        match self.ended.get() {
            Some(Ended::Away(path)) => CollectionError::Away { path: path.clone() },
            Some(Ended::HandedOver) => CollectionError::HandedOver,
            Some(Ended::Unsynced) | None => CollectionError::Unsynced { path: self.path.clone() },
        }
    }
}

impl Log {
    /// A log of this many bytes and frames, all of them synced.
    pub(super) fn at(
        storage: &Arc<dyn Storage>,
        path: &Path,
        file: Arc<dyn Stored>,
        (length, frames): (u64, u64),
    ) -> Self {
        let last = Lasting {
            file: Arc::clone(&file),
            path: path.to_owned(),
            written: AtomicU64::new(length),
            synced: AtomicU64::new(length),
            syncing: Mutex::default(),
            ended: OnceLock::new(),
        };
        Self {
            storage: Arc::clone(storage),
            file,
            path: path.to_owned(),
            length,
            frames,
            sealed: false,
            recorded: None,
            torn: None,
            is_full: false,
            last: Arc::new(last),
        }
    }

    /// Sets the number of synced bytes that the file beside the log records.
    pub(super) fn with_record(self, recorded: Option<u64>) -> Self {
        Self { recorded, ..self }
    }

    /// Sets the bytes that a crash left beyond the end and that could not be copied aside for lack
    /// of room. They stay until the next write, which copies them.
    pub(super) fn with_torn_end(self, bytes: u64) -> Self {
        Self { torn: Some(bytes), is_full: true, ..self }
    }

    /// Copies what a crash left beyond the end into a file beside the log, and truncates the log,
    /// durably once the log is synced; returns the copy's path, if there was anything. On failure
    /// the log is unchanged.
    pub(super) fn cut_torn_end(&mut self) -> Result<Option<PathBuf>> {
        let Some(bytes) = self.torn else { return Ok(None) };
        let kept = self.path.with_extension(format!("cut-{}", self.length));
        let cut = self.copy_torn_end(bytes, &kept);
        let cut = cut.and_then(|()| self.file.set_length(self.length));
        if cut.is_err() {
            // A partial copy is of no use.
            let _ = self.storage.remove_file(&kept);
        }
        self.is_full = cut.as_ref().is_err_and(is_full);
        cut.map_err(CollectionError::writing(&self.path))?;
        self.torn = None;
        Ok(Some(kept))
    }

    fn copy_torn_end(&self, bytes: u64, to: &Path) -> io::Result<()> {
        let (copy, from) =
            (self.storage.create(to)?, ReadFrom { file: &*self.file, offset: self.length });
        storage::copy(from, bytes, &*copy, || Ok(()))?;
        copy.sync()?;
        self.storage.sync_folder(directory_of(to))
    }

    pub(super) fn moved(self, path: &Path) -> Self {
        let log = Self::at(&self.storage, path, self.file, (self.length, self.frames));
        Self { sealed: self.sealed, ..log }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.last.has_ended() { Err(self.last.error()) } else { Ok(()) }
    }

    /// Accepts no more writes: another log replaced it, or may have.
    pub(super) fn end(&self) {
        self.last.end(Ended::Unsynced);
    }

    pub(super) fn end_away(&self, path: PathBuf) {
        self.last.end(Ended::Away(path));
    }

    /// Records the synced length in the file beside the log, if it changed.
    pub(super) fn record(&mut self) -> Result<()> {
        let synced = self.last.synced();
        if self.recorded == Some(synced) || self.last.has_ended() {
            return Ok(());
        }
        self.last.look()?;
        let written = Length::new(&*self.file, synced)
            .and_then(|length| length.write(&*self.storage, &self.path))
            .map_err(CollectionError::writing(&self.path));
        self.recorded = written.is_ok().then_some(synced);
        written
    }

    /// Removes the record of the length, before another log replaces this one.
    pub(super) fn forget_record(&mut self) -> Result<()> {
        self.recorded = None;
        Length::forget(&*self.storage, &self.path).map_err(CollectionError::writing(&self.path))
    }

    pub(super) fn written(&self) -> (Arc<Lasting>, u64) {
        (Arc::clone(&self.last), self.length)
    }

    pub(super) fn append(&mut self, changes: &[Change]) -> Result<()> {
        let mut json = Vec::new();
        for change in changes {
            let written = serde_json::to_writer(&mut json, change);
            written.map_err(|error| CollectionError::writing(&self.path)(error.into()))?;
        }
        self.add(&json)?;
        self.sealed = false;
        Ok(())
    }

    /// Appends a frame without changes which records that the whole log was synced, unless one
    /// does.
    pub(super) fn seal(&mut self) -> Result<()> {
        if self.sealed || self.last.has_ended() || self.last.synced() < self.length {
            return Ok(());
        }
        self.add(&[])?;
        self.sealed = true;
        Ok(())
    }

    /// Makes the log durable and releases the file to another process. On failure this process
    /// keeps it until it ends: a write that is not durable still has to be undone.
    pub(super) fn hand_over(&mut self) {
        if self.last.wait(self.length).is_err() {
            return;
        }
        // Neither is needed to read the log.
        let _ = self.seal().and_then(|()| self.last.wait(self.length)).and_then(|()| self.record());
        self.last.end(Ended::HandedOver);
        if self.last.is_handed_over() {
            // Otherwise the next process gets the file when this one ends.
            let _ = self.file.unlock();
        }
    }

    fn add(&mut self, json: &[u8]) -> Result<()> {
        // If the file was truncated, a frame written at the old position would never be read.
        if self.file.length().is_ok_and(|length| length != self.length + self.torn.unwrap_or(0)) {
            self.end_away(self.path.clone());
        }
        self.check()?;
        self.cut_torn_end()?;
        let mut bytes = Vec::new();
        let framed = add_frame(self.frames, self.last.synced(), json, &mut bytes);
        framed.map_err(CollectionError::writing(&self.path))?;
        let written = self.file.write_at(&bytes, self.length);
        self.is_full = written.as_ref().is_err_and(is_full);
        if let Err(error) = written {
            if self.file.set_length(self.length).is_err() {
                self.end();
            }
            return Err(CollectionError::writing(&self.path)(error));
        }
        self.length += bytes.len() as u64;
        self.frames += 1;
        self.last.written.store(self.length, Ordering::Release);
        Ok(())
    }

    /// Truncates the log to what is durable, as far as the disk allows.
    pub(super) fn take_back(&mut self) {
        if self.last.is_handed_over() {
            return;
        }
        self.length = self.length.min(self.last.synced());
        // A file that another process truncated is not extended.
        if self.file.length().is_ok_and(|length| length > self.length) {
            let _ = self.file.set_length(self.length);
        }
    }
}

/// A log written beside the current one, to replace it. A failure leaves the current one as it is;
/// a dropped copy is removed.
pub(super) struct LogCopy {
    storage: Arc<dyn Storage>,
    file: Arc<dyn Stored>,
    path: PathBuf,
    length: u64,
    frames: u64,
    /// Bytes of the current log that the copy stands for.
    copied: u64,
    in_place: bool,
}

impl LogCopy {
    /// Writes and syncs a log of these settings and items, which stand for the first `copied` bytes
    /// of the log at this path, if there is one.
    pub(super) fn new<'i>(
        storage: &Arc<dyn Storage>,
        path: &Path,
        settings: Settings,
        items: impl Iterator<Item = &'i Item>,
        copied: u64,
    ) -> Result<Self> {
        let file = storage.create(&path.with_extension(UNWHOLE));
        let file = file.map_err(CollectionError::writing(path))?;
        let (storage, path) = (Arc::clone(storage), path.to_owned());
        let mut copy = Self { storage, file, path, length: 0, frames: 0, copied, in_place: false };
        copy.write_all(settings, items).map_err(CollectionError::writing(&copy.path))?;
        Ok(copy)
    }

    fn write_all<'i>(
        &mut self,
        settings: Settings,
        items: impl Iterator<Item = &'i Item>,
    ) -> io::Result<()> {
        let mut json = Vec::new();
        serde_json::to_writer(&mut json, &Change::<&Item>::Format(FORMAT.into()))?;
        let plain = Settings { lag_ms: None, ..settings };
        serde_json::to_writer(&mut json, &Change::<&Item>::Set(plain))?;
        for item in items {
            serde_json::to_writer(&mut json, &Change::Put(item))?;
            if json.len() >= PIECE {
                self.add(&json)?;
                json.clear();
            }
        }
        // The clock belongs to items that exist.
        if let Some(lag) = settings.lag_ms {
            serde_json::to_writer(&mut json, &Change::<&Item>::Lag(lag))?;
        }
        if !json.is_empty() {
            self.add(&json)?;
        }
        self.file.sync()
    }

    pub(super) fn missing(&self, length: u64) -> u64 {
        length.saturating_sub(self.copied)
    }

    /// Appends to the copy what was written to `log` since, up to the offset `end`, where a frame
    /// ends, and syncs the copy.
    pub(super) fn catch_up(&mut self, log: &dyn Stored, end: u64) -> Result<()> {
        if self.copied < end {
            self.add_frames(log, end).map_err(CollectionError::writing(&self.path))?;
        }
        Ok(())
    }

    fn add_frames(&mut self, log: &dyn Stored, end: u64) -> io::Result<()> {
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, "a frame is not as it was written");
        let mut from = BufReader::new(ReadFrom { file: log, offset: self.copied });
        let mut changes = Vec::new();
        while self.copied < end {
            let head = read_frame(&mut from, end - self.copied, &mut changes)?;
            let head = head.ok_or_else(damaged)?;
            if !changes.is_empty() {
                self.add(&changes)?;
            }
            self.copied += (HEAD + head.length) as u64;
        }
        self.file.sync()
    }

    /// Adds a frame. The copy is renamed only once all of it was synced, so every frame may state
    /// that all bytes before it were.
    fn add(&mut self, changes: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD + changes.len());
        add_frame(self.frames, self.length, changes, &mut bytes)?;
        self.file.write_at(&bytes, self.length)?;
        self.length += bytes.len() as u64;
        self.frames += 1;
        Ok(())
    }

    pub(super) fn into_place(mut self) -> Result<Log> {
        let sealed = self.add(&[]).and_then(|()| self.file.sync());
        let renamed = sealed
            .and_then(|()| self.storage.rename(&self.path.with_extension(UNWHOLE), &self.path));
        renamed.map_err(CollectionError::writing(&self.path))?;
        self.in_place = true;
        let (path, file) = (&self.path, Arc::clone(&self.file));
        if self.storage.sync_folder(directory_of(path)).is_err() {
            return Err(CollectionError::Unsynced { path: path.clone() });
        }
        let log = Log::at(&self.storage, path, file, (self.length, self.frames));
        Ok(Log { sealed: true, ..log })
    }
}

impl Drop for LogCopy {
    fn drop(&mut self) {
        let path = self.path.with_extension(UNWHOLE);
        // The collection may have been deleted meanwhile, and another of its name made. A file that
        // cannot be removed now is removed when the folder is opened again.
        if !self.in_place && matches!(self.file.is_at(&path), Ok(true)) {
            let _ = self.storage.remove_file(&path);
        }
    }
}
