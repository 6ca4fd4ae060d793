//! Answers of streams that their clients do not read yet: a little in memory, the rest in unnamed
//! temporary files, bounded for each stream and over all of them. What the answers say is not known
//! here.

mod folder;
mod queue;
mod reader;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use reader::Reader;
pub(crate) use writer::{Full, Stopped, Writer};

use crate::http::work::file_threads::FileThreads;
use crate::http::work::spool::folder::Folder;
use crate::http::work::spool::queue::Shared;
use crate::http::work::unsent::Unsent;

/// Bytes of answers that wait in memory before a file is begun.
const IN_MEMORY: usize = 64 << 10;

/// Room for the answers of all streams.
#[derive(Debug)]
pub struct Spools {
    folder: Folder,
    used: Arc<AtomicU64>,
    all: u64,
    each: u64,
    /// Bytes after which a stream's next file is begun: the room of a file is free again once all of it
    /// was read.
    file_bytes: u64,
    /// Whether it was said that no file can be had.
    told: AtomicBool,
    threads: FileThreads,
}

impl Spools {
    /// Room for `each` bytes of a stream and `all` bytes of all streams, in files of about `file_bytes`
    /// bytes in this folder; the system's for temporary files if none is named.
    pub(crate) fn new(folder: Option<PathBuf>, each: u64, all: u64, file_bytes: u64) -> Self {
        let folder = Folder::new(folder.unwrap_or_else(std::env::temp_dir));
        let (used, told) = (Arc::default(), AtomicBool::new(false));
        let threads = FileThreads::default();
        Self { folder, used, all, each: each.min(all), file_bytes, told, threads }
    }

    /// Bytes of files in use, and the most there may be.
    pub fn in_use(&self) -> (u64, u64) {
        (self.used.load(Ordering::Acquire), self.all)
    }

    /// Looks whether files can be had, and says so in the log if not.
    pub(crate) fn look(&self) {
        if self.each > 0
            && let Err(error) = self.folder.file()
        {
            self.tell(&error);
        }
    }

    /// Says once that answers wait in memory alone.
    fn tell(&self, error: &std::io::Error) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                folder = %self.folder,
                %error,
                "no temporary file can be written: answers of streams wait in memory alone, and clients \
                 must read while they send (setting spool_folder)"
            );
        }
    }

    /// A stream's answer: where it is written, and where it is read. A reader gets on if it takes 64
    /// KiB in `patience`.
    pub(crate) fn open(self: &Arc<Self>, unsent: &Unsent, patience: Duration) -> (Writer, Reader) {
        let shared = Arc::new(Shared::default());
        let reader = Reader::new(Arc::clone(&shared), unsent.clone(), self.threads.clone());
        (Writer::new(Arc::clone(self), shared, unsent.clone(), patience), reader)
    }

    /// Room for so many bytes more, if there is any left over all streams.
    fn reserve(&self, bytes: u64) -> Option<Reserved> {
        let take = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.all);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, take).ok()?;
        Some(Reserved { used: Arc::clone(&self.used), bytes })
    }
}

/// Room that is taken until this is dropped.
#[derive(Debug)]
struct Reserved {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Reserved {
    fn merge(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
