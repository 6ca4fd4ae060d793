//! How an answer gets to its client, as its connection and who writes it see it together. Neither
//! sockets nor what is answered is known here.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// How an answer gets to its client; a request extension where the answer may be written for long.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    answer_bytes: AtomicU64,
    gave_up: AtomicBool,
}

impl Delivery {
    /// How long the answer is; 0 where that is not known.
    pub(crate) fn set_answer_bytes(&self, bytes: u64) {
        self.answer_bytes.store(bytes, Relaxed);
    }

    /// See [`Delivery::set_answer_bytes`].
    pub(crate) fn answer_bytes(&self) -> u64 {
        self.answer_bytes.load(Relaxed)
    }

    /// The client read too slowly, and its connection ends.
    pub(crate) fn give_up(&self) {
        self.gave_up.store(true, Relaxed);
    }

    /// Whether the client read too slowly.
    pub(crate) fn was_given_up(&self) -> bool {
        self.gave_up.load(Relaxed)
    }
}
