//! Ids of requests, for requests that bring none.

use std::sync::atomic::{AtomicU64, Ordering};

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
        // Written by hand: the machinery of formats would take longer than the rest.
        let mut digits = [0; 24];
        let (process, count) = digits.split_at_mut(16);
        hexadecimal(self.process, process);
        // Ids of eight digits come again after four thousand million requests of one process.
        hexadecimal(number, count);
        HeaderValue::from_bytes(&digits).unwrap_or(HeaderValue::from_static("unknown"))
    }
}

/// Writes the last digits of a number, as many as there is room for.
fn hexadecimal(mut number: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        let value = (number & 0xF) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        number >>= 4;
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_digits_of_two_numbers() {
        let ids = Ids { process: 0x0123_4567_89AB_CDEF, next: AtomicU64::new(0xFE) };
        assert_eq!(ids.next(), "0123456789abcdef000000fe");
        assert_eq!(ids.next(), "0123456789abcdef000000ff");
        assert_eq!(ids.next(), "0123456789abcdef00000100");
    }
}
