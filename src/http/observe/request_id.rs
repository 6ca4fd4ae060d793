//! Ids of requests, for requests that bring none.

use std::io::Write;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use axum::http::HeaderValue;

/// A source of ids: unlike those of other processes by what it was started with, unlike each other
/// by their number.
pub struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    /// A source of its own.
    pub(crate) fn new() -> Self {
        let mut seed = [0; 8];
        // Without randomness ids repeat between processes, which the log survives.
        let _ = getrandom::fill(&mut seed);
        Self { process: u64::from_le_bytes(seed), next: AtomicU64::new(0) }
    }

    /// An id that none had before.
    pub(crate) fn next(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Room for the digits of two of the largest numbers.
        let mut digits = [0; 32];
        let mut left = &mut digits[..];
        let written = write!(left, "{:016x}{number:08x}", self.process);
        let length = 32 - left.len();
        // Hexadecimal digits are fit for a header.
        let id = written.ok().and_then(|()| HeaderValue::from_bytes(digits.get(..length)?).ok());
        id.unwrap_or(HeaderValue::from_static("unknown"))
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}
