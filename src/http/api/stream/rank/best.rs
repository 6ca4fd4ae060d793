//! The best of any number of candidates, in memory that does not grow with their number.

use std::cmp::Ordering;
use std::vec;

use cognate::engine::{Oppositions, Reason, WordShare};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::http::api::stream::line::write;
use crate::http::error::Result;
use crate::http::work::unsent::Growing;

/// Results beyond the wanted ones that are stored before the worst are dropped.
const SURPLUS: usize = 256;

#[derive(Debug)]
pub(super) struct Held {
    pub(super) index: u64,
    /// The candidate's own name, if it has one.
    pub(super) id: Option<Box<RawValue>>,
    /// The candidate's score; `None` if it cannot be scored.
    pub(super) score: Option<f32>,
    /// Why it has no score.
    pub(super) reason: Option<Reason>,
    /// The text, if it is returned or compared again.
    pub(super) text: Option<Box<str>>,
    pub(super) data: Option<Box<RawValue>>,
    /// The optional fields of the result.
    pub(super) more: Option<Box<More>>,
}

/// Optional fields of a result: duplicates, liked text, words, opposites, and whether it is
/// related.
#[derive(Debug, Serialize)]
pub(super) struct More {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) duplicates: Vec<Folded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) like: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) words: Option<Vec<WordShare>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) opposes: Option<Oppositions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) related: Option<bool>,
}

/// A candidate that is nearly the same as a better one.
#[derive(Debug, Serialize)]
pub(super) struct Folded {
    pub(super) index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Box<RawValue>>,
    pub(super) score: f32,
    pub(super) similarity: f32,
}

#[derive(Serialize)]
struct Ranked<'r> {
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r RawValue>,
    score: f32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unscored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'r RawValue>,
    #[serde(flatten)]
    more: Option<&'r More>,
}

impl Held {
    /// Best first, equal scores by index; unscored candidates last.
    fn order(&self, other: &Self) -> Ordering {
        let scores = match (self.score, other.score) {
            (Some(one), Some(another)) => another.total_cmp(&one),
            (one, another) => another.is_some().cmp(&one.is_some()),
        };
        scores.then_with(|| self.index.cmp(&other.index))
    }

    fn bytes(&self) -> usize {
        let written = [&self.id, &self.data].into_iter().flatten().map(|value| value.get().len());
        size_of::<Self>() + written.sum::<usize>() + self.text.as_ref().map_or(0, |text| text.len())
    }

    pub(super) fn write(&self, with_text: bool, answer: &mut Vec<u8>) {
        let ranked = Ranked {
            index: self.index,
            id: self.id.as_deref(),
            score: self.score.unwrap_or(0.0),
            unscored: self.score.is_none(),
            reason: self.reason,
            text: self.text.as_deref().filter(|_| with_text),
            data: self.data.as_deref(),
            more: self.more.as_deref(),
        };
        write(answer, &ranked);
    }
}

#[derive(Debug)]
pub(super) struct Best {
    most: usize,
    least: Option<f32>,
    /// The score that a candidate must exceed, once there are enough.
    worst: Option<f32>,
    held: Vec<Held>,
    bytes: usize,
    memory: Growing,
    /// The results that are not written yet, once all candidates are known.
    results: Option<vec::IntoIter<Held>>,
    /// Whether the summary line was written.
    pub(super) is_told: bool,
    pub(super) candidates: u64,
    pub(super) excluded: u64,
    pub(super) unscored: u64,
    pub(super) truncated: u64,
    pub(super) failed: u64,
    pub(super) query_truncated: bool,
    pub(super) query_known: Option<f32>,
}

impl Best {
    pub(super) fn new(most: usize, least: Option<f32>, memory: Growing) -> Self {
        Self {
            most,
            least,
            worst: None,
            held: Vec::new(),
            bytes: 0,
            memory,
            results: None,
            is_told: false,
            candidates: 0,
            excluded: 0,
            unscored: 0,
            truncated: 0,
            failed: 0,
            query_truncated: false,
            query_known: None,
        }
    }

    /// The score that a candidate needs.
    pub(super) fn floor(&self) -> Option<f32> {
        self.worst.or(self.least)
    }

    /// Adds candidates; refuses results that take more memory than the limit.
    pub(super) fn take(&mut self, more: Vec<Held>) -> Result<()> {
        self.bytes += more.iter().map(Held::bytes).sum::<usize>();
        self.held.extend(more);
        if self.held.len() >= self.most.saturating_mul(2).max(self.most.saturating_add(SURPLUS)) {
            self.leave_out();
        }
        if self.memory.resize(self.bytes).is_ok() {
            return Ok(());
        }
        self.leave_out();
        self.memory.resize(self.bytes)
    }

    fn leave_out(&mut self) {
        if self.held.len() > self.most {
            let last = self.most.saturating_sub(1);
            let (_, worst, _) = self.held.select_nth_unstable_by(last, Held::order);
            self.worst = worst.score.or(self.worst);
            self.held.truncate(self.most);
            self.bytes = self.held.iter().map(Held::bytes).sum();
        }
    }

    /// Removes and returns all stored candidates, best first; call it after the last line.
    pub(super) fn take_out(&mut self) -> Vec<Held> {
        self.leave_out();
        self.held.sort_unstable_by(Held::order);
        std::mem::take(&mut self.held)
    }

    pub(super) fn tell(&mut self, results: Vec<Held>) {
        self.results = Some(results.into_iter());
    }

    /// The next result after the last line: of the given ones, or of the best without the first
    /// `passed_over`.
    pub(super) fn next(&mut self, passed_over: usize) -> Option<Held> {
        if self.results.is_none() {
            let mut results = self.take_out();
            results.drain(..passed_over.min(results.len()));
            self.tell(results);
        }
        let next = self.results.as_mut().and_then(Iterator::next);
        if next.is_none() {
            self.results = Some(Vec::new().into_iter());
            // Shrinking always succeeds.
            let _ = self.memory.resize(0);
        }
        next
    }
}
