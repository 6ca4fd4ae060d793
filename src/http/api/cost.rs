//! Estimates the work of a question and the length of its answer, before either is begun.

use std::time::Duration;

use crate::http::app::App;
use crate::http::error::{ApiError, Code, Result};
use crate::http::request::query::{MULTIPLICATIONS_PER_NANO, Resolved, estimate};
use crate::http::work::pool;

/// Bytes of an answer besides its lists.
pub(crate) const ANSWER_HEAD: usize = 256;
/// Bytes of an index in an answer, with its comma.
pub(crate) const INDEX_BYTES: usize = 6;
/// Most bytes of a score or another number in an answer, with its comma.
pub(crate) const NUMBER_BYTES: usize = 13;

/// A question is refused if its estimate exceeds this many times the time that all threads have
/// until the deadline. Estimates are made for a common core and hold within a factor of 2 either
/// way for words as they are written: a question below this may be in time on a fast idle core, and
/// one above would be late at a repetition too.
pub(crate) const SLACK: u64 = 2;

#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub items: usize,
    pub(crate) nanos: u64,
    pub(crate) answer_bytes: usize,
}

impl Cost {
    /// Weighs a question of `items` items, or refuses one that would certainly be late.
    pub fn new(
        resolved: &Resolved,
        items: usize,
        bytes: usize,
        [least, most]: [u64; 2],
        app: &App,
    ) -> Result<Self> {
        let deadline_ms = app.settings.compute_deadline_ms;
        let deadline = Duration::from_millis(deadline_ms).as_nanos() as u64;
        let threads = app.compute.threads().min(items).max(1) as u64;
        let time = deadline.saturating_mul(threads);
        let certain = estimate(bytes, least);
        if certain / SLACK > time {
            let each = (certain / items.max(1) as u64).max(1);
            // One thread computes an item.
            let batch = match time / each {
                largest if each <= deadline => {
                    format!("the largest batch that could is about {largest}")
                }
                _ => "not even one could".to_owned(),
            };
            let method = resolved.method_name();
            let detail = format!(
                "{method} over {items} items of this length cannot be done in {deadline_ms} ms \
                 (setting `compute_deadline_ms`); {batch}"
            );
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { items, nanos: estimate(bytes, most), answer_bytes: 0 })
    }

    /// Sets the estimated bytes of the answer, or refuses a question whose answer exceeds the
    /// limit; `pointer` names the list that makes it long.
    pub(crate) fn answering(self, bytes: usize, pointer: &'static str, app: &App) -> Result<Self> {
        app.unsent.check(bytes, self.items, pointer)?;
        Ok(Self { answer_bytes: bytes, ..self })
    }

    pub(crate) fn longer(self, bytes: usize, pointer: &'static str, app: &App) -> Result<Self> {
        self.answering(self.answer_bytes.saturating_add(bytes), pointer, app)
    }

    pub(crate) fn heavier(self, multiplications: u64, app: &App) -> Result<Self> {
        let more = multiplications / MULTIPLICATIONS_PER_NANO;
        let deadline_ms = app.settings.compute_deadline_ms;
        if u128::from(more / SLACK) > Duration::from_millis(deadline_ms).as_nanos() {
            let detail = format!("texts of this length cannot be explained in {deadline_ms} ms");
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { nanos: self.nanos.saturating_add(more), ..self })
    }

    pub(crate) fn per_part(&self) -> usize {
        pool::items_per_part(self.items, self.nanos)
    }
}

/// Refuses a list that is empty, or longer than a setting allows.
pub(crate) fn check_length(
    pointer: &'static str,
    what: &str,
    length: usize,
    (setting, limit): (&str, usize),
) -> Result<()> {
    match length {
        0 => Err(ApiError::at(Code::EmptyList, pointer, format!("there are no {what}"))),
        _ if length > limit => {
            let error = ApiError::beyond(Code::TooManyItems, pointer, what, limit, length);
            let detail = format!("{} (setting `{setting}`)", error.detail);
            Err(ApiError { detail: detail.into(), ..error })
        }
        _ => Ok(()),
    }
}
