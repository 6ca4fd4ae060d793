//! What is under way on one connection, as its socket and its service see it together. Bytes and
//! routes are not known here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// What is under way on one connection. A single task looks at it, and handlers that moved a body
/// elsewhere only ever finish it, so the flags need no order among themselves.
#[derive(Debug, Default)]
pub struct Exchange {
    answering: AtomicBool,
    stalled: AtomicBool,
    partial: AtomicBool,
    closing: AtomicBool,
}

impl Exchange {
    /// A request was read and its answer is on its way until the returned value is dropped.
    pub fn begin(self: &Arc<Self>) -> Answering {
        self.answering.store(true, Relaxed);
        Answering(self.clone())
    }

    /// Whether bytes came that belong to no request read to its end.
    pub fn set_partial(&self, partial: bool) {
        self.partial.store(partial, Relaxed);
    }

    /// Whether part of an answer waits for the client to read.
    pub fn set_stalled(&self, stalled: bool) {
        self.stalled.store(stalled, Relaxed);
    }

    /// The connection may be closed as soon as nothing is under way on it.
    pub fn close_when_quiet(&self) {
        self.closing.store(true, Relaxed);
    }

    /// See [`Exchange::close_when_quiet`].
    pub fn closes_when_quiet(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Whether an answer is owed or not yet handed to the kernel.
    pub fn owes_answer(&self) -> bool {
        self.answering.load(Relaxed) || self.stalled.load(Relaxed)
    }

    /// Whether the client may still be sending, so that closing now could reset what it reads.
    pub fn leaves_unread(&self) -> bool {
        self.partial.load(Relaxed)
    }

    /// Whether dropping the connection now would lose something.
    pub fn is_unfinished(&self) -> bool {
        self.owes_answer() || self.leaves_unread()
    }
}

/// An answer on its way.
#[derive(Debug)]
pub struct Answering(Arc<Exchange>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.store(false, Relaxed);
    }
}
