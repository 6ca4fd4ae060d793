//! Unread answers of streams: a little in memory, the rest in unnamed temporary files, bounded for
//! each stream and over all of them. What the answers say is not known here.

mod reader;
mod writer;
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use cognate::model::disk;
pub(crate) use reader::Reader;
use tokio::sync::Notify;
pub(crate) use writer::{Full, Stopped, Writer};

use crate::http::work::file_threads::FileThreads;
use crate::http::work::unsent::Unsent;

/// Bytes of answers that wait in memory before a file is begun.
const IN_MEMORY: usize = 64 << 10;

#[derive(Debug)]
pub struct Spools {
    folder: PathBuf,
    used: Arc<AtomicU64>,
    all: u64,
    each: u64,
    /// Bytes after which a stream's next file is begun: a file's room is free again once all of it
    /// was read.
    file_bytes: u64,
    told: AtomicBool,
    threads: FileThreads,
}

impl Spools {
    /// Room for `each` bytes of a stream and `all` bytes of all streams, in files of about
    /// `file_bytes` bytes in this folder, by default the system's for temporary files.
    pub(crate) fn new(folder: Option<PathBuf>, each: u64, all: u64, file_bytes: u64) -> Self {
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        let (used, told) = (Arc::default(), AtomicBool::new(false));
        let threads = FileThreads::default();
        Self { folder, used, all, each: each.min(all), file_bytes, told, threads }
    }

    /// Bytes of files in use, and their limit.
    pub fn in_use(&self) -> (u64, u64) {
        (self.used.load(Ordering::Acquire), self.all)
    }

    /// Checks whether files can be made; if not, logs it.
    pub(crate) fn look(&self) {
        if self.each > 0
            && let Err(error) = disk::nameless(&self.folder)
        {
            self.tell(&error);
        }
    }

    /// Logs once that answers wait in memory alone.
    fn tell(&self, error: &std::io::Error) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                folder = %self.folder.display(),
                %error,
                "no temporary file can be written: answers of streams wait in memory alone, and clients \
                 must read while they send (setting spool_folder)"
            );
        }
    }

    /// A stream's answer: its writer and its reader. A reader must take 64 KiB in `patience`.
    pub(crate) fn open(self: &Arc<Self>, unsent: &Unsent, patience: Duration) -> (Writer, Reader) {
        let shared = Arc::new(Shared::default());
        let reader = Reader::new(Arc::clone(&shared), unsent.clone(), self.threads.clone());
        (Writer::new(Arc::clone(self), shared, unsent.clone(), patience), reader)
    }

    fn reserve(&self, bytes: u64) -> Option<ReservedSpace> {
        let take = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.all);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, take).ok()?;
        Some(ReservedSpace { used: Arc::clone(&self.used), bytes })
    }
}

#[derive(Debug)]
struct ReservedSpace {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl ReservedSpace {
    fn merge(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for ReservedSpace {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when there is more to read, or the answer ends.
    more: Notify,
    /// Notified when the reader took something, or stops reading.
    room: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Open,
    Finished(Bytes),
    Broken,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reading {
    #[default]
    Going,
    Whole,
    Left,
    Failed,
}

#[derive(Debug, Default)]
struct Waiting {
    memory: VecDeque<Bytes>,
    in_memory: usize,
    /// Files hold newer bytes than memory does.
    files: VecDeque<Segment>,
    writing: bool,
    /// Bytes written and bytes read in all.
    given: u64,
    taken: u64,
    phase: Phase,
    reading: Reading,
}

/// A file that is written to its end once, and read from its beginning.
#[derive(Debug)]
struct Segment {
    file: Arc<File>,
    written: u64,
    read: u64,
    room: ReservedSpace,
}

impl Waiting {
    /// Bytes of files, including those already read.
    fn in_files(&self) -> u64 {
        self.files.iter().map(|segment| segment.written).sum()
    }

    fn close_files(&mut self) {
        while let Some(first) = self.files.front() {
            let is_last = self.files.len() == 1;
            if first.read < first.written || (is_last && self.writing) {
                break;
            }
            self.files.pop_front();
        }
    }

    fn clear(&mut self) {
        self.memory.clear();
        self.in_memory = 0;
        self.files.clear();
    }
}

#[cfg(test)]
mod tests;
