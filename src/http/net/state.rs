//! The state of one connection, which its socket and its service share. Bytes and routes are not
//! known here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::http::request::query::Delivery;

/// Bodies up to this size are read to their end when a request is answered without them: a thousand
/// pairs. For a longer body it costs less to end the connection and open another.
pub(super) const SKIPPED_BYTES: u64 = 256 << 10;
const UNKNOWN: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A flag of a connection. A single task reads it, and handlers that moved a body elsewhere only
/// ever finish it, so flags need no order among themselves.
#[derive(Debug, Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    pub(super) fn set(&self, value: bool) {
        self.0.store(value, Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    pending: Flag,
    /// Part of an answer waits for the client to read.
    pub(super) stalled: Flag,
    /// Bytes came that belong to no request read to its end: closing now could reset the connection
    /// before the client reads the answer.
    pub(super) partial: Flag,
    pub(super) receiving: Flag,
    /// The rest of a request's body will not be read, so the connection ends with the current
    /// answer.
    pub(super) abandoned: Flag,
    /// The connection may be closed as soon as it is idle.
    pub(super) closing: Flag,
    pub(super) hurried: Flag,
    pub(super) too_slow: Flag,
    asked: AtomicU64,
    body_bytes: AtomicU64,
    pub(super) delivery: Arc<Delivery>,
}

impl ConnectionState {
    /// A request was read; its answer is due until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> PendingAnswer {
        self.pending.set(true);
        self.asked.fetch_add(1, Relaxed);
        PendingAnswer(self.clone())
    }

    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// Sets the length of the current request's body, if its head states it.
    pub(super) fn set_body_bytes(&self, bytes: Option<u64>) {
        self.body_bytes.store(bytes.unwrap_or(UNKNOWN), Relaxed);
    }

    pub(super) fn body_bytes(&self) -> Option<u64> {
        Some(self.body_bytes.load(Relaxed)).filter(|&bytes| bytes != UNKNOWN)
    }

    /// Whether an answer is due or not yet handed to the kernel.
    pub(super) fn owes_answer(&self) -> bool {
        self.pending.get() || self.stalled.get()
    }

    /// Whether dropping the connection now would lose something.
    pub(super) fn is_unfinished(&self) -> bool {
        self.owes_answer() || self.partial.get()
    }
}

#[derive(Debug)]
pub(crate) struct PendingAnswer(Arc<ConnectionState>);

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.0.pending.set(false);
    }
}
