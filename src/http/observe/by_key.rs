//! Who asks: requests counted by the id of their key. Ids come from the operator's file, but a file
//! may hold thousands, so only the first have series of their own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use metrics::Counter;

/// Ids that get series of their own.
pub(crate) const MOST: usize = 100;
/// The label of all further ids.
pub(crate) const OTHER: &str = "other";
/// The label of requests that brought no key that is let in.
pub(crate) const NONE: &str = "none";

/// How requests of a key end, as the label has it.
const OUTCOMES: [&str; 4] = ["answered", "refused", "rate_limited", "failed"];

/// A key's id, and the counters of its requests.
#[derive(Debug)]
pub struct KeyUse {
    /// The id, if a key was presented that is let in.
    id: Option<String>,
    outcomes: [Counter; 4],
}

impl KeyUse {
    /// The use of the key of that id; `counter` makes the counter of an outcome.
    pub(super) fn new(id: Option<&str>, counter: impl FnMut(&'static str) -> Counter) -> Self {
        Self { id: id.map(str::to_owned), outcomes: OUTCOMES.map(counter) }
    }

    /// The id, if a key was presented that is let in.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Counts a request by the status of its answer.
    pub(crate) fn count(&self, status: StatusCode) {
        let [answered, refused, rate_limited, failed] = &self.outcomes;
        let outcome = match status {
            StatusCode::TOO_MANY_REQUESTS => rate_limited,
            status if status.is_client_error() => refused,
            status if status.is_server_error() => failed,
            _ => answered,
        };
        outcome.increment(1);
    }
}

/// The labels that were given out.
#[derive(Debug, Default)]
pub(super) struct Labels(Mutex<HashSet<String>>);

impl Labels {
    /// The label of an id: itself for the first ids, whatever key files they stood in.
    pub(super) fn of(&self, id: &str) -> String {
        let mut labels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !labels.contains(id) {
            if labels.len() >= MOST {
                return OTHER.to_owned();
            }
            labels.insert(id.to_owned());
        }
        id.to_owned()
    }
}
