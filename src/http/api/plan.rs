//! How much work a question is, before it is answered: what would certainly be late is refused.

use std::time::Duration;

use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::observe::request_log::Facts;
use crate::http::request::query::{MULTIPLICATIONS_PER_NANO, Resolved, estimate};
use crate::http::work::pool;

/// How many times the time that all threads have until the deadline a question may be estimated to
/// take. Estimates are made for a common core and hold within a factor of 2 either way for words as
/// they are written; so what is estimated at less may be in time on a fast core with nothing else to
/// do, and what is estimated at more would be late the next time as well, and is refused.
pub(crate) const SLACK: u64 = 2;

/// A question that can be answered, and how much work that is.
pub struct Plan {
    pub resolved: Resolved,
    /// Items of the list that makes it long.
    pub items: usize,
    /// Estimated nanoseconds.
    pub(super) nanos: u64,
    /// Estimated bytes of the answer.
    pub(super) answer_bytes: usize,
}

impl Plan {
    /// Weighs a question of `items` items with texts of so many bytes, or refuses one that would
    /// certainly be late.
    pub fn new(
        resolved: Resolved,
        items: usize,
        bytes: usize,
        multiplications: u64,
        app: &App,
    ) -> Result<Self, ApiError> {
        Self::at_least(resolved, items, bytes, [multiplications; 2], app)
    }

    /// Weighs a question that may turn out to be less work: the first number of multiplications is
    /// certain, the second the most.
    pub fn at_least(
        resolved: Resolved,
        items: usize,
        bytes: usize,
        [least, most]: [u64; 2],
        app: &App,
    ) -> Result<Self, ApiError> {
        let deadline_ms = app.settings.compute_deadline_ms;
        let deadline = Duration::from_millis(deadline_ms).as_nanos() as u64;
        let threads = app.compute.threads().min(items).max(1) as u64;
        let time = deadline.saturating_mul(threads);
        let certain = estimate(bytes, least);
        if certain / SLACK > time {
            let each = (certain / items.max(1) as u64).max(1);
            // One thread computes an item, however many there are.
            let batch = match time / each {
                largest if each <= deadline => {
                    format!("the largest batch that could is about {largest}")
                }
                _ => "not even one could".to_owned(),
            };
            let method = resolved.method_name();
            let detail = format!(
                "{method} over {items} items of this length cannot be done in {deadline_ms} ms; {batch}"
            );
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { resolved, items, nanos: estimate(bytes, most), answer_bytes: 0 })
    }

    /// Notes the estimated bytes of the answer, or refuses a question with a larger answer than any
    /// may have; `pointer` names the list that makes it long.
    pub fn answering(self, bytes: usize, pointer: &str, app: &App) -> Result<Self, ApiError> {
        app.unsent.check(bytes, self.items, pointer)?;
        Ok(Self { answer_bytes: bytes, ..self })
    }

    /// Notes that the answer takes so many multiplications more, on one thread; or refuses a question
    /// that would certainly be late by them.
    pub(crate) fn heavier(self, multiplications: u64, app: &App) -> Result<Self, ApiError> {
        let more = multiplications / MULTIPLICATIONS_PER_NANO;
        let deadline_ms = app.settings.compute_deadline_ms;
        if u128::from(more / SLACK) > Duration::from_millis(deadline_ms).as_nanos() {
            let detail = format!("texts of this length cannot be explained in {deadline_ms} ms");
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { nanos: self.nanos.saturating_add(more), ..self })
    }

    /// Notes that the answer takes so many bytes more; see [`Plan::answering`].
    pub(crate) fn longer(self, bytes: usize, pointer: &str, app: &App) -> Result<Self, ApiError> {
        let bytes = self.answer_bytes.saturating_add(bytes);
        self.answering(bytes, pointer, app)
    }

    /// Notes what is asked.
    pub(super) fn note(&self, facts: &Facts) {
        let resolved = &self.resolved;
        facts.asks(&resolved.model.name, resolved.listed_method(), Some(self.items));
    }

    /// How many items make one part of the answer.
    pub(crate) fn per_part(&self) -> usize {
        pool::items_per_part(self.items, self.nanos)
    }
}
