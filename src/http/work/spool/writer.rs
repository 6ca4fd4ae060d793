//! The writer of a spool: answers are appended through it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use cognate::model::disk;
use tokio::time::{Instant, timeout};

use crate::http::work::spool::{IN_MEMORY, Phase, Reading, ReservedSpace, Segment, Shared, Spools};
use crate::http::work::streams::Place;
use crate::http::work::unsent::Unsent;

/// Bytes that a client must read within a period to count as reading.
const MIN_PROGRESS: u64 = 64 << 10;
/// Share of the waiting bytes that must be read or added within that period.
const SHARE: u64 = 64;
const RETRY: Duration = Duration::from_millis(20);

/// Writes an answer. It never waits while there is room, whether or not the client reads.
#[derive(Debug)]
pub(crate) struct Writer {
    spools: Arc<Spools>,
    shared: Arc<Shared>,
    unsent: Unsent,
    patience: Duration,
    /// When the answer last progressed, and how many bytes were written and read by then.
    moved: (Instant, u64),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Gone,
    /// There is no room, and the client makes none by reading.
    Full(Full),
    /// The order to end came while there was no room.
    Ordered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Each(u64),
    All(u64),
    Folder,
}

impl Writer {
    pub(super) fn new(
        spools: Arc<Spools>,
        shared: Arc<Shared>,
        unsent: Unsent,
        patience: Duration,
    ) -> Self {
        Self { spools, shared, unsent, patience, moved: (Instant::now(), 0) }
    }

    /// Adds to the answer. If there is no room, waits as long as the client keeps reading.
    pub(crate) async fn push(&mut self, bytes: Vec<u8>, place: &mut Place) -> Result<(), Stopped> {
        let mut left = bytes;
        let (mut since, mut taken) = (Instant::now(), self.shared.lock().taken);
        loop {
            left = match self.keep(left)? {
                Some(left) => left,
                None => return Ok(()),
            };
            let full = match self.store(&mut left).await? {
                Some(full) => full,
                None => return Ok(()),
            };
            let (now_taken, nothing_waits) = {
                let waiting = self.shared.lock();
                (waiting.taken, waiting.taken == waiting.given)
            };
            // If others use the memory, the client cannot make room by reading.
            if now_taken - taken >= MIN_PROGRESS || nothing_waits {
                (since, taken) = (Instant::now(), now_taken);
            } else if since.elapsed() >= self.patience {
                return Err(Stopped::Full(full));
            }
            tokio::select! {
                biased;
                () = place.ended() => return Err(Stopped::Ordered),
                // Other streams may also free room, without a notification.
                _ = timeout(RETRY, self.shared.room.notified()) => {}
            }
        }
    }

    /// Adds charged bytes to an answer that is never written to a file, because its writer checks
    /// the waiting bytes before it makes more.
    pub(crate) fn push_in_memory(&self, bytes: Bytes) -> Result<(), Stopped> {
        let mut waiting = self.shared.lock();
        if waiting.reading != Reading::Going {
            return Err(Stopped::Gone);
        }
        waiting.keep(bytes);
        drop(waiting);
        self.shared.more.notify_one();
        Ok(())
    }

    /// Stores bytes in memory if they belong there, or returns them.
    fn keep(&self, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, Stopped> {
        let mut waiting = self.shared.lock();
        if waiting.reading != Reading::Going {
            return Err(Stopped::Gone);
        }
        waiting.close_files();
        let length = bytes.len();
        let room = waiting.in_memory == 0 || waiting.in_memory + length <= IN_MEMORY;
        if !waiting.files.is_empty() || !room {
            return Ok(Some(bytes));
        }
        let bytes = match self.unsent.charge(bytes) {
            Ok(bytes) => bytes,
            Err(bytes) => return Ok(Some(bytes)),
        };
        waiting.keep(bytes);
        drop(waiting);
        self.shared.more.notify_one();
        Ok(None)
    }

    /// Writes bytes to the last file or a new one; returns what is full if that fails. Then the
    /// bytes are unchanged.
    async fn store(&self, bytes: &mut Vec<u8>) -> Result<Option<Full>, Stopped> {
        let length = bytes.len() as u64;
        let spools = &self.spools;
        if self.shared.lock().in_files() + length > spools.each {
            return Ok(Some(if spools.each == spools.all { self.all() } else { self.each() }));
        }
        let Some(room) = spools.reserve(length) else { return Ok(Some(self.all())) };
        let last = {
            let mut waiting = self.shared.lock();
            let fits = |last: &&Segment| last.written + length <= spools.file_bytes;
            let last = waiting.files.back().filter(fits);
            let last = last.map(|last| (Arc::clone(&last.file), last.written));
            // The file must stay open while it is written to, even if all of it was read.
            waiting.writing = last.is_some();
            last
        };
        let taken = std::mem::take(bytes);
        let written = write(Arc::clone(spools), last, taken).await;
        let mut waiting = self.shared.lock();
        waiting.writing = false;
        let written = match written {
            Ok(written) => written,
            Err((error, kept)) => {
                *bytes = kept;
                drop(waiting);
                spools.tell(&error);
                return Ok(Some(Full::Folder));
            }
        };
        if waiting.reading != Reading::Going {
            return Err(Stopped::Gone);
        }
        waiting.add(written, length, room);
        drop(waiting);
        self.shared.more.notify_one();
        Ok(None)
    }

    fn each(&self) -> Full {
        if self.spools.each == 0 { Full::Folder } else { Full::Each(self.spools.each) }
    }

    fn all(&self) -> Full {
        if self.spools.all == 0 { Full::Folder } else { Full::All(self.spools.all) }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.shared.lock().taken
    }

    pub(crate) fn waiting(&self) -> u64 {
        let waiting = self.shared.lock();
        waiting.given - waiting.taken
    }

    /// Whether answers wait in files and the client neither reads them nor sends more lines. Call
    /// it repeatedly.
    pub(crate) fn is_stuck(&mut self) -> bool {
        let (spooled, progress, backlog) = {
            let waiting = self.shared.lock();
            let backlog = waiting.given.saturating_sub(waiting.taken);
            (!waiting.files.is_empty(), waiting.given + waiting.taken, backlog)
        };
        let (since, before) = self.moved;
        if !spooled || progress - before >= MIN_PROGRESS.max(backlog / SHARE) {
            self.moved = (Instant::now(), progress);
            return false;
        }
        since.elapsed() >= self.patience
    }

    /// Ends the answer with these last bytes, for which there is always room: they are short.
    pub(crate) fn finish(&mut self, last: impl Into<Bytes>) {
        let (last, mut waiting) = (last.into(), self.shared.lock());
        waiting.given += last.len() as u64;
        waiting.phase = Phase::Finished(last);
        drop(waiting);
        self.shared.more.notify_one();
    }

    pub(crate) async fn closed(&self) {
        while self.shared.lock().reading == Reading::Going {
            self.shared.room.notified().await;
        }
    }

    /// Whether the reader took all of a finished answer.
    pub(crate) fn was_read(&self) -> bool {
        self.shared.lock().reading == Reading::Whole
    }

    /// Whether a file of the answer could not be read.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.lock().reading == Reading::Failed
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        if matches!(waiting.phase, Phase::Open) {
            waiting.phase = Phase::Broken;
        }
        drop(waiting);
        self.shared.more.notify_one();
    }
}

type Written = Option<Arc<File>>;

impl super::Waiting {
    fn keep(&mut self, bytes: Bytes) {
        self.in_memory += bytes.len();
        self.given += bytes.len() as u64;
        self.memory.push_back(bytes);
    }

    /// Adds `length` bytes, written to a new file or to the last.
    fn add(&mut self, written: Written, length: u64, room: ReservedSpace) {
        self.given += length;
        match (written, self.files.back_mut()) {
            (Some(file), _) => {
                self.files.push_back(Segment { file, written: length, read: 0, room });
            }
            (None, Some(last)) => {
                last.written += length;
                last.room.merge(room);
            }
            (None, None) => {}
        }
    }
}

/// Writes bytes after those of the last file, or to a new one; returns them with the error.
async fn write(
    spools: Arc<Spools>,
    last: Option<(Arc<File>, u64)>,
    bytes: Vec<u8>,
) -> Result<Written, (io::Error, Vec<u8>)> {
    let threads = spools.threads.clone();
    let written = threads.run(move || {
        let write = || match last {
            Some((file, end)) => file.write_all_at(&bytes, end).map(|()| None),
            None => {
                let file = disk::nameless(&spools.folder)?;
                file.write_all_at(&bytes, 0).map(|()| Some(Arc::new(file)))
            }
        };
        write().map_err(|error| (error, bytes))
    });
    written.await.unwrap_or_else(|error| Err((io::Error::other(error), Vec::new())))
}
