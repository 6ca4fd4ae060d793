//! Memory of answers that are computed and not yet sent: one budget in bytes over all connections.
//!
//! An answer is charged before it is computed, by its estimated size, and the charge travels with
//! its bytes until the kernel has taken the last of them. So clients that do not read hold at most
//! the budget, whatever their number; and a known client holds at most its share.

use std::borrow::Cow;
use std::io;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use serde::Serialize;

use crate::http::auth::client::{Client, Resource, share_of};
use crate::http::error::{ApiError, Bottleneck, Code, Result};
use crate::http::work::numbers;

/// Answers up to this size are not charged: a connection's own buffers take as much, and
/// connections are counted.
pub(crate) const FREE_BYTES: usize = 8 << 10;
/// Room for the answer to a small question.
const SMALL_ANSWER: usize = 256;
/// Share of an answer's memory that may stay unused once it is written.
const SLACK: usize = 8;

#[derive(Debug, Clone)]
pub struct Unsent {
    used: Arc<AtomicUsize>,
    limit: usize,
    share: usize,
    client: Client,
    largest: usize,
}

impl Unsent {
    /// A budget of `limit` bytes for answers of at most `largest` bytes each; a client gets this
    /// percentage of it.
    pub(crate) fn new(limit: usize, largest: usize, percent: usize) -> Self {
        let (used, client, largest) = (Arc::default(), Client::default(), largest.min(limit));
        Self { used, limit, share: share_of(limit, percent), client, largest }
    }

    /// The client's view of the budget, in which no answer is larger than its share.
    pub(crate) fn of(&self, client: &Client) -> Cow<'_, Self> {
        if !client.is_counted() {
            return Cow::Borrowed(self);
        }
        let (used, client) = (Arc::clone(&self.used), client.clone());
        Cow::Owned(Self { used, client, largest: self.largest.min(self.share), ..*self })
    }

    pub fn in_use(&self) -> (usize, usize) {
        (self.used.load(Ordering::Acquire), self.limit)
    }

    /// Refuses an answer whose estimated size exceeds the limit of one answer. `fits` is how many
    /// items would fit.
    pub(crate) fn check(&self, estimate: usize, items: usize, pointer: &'static str) -> Result<()> {
        if estimate <= self.largest {
            return Ok(());
        }
        let fits = (self.largest as u128 * items as u128 / estimate.max(1) as u128) as usize;
        let batch = match fits {
            0 => String::new(),
            fits => format!("; the largest batch that fits is about {fits}"),
        };
        let detail =
            format!("the answer would take about {estimate} bytes; {}{batch}", self.rule());
        Err(ApiError::at(Code::ResponseTooLarge, pointer, detail))
    }

    /// Refuses an answer that has reached this many bytes.
    fn check_written(&self, bytes: usize) -> Result<()> {
        if bytes <= self.largest {
            return Ok(());
        }
        let detail = format!("the answer takes {bytes} bytes or more; {}", self.rule());
        Err(ApiError::at(Code::ResponseTooLarge, "", detail))
    }

    /// Charges an answer of about `estimate` bytes, or refuses while others use the budget.
    pub(crate) fn answer(&self, estimate: usize) -> Result<Answer<'_>> {
        let mut answer =
            Answer { bytes: Vec::new(), charge: self.free(), unsent: self, refusal: None };
        let room = estimate.clamp(SMALL_ANSWER, self.largest.max(SMALL_ANSWER));
        answer.charge.resize(charged(room), self)?;
        answer.bytes.reserve_exact(room);
        Ok(answer)
    }

    /// Charges bytes that are computed already, or returns them while there is no room.
    pub(crate) fn charge(&self, bytes: Vec<u8>) -> Result<Bytes, Vec<u8>> {
        let mut charge = self.free();
        match charge.resize(charged(bytes.capacity()), self) {
            Ok(()) => Ok(charge.of(bytes)),
            Err(_) => Err(bytes),
        }
    }

    /// Memory for an answer that grows step by step before any of it is written; none yet.
    pub(crate) fn growing(&self) -> Growing {
        Growing { charge: self.free(), unsent: self.clone() }
    }

    /// Most bytes that this client may have at once.
    pub(crate) fn most(&self) -> usize {
        if self.client.is_counted() { self.share.min(self.limit) } else { self.limit }
    }

    pub(crate) fn work(&self, bytes: usize) -> Result<Charge> {
        let mut charge = self.free();
        charge.resize(charged(bytes), self)?;
        Ok(charge)
    }

    fn free(&self) -> Charge {
        Charge { used: Arc::clone(&self.used), client: self.client.clone(), bytes: 0 }
    }

    fn rule(&self) -> String {
        let settings = match self.client.is_counted() {
            true => "`response_bytes`, `unsent_bytes` and `client_share`",
            false => "`response_bytes` and `unsent_bytes`",
        };
        format!("the limit is {} (settings {settings})", self.largest)
    }
}

fn charged(bytes: usize) -> usize {
    if bytes > FREE_BYTES { bytes } else { 0 }
}

/// Bytes of the budget that are taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    used: Arc<AtomicUsize>,
    client: Client,
    bytes: usize,
}

impl Charge {
    fn resize(&mut self, bytes: usize, unsent: &Unsent) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.take(more, unsent)?,
            None => self.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }

    fn take(&self, more: usize, unsent: &Unsent) -> Result<()> {
        if more == 0 {
            return Ok(());
        }
        if !self.client.take(Resource::Unsent, more, unsent.share) {
            let detail = "answers that this client has not read yet take all the memory that one may \
                          have for answers (settings `unsent_bytes` and `client_share`); read them";
            return Err(ApiError::overloaded(Bottleneck::Unsent, detail));
        }
        let take = |used: usize| used.checked_add(more).filter(|&used| used <= unsent.limit);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, take).map_err(|_| {
            self.client.give_back(Resource::Unsent, more);
            let detail = "answers that other clients have not read yet take all the memory for \
                          answers (setting `unsent_bytes`); ask again, or another server";
            ApiError::overloaded(Bottleneck::Unsent, detail)
        })?;
        Ok(())
    }

    fn give_back(&self, less: usize) {
        self.used.fetch_sub(less, Ordering::AcqRel);
        self.client.give_back(Resource::Unsent, less);
    }

    fn of(self, bytes: Vec<u8>) -> Bytes {
        match self.bytes {
            0 => Bytes::from(bytes),
            _ => Bytes::from_owner(Charged { bytes, _charge: self }),
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.give_back(self.bytes);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Growing {
    charge: Charge,
    unsent: Unsent,
}

impl Growing {
    /// Grows the charge to `bytes` bytes in all; refuses more than one answer may have, or if
    /// others use the budget.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<()> {
        self.unsent.check_written(bytes)?;
        self.charge.resize(charged(bytes), &self.unsent)
    }
}

struct Charged {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer being written. It grows within the budget or not at all.
#[derive(Debug)]
pub(crate) struct Answer<'u> {
    bytes: Vec<u8>,
    charge: Charge,
    unsent: &'u Unsent,
    /// Why the last write failed; errors of writers cannot carry it.
    refusal: Option<ApiError>,
}

impl Answer<'_> {
    pub(crate) fn write_json(&mut self, response: &impl Serialize) -> Result<()> {
        // Apart from the budget, only maps whose keys are not strings could fail.
        numbers::to_writer(&mut *self, response).map_err(|error| self.failed(&error))
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|error| self.failed(&error))
    }

    fn failed(&mut self, error: &dyn std::fmt::Display) -> ApiError {
        self.refusal.take().unwrap_or_else(|| ApiError::internal(&error.to_string()))
    }

    /// The written bytes, charged until they are sent.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        let length = self.bytes.len();
        if charged(self.bytes.capacity()) > 0 && self.bytes.capacity() - length > length / SLACK {
            self.bytes.shrink_to_fit();
            // A smaller charge always fits.
            let _ = self.charge.resize(charged(self.bytes.capacity()), self.unsent);
        }
        self.charge.of(self.bytes)
    }

    fn grow(&mut self, length: usize) -> Result<()> {
        self.unsent.check_written(length)?;
        let room = self.bytes.capacity().saturating_mul(2).clamp(length, self.unsent.largest);
        self.charge.resize(charged(room), self.unsent)?;
        self.bytes.reserve_exact(room - self.bytes.len());
        Ok(())
    }
}

impl io::Write for Answer<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = self.bytes.len().saturating_add(bytes.len());
        if length > self.bytes.capacity() || length > self.unsent.largest {
            self.grow(length).map_err(|refusal| {
                self.refusal = Some(refusal);
                io::Error::from(io::ErrorKind::OutOfMemory)
            })?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use(unsent: &Unsent) -> usize {
        unsent.in_use().0
    }

    #[test]
    fn a_charge_lasts_as_long_as_the_last_of_its_bytes() {
        let unsent = Unsent::new(1 << 20, 1 << 20, 50);
        let mut answer = unsent.answer(100 << 10).unwrap();
        answer.write_json(&vec![0; 50 << 10]).unwrap();
        let bytes = answer.into_bytes();
        assert!(bytes.len() > 100 << 10 && in_use(&unsent) >= bytes.len());
        let part = bytes.slice(5..6);
        drop(bytes);
        assert!(in_use(&unsent) > 100 << 10, "a part of the bytes is still there");
        drop(part);
        assert_eq!(in_use(&unsent), 0);
    }

    #[test]
    fn nothing_grows_past_the_budget() {
        let unsent = Unsent::new(100 << 10, 1 << 20, 50);
        let held = unsent.answer(60 << 10).unwrap();
        assert_eq!(unsent.answer(60 << 10).unwrap_err().code, Code::Overloaded);
        let mut small = unsent.answer(0).unwrap();
        let refused = small.write_json(&vec![0; 30 << 10]).unwrap_err();
        assert_eq!(
            (refused.code, refused.bottleneck),
            (Code::Overloaded, Some(Bottleneck::Unsent))
        );
        drop((held, small));
        assert_eq!(in_use(&unsent), 0);
        assert_eq!(unsent.check(200 << 10, 4, "/texts").unwrap_err().code, Code::ResponseTooLarge);
        let mut large = unsent.answer(0).unwrap();
        let refused = large.write_json(&vec![0; 60 << 10]).unwrap_err();
        assert_eq!(refused.code, Code::ResponseTooLarge);
    }

    #[test]
    fn small_answers_are_free_and_large_ones_keep_no_slack() {
        let unsent = Unsent::new(1 << 20, 1 << 20, 50);
        let mut answer = unsent.answer(512 << 10).unwrap();
        answer.write_json(&"short").unwrap();
        let bytes = answer.into_bytes();
        assert_eq!((&bytes[..], in_use(&unsent)), (&b"\"short\""[..], 0));
        let charged = unsent.charge(vec![0; FREE_BYTES + 1]).unwrap();
        assert_eq!(in_use(&unsent), FREE_BYTES + 1);
        drop(charged);
        let too_much = unsent.charge(vec![0; 2 << 20]).unwrap_err();
        assert_eq!((too_much.len(), in_use(&unsent)), (2 << 20, 0));
    }

    #[test]
    fn a_client_that_reads_nothing_leaves_half_to_others() {
        let unsent = Unsent::new(100 << 10, 100 << 10, 50);
        let (greedy, other) = (Client::counted(), Client::counted());
        let (of_greedy, of_other) = (unsent.of(&greedy), unsent.of(&other));
        let held = of_greedy.answer(30 << 10).unwrap();
        let refused = of_greedy.answer(30 << 10).unwrap_err();
        assert_eq!(
            (refused.code, refused.bottleneck),
            (Code::Overloaded, Some(Bottleneck::Unsent))
        );
        assert!(refused.detail.to_string().contains("`client_share`"), "{}", refused.detail);
        assert!(of_greedy.answer(0).is_ok(), "small answers are free");
        let others = of_other.answer(50 << 10).unwrap();
        // No answer of a client is larger than its share, so that it cannot take all alone.
        let refused = of_other.check(60 << 10, 6, "/texts").unwrap_err();
        assert_eq!(refused.code, Code::ResponseTooLarge);
        assert!(refused.detail.to_string().contains("`client_share`"), "{}", refused.detail);
        assert!(unsent.check(60 << 10, 6, "/texts").is_ok());
        // Lack of any room does not count against the client.
        let anyone = unsent.answer(20 << 10).unwrap();
        assert!(of_greedy.answer(15 << 10).is_err());
        drop((held, others, anyone));
        assert!(of_greedy.answer(50 << 10).is_ok());
        assert_eq!(in_use(&unsent), 0);
        assert_eq!([&greedy, &other].map(|client| client.holds(Resource::Unsent)), [0, 0]);
    }
}
