//! What is under way on one connection, as its socket and its service see it together. Bytes and
//! routes are not known here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::http::request::query::Delivery;

/// Bodies up to this size are read to their end when a request is answered without them: what a
/// thousand pairs take. For a longer one it costs less to end the connection and make another.
pub(super) const SKIPPED_BYTES: u64 = 256 << 10;
/// The length of a body that does not say how long it is.
const UNKNOWN: u64 = u64::MAX;

/// The client's address, as an extension of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What is under way on one connection. A single task looks at it, and handlers that moved a body
/// elsewhere only ever finish it, so the flags need no order among themselves.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    pending: AtomicBool,
    stalled: AtomicBool,
    partial: AtomicBool,
    receiving: AtomicBool,
    abandoned: AtomicBool,
    closing: AtomicBool,
    hurried: AtomicBool,
    asked: AtomicU64,
    body_bytes: AtomicU64,
    too_slow: AtomicBool,
    delivery: Arc<Delivery>,
}

impl ConnectionState {
    /// A request was read and its answer is on its way until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> PendingAnswer {
        self.pending.store(true, Relaxed);
        self.asked.fetch_add(1, Relaxed);
        PendingAnswer(self.clone())
    }

    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// The length of the present request's body, if its head states it.
    pub(crate) fn set_body_bytes(&self, bytes: Option<u64>) {
        self.body_bytes.store(bytes.unwrap_or(UNKNOWN), Relaxed);
    }

    pub(crate) fn forget_body(&self) {
        self.set_body_bytes(None);
    }

    pub(crate) fn body_bytes(&self) -> Option<u64> {
        Some(self.body_bytes.load(Relaxed)).filter(|&bytes| bytes != UNKNOWN)
    }

    /// The client did not read its answer in time.
    pub(crate) fn set_too_slow(&self) {
        self.too_slow.store(true, Relaxed);
    }

    pub(crate) fn is_too_slow(&self) -> bool {
        self.too_slow.load(Relaxed)
    }

    /// Whether bytes came that belong to no request read to its end.
    pub(crate) fn set_partial(&self, partial: bool) {
        self.partial.store(partial, Relaxed);
    }

    /// The rest of a request's body will not be read, so nothing that follows it can be.
    pub(crate) fn abandon_body(&self) {
        self.abandoned.store(true, Relaxed);
    }

    /// Whether the connection has to end after the present answer.
    pub(crate) fn has_abandoned_body(&self) -> bool {
        self.abandoned.load(Relaxed)
    }

    /// Whether the handler still reads the request's body.
    pub(crate) fn set_receiving(&self, receiving: bool) {
        self.receiving.store(receiving, Relaxed);
    }

    pub(crate) fn is_receiving(&self) -> bool {
        self.receiving.load(Relaxed)
    }

    pub(crate) fn delivery(&self) -> &Arc<Delivery> {
        &self.delivery
    }

    /// Whether part of an answer waits for the client to read.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        self.stalled.store(stalled, Relaxed);
    }

    /// The connection may be closed as soon as nothing is under way on it.
    pub(crate) fn close_when_quiet(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(crate) fn closes_when_quiet(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Ends the wait for further requests.
    pub(crate) fn hurry(&self) {
        self.hurried.store(true, Relaxed);
    }

    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.load(Relaxed)
    }

    /// Whether an answer is owed or not yet handed to the kernel.
    pub(crate) fn owes_answer(&self) -> bool {
        self.pending.load(Relaxed) || self.stalled.load(Relaxed)
    }

    /// Whether the client may still be sending: closing now could reset the connection before it reads the
    /// answer.
    pub(crate) fn leaves_unread(&self) -> bool {
        self.partial.load(Relaxed)
    }

    /// Whether dropping the connection now would lose something.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.owes_answer() || self.leaves_unread()
    }
}

#[derive(Debug)]
pub(crate) struct PendingAnswer(Arc<ConnectionState>);

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.0.pending.store(false, Relaxed);
    }
}
