//! What waits to be read, in order: first what is in memory, then the files.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use tokio::sync::Notify;

use crate::http::work::spool::Reserved;

/// What the writer and the reader of one answer share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    waiting: Mutex<Waiting>,
    /// There is more to read, or there will never be.
    pub(super) more: Notify,
    /// The reader took something, or reads no more.
    pub(super) room: Notify,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether more is to come.
#[derive(Debug, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    /// Only this, after all else.
    Finished(Bytes),
    /// It was to come, and will not.
    Broken,
}

/// How the reader's part of it ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    #[default]
    Going,
    Whole,
    /// Nobody reads the rest.
    Left,
    /// A file could not be read.
    Failed,
}

/// What waits to be read.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) memory: VecDeque<Bytes>,
    pub(super) in_memory: usize,
    /// All of it is newer than what is in memory.
    pub(super) files: VecDeque<Segment>,
    /// Whether the last file is being written to.
    pub(super) writing: bool,
    /// Bytes written and bytes taken in all.
    pub(super) given: u64,
    pub(super) taken: u64,
    pub(super) phase: Phase,
    pub(super) reading: Reading,
}

/// A file that is written to its end once, and read from its beginning.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: Arc<File>,
    pub(super) written: u64,
    pub(super) read: u64,
    /// Its room among all files.
    pub(super) room: Reserved,
}

impl Waiting {
    /// Bytes of files, those that were read already among them.
    pub(super) fn in_files(&self) -> u64 {
        self.files.iter().map(|segment| segment.written).sum()
    }

    /// Closes files of which nothing is left to read.
    pub(super) fn close_files(&mut self) {
        while let Some(first) = self.files.front() {
            let is_last = self.files.len() == 1;
            if first.read < first.written || (is_last && self.writing) {
                break;
            }
            self.files.pop_front();
        }
    }

    /// Gives up all that waits.
    pub(super) fn clear(&mut self) {
        self.memory.clear();
        self.in_memory = 0;
        self.files.clear();
    }
}
