//! The end of a spool that the connection reads.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::{Stream, stream};

use crate::http::work::file_threads::FileThreads;
use crate::http::work::spool::{Phase, Reading, Shared};
use crate::http::work::unsent::{FREE_BYTES, Unsent};

/// Bytes that are read from a file at once, while there is memory for them.
const BLOCK: u64 = 32 << 10;

/// Reads an answer in the order in which it was written. Dropping the reader tells the writer that
/// the rest is not read.
#[derive(Debug)]
pub(crate) struct Reader {
    shared: Arc<Shared>,
    unsent: Unsent,
    threads: FileThreads,
}

enum Next {
    Bytes(Bytes),
    /// A part of a file: the file, its length, and its position.
    File(Arc<File>, u64, u64),
    Wait,
    End,
    Broken,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>, unsent: Unsent, threads: FileThreads) -> Self {
        Self { shared, unsent, threads }
    }

    pub(crate) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> {
        stream::unfold(self, |mut reader| async {
            let bytes = reader.next().await?;
            Some((bytes, reader))
        })
    }

    pub(crate) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.look() {
                Next::Bytes(bytes) => return Some(Ok(bytes)),
                Next::File(file, from, length) => {
                    return Some(self.read(file, from, length).await.inspect_err(|_| {
                        self.shared.lock().reading = Reading::Failed;
                    }));
                }
                // A notification is stored even if the reader does not wait yet.
                Next::Wait => self.shared.more.notified().await,
                Next::End => return None,
                Next::Broken => {
                    return Some(Err(io::Error::other("the answer could not be written")));
                }
            }
        }
    }

    fn look(&self) -> Next {
        let mut waiting = self.shared.lock();
        if let Some(bytes) = waiting.memory.pop_front() {
            waiting.in_memory -= bytes.len();
            waiting.taken += bytes.len() as u64;
            drop(waiting);
            self.shared.room.notify_one();
            return Next::Bytes(bytes);
        }
        waiting.close_files();
        if let Some(first) = waiting.files.front()
            && first.read < first.written
        {
            let length = (first.written - first.read).min(BLOCK);
            return Next::File(Arc::clone(&first.file), first.read, length);
        }
        match &mut waiting.phase {
            Phase::Open => Next::Wait,
            Phase::Broken => Next::Broken,
            Phase::Finished(last) => match std::mem::take(last) {
                last if last.is_empty() => {
                    waiting.reading = Reading::Whole;
                    Next::End
                }
                last => Next::Bytes(last),
            },
        }
    }

    async fn read(&self, file: Arc<File>, from: u64, length: u64) -> io::Result<Bytes> {
        let read = self.threads.run(move || {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, from)?;
            cut(&mut bytes);
            Ok::<_, io::Error>(bytes)
        });
        let bytes = read.await.map_err(io::Error::other)??;
        let bytes = self.unsent.charge(bytes).unwrap_or_else(|mut bytes| {
            // Small answers are free.
            bytes.truncate(FREE_BYTES);
            cut(&mut bytes);
            bytes.shrink_to_fit();
            Bytes::from(bytes)
        });
        let mut waiting = self.shared.lock();
        if let Some(first) = waiting.files.front_mut() {
            first.read += bytes.len() as u64;
        }
        waiting.taken += bytes.len() as u64;
        waiting.close_files();
        drop(waiting);
        self.shared.room.notify_one();
        Ok(bytes)
    }
}

/// Cuts off the beginning of a line that does not end here, so that pieces of an answer are whole
/// lines as they were written, which some clients count on.
fn cut(bytes: &mut Vec<u8>) {
    if let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') {
        bytes.truncate(end + 1);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        if waiting.reading == Reading::Going {
            waiting.reading = Reading::Left;
        }
        waiting.clear();
        drop(waiting);
        self.shared.room.notify_one();
    }
}
