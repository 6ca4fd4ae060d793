//! A collection's log: every change in the order in which it was made, each batch with a checksum.
//!
//! A frame is 32 bytes of head and the changes as JSON objects, one after the other: the mark `cgc1`,
//! the length of the changes (u32), the number of the frame in the file (u64), the XXH3 of the changes
//! (u64) and that of the 24 bytes before (u64), all of it little-endian. What was changed together
//! stands in one frame, so it is there as a whole or not at all.
//!
//! A frame is written before anything else knows of the change and synced before anybody is told; who
//! waits for that waits together with all others. A crash can only leave the last frames unwhole:
//! these are cut off when the log is opened, and kept beside it. If a whole frame stands behind one
//! that is not, the file was damaged, and it is refused as it is.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::collection::CollectionError;
use crate::collection::Item;
use crate::collection::Settings;
use crate::model::disk::Disk;
use crate::model::disk::DiskFile;
use crate::model::disk::LocalDisk;
use crate::model::target::directory_of;

/// The name of the shape, which the first frame begins with.
pub(super) const FORMAT: &str = "cognate-collection-1";
/// What every frame begins with.
pub(super) const MARK: [u8; 4] = *b"cgc1";
/// Bytes of a frame before its changes.
pub(super) const HEAD: usize = 32;
/// Most bytes of the changes of a frame.
pub(super) const MOST_FRAME: usize = 1 << 30;
/// Bytes of changes after which another frame is begun where a log is written anew.
const PIECE: usize = 1 << 20;

/// One change.
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

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) number: u64,
    pub(super) sum: u64,
}

impl Head {
    /// The head that these bytes are, if they are one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_at_checked(HEAD)?;
        let (summed, sum) = head.split_at_checked(24)?;
        let eight =
            |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let length = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let whole =
            head.starts_with(&MARK) && sum == xxh3_64(summed).to_le_bytes() && length <= MOST_FRAME;
        whole.then_some(Self { length, number: eight(8)?, sum: eight(16)? })
    }
}

/// Adds a frame to bytes.
fn frame(number: u64, changes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "too much is changed at once");
    let length = u32::try_from(changes.len()).ok().filter(|_| changes.len() <= MOST_FRAME);
    let start = out.len();
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&length.ok_or_else(too_long)?.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&xxh3_64(changes).to_le_bytes());
    let sum = xxh3_64(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(changes);
    Ok(())
}

/// A log that is written to.
pub(super) struct Log {
    file: Arc<File>,
    path: PathBuf,
    length: u64,
    frames: u64,
    last: Arc<Lasting>,
}

/// How far a log is certain to outlive a crash.
#[derive(Debug)]
pub(super) struct Lasting {
    file: Arc<File>,
    path: PathBuf,
    /// Bytes that were written.
    written: AtomicU64,
    /// Bytes of them that were synced.
    synced: Mutex<u64>,
    /// Whether it is not known what is on the disk.
    failed: AtomicBool,
}

impl Lasting {
    /// Waits until the first `bytes` bytes were synced.
    pub(super) fn wait(&self, bytes: u64) -> Result<(), CollectionError> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if self.failed.load(Ordering::Acquire) {
            return Err(self.unsynced());
        }
        if *synced >= bytes {
            return Ok(());
        }
        // What others wrote meanwhile is synced with it, so they find it done.
        let written = self.written.load(Ordering::Acquire);
        if self.file.sync_data().is_err() {
            // After a failure a second attempt may succeed without the first one's bytes.
            self.failed.store(true, Ordering::Release);
            return Err(self.unsynced());
        }
        *synced = written;
        Ok(())
    }

    fn unsynced(&self) -> CollectionError {
        CollectionError::Unsynced { path: self.path.clone() }
    }
}

impl Log {
    /// A log that ends after so many bytes and frames, all of which are synced.
    pub(super) fn at(path: PathBuf, file: File, length: u64, frames: u64) -> Self {
        let file = Arc::new(file);
        let last = Lasting {
            file: Arc::clone(&file),
            path: path.clone(),
            written: AtomicU64::new(length),
            synced: Mutex::new(length),
            failed: AtomicBool::new(false),
        };
        Self { file, path, length, frames, last: Arc::new(last) }
    }

    /// Writes a log of these settings and items that takes the place of another, if there is one. What
    /// was there stays until all of it is synced.
    pub(super) fn create<'i>(
        path: &Path,
        settings: Settings,
        items: impl Iterator<Item = &'i Item>,
    ) -> Result<Self, CollectionError> {
        let failed = |source| CollectionError::Write { path: path.to_owned(), source };
        let (disk, directory) = (LocalDisk, directory_of(path));
        let (temporary, file) = disk.create(directory, 0o600).map_err(failed)?;
        let written = write_all(&file, settings, items).and_then(|done| {
            let mut file = &file;
            file.flush()?;
            Ok(done)
        });
        let outcome = written.and_then(|done| {
            file.sync_all()?;
            disk.rename(&temporary, path)?;
            Ok(done)
        });
        match outcome {
            Ok((length, frames)) => match disk.sync_directory(directory) {
                Ok(()) => Ok(Self::at(path.to_owned(), file, length, frames)),
                // It took the place of the other, and nobody knows for how long.
                Err(_) => Err(CollectionError::Unsynced { path: path.to_owned() }),
            },
            Err(error) => {
                let _ = disk.remove(&temporary);
                Err(failed(error))
            }
        }
    }

    /// Takes nothing more: another took its place, or may have.
    pub(super) fn end(&self) {
        self.last.failed.store(true, Ordering::Release);
    }

    /// How long it is.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What tells when all that was written so far outlives a crash.
    pub(super) fn written(&self) -> (Arc<Lasting>, u64) {
        (Arc::clone(&self.last), self.length)
    }

    /// Writes changes as one frame; nothing of it if it does not fit. What was written lasts once
    /// that was [waited](Lasting::wait) for.
    pub(super) fn append(
        &mut self,
        changes: &[Change],
    ) -> Result<(Arc<Lasting>, u64), CollectionError> {
        if self.last.failed.load(Ordering::Acquire) {
            return Err(self.last.unsynced());
        }
        let failed = |source| CollectionError::Write { path: self.path.clone(), source };
        let (mut json, mut bytes) = (Vec::new(), Vec::new());
        for change in changes {
            serde_json::to_writer(&mut json, change).map_err(|error| failed(error.into()))?;
        }
        frame(self.frames, &json, &mut bytes).map_err(failed)?;
        if let Err(error) = self.file.write_all_at(&bytes, self.length) {
            let error = failed(error);
            if self.file.set_len(self.length).is_err() {
                self.last.failed.store(true, Ordering::Release);
            }
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.frames += 1;
        self.last.written.store(self.length, Ordering::Release);
        Ok((Arc::clone(&self.last), self.length))
    }
}

/// Writes a whole log; its bytes and frames.
fn write_all<'i>(
    file: &File,
    settings: Settings,
    items: impl Iterator<Item = &'i Item>,
) -> io::Result<(u64, u64)> {
    let mut out = BufWriter::with_capacity(PIECE, file);
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
            frame(frames, &json, &mut bytes)?;
            out.write_all(&bytes)?;
            (length, frames) = (length + bytes.len() as u64, frames + 1);
            json.clear();
        }
        if ended {
            out.flush()?;
            return Ok((length, frames));
        }
    }
}

/// Copies what is cut off a log beside it, and cuts it off.
pub(super) fn cut(path: &Path, file: &mut File, length: u64, rest: u64) -> io::Result<PathBuf> {
    let kept = path.with_extension(format!("cut-{length}"));
    let mut source = File::open(path)?;
    io::Seek::seek(&mut source, io::SeekFrom::Start(length))?;
    let mut copy = fs::OpenOptions::new().write(true).create(true).truncate(true).open(&kept)?;
    io::copy(&mut io::Read::take(source, rest), &mut copy)?;
    copy.sync_all()?;
    file.set_len(length)?;
    DiskFile::sync(file)?;
    LocalDisk.sync_directory(directory_of(path))?;
    Ok(kept)
}
