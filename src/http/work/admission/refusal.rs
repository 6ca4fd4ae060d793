//! What requests are told for which there are no units.

use crate::http::error::{ApiError, Bottleneck};

/// Why there are no units for a request, and why it does not wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It may not wait.
    Busy,
    /// As many wait as may.
    Crowded,
    /// It would have to wait for too long.
    Slow,
    /// It waited for too long.
    Late,
}

impl Reason {
    /// The refusal of a request for which its client has no share left, or there is no unit left at all.
    pub(super) fn refusal(self, of_share: bool) -> ApiError {
        let detail = match (self, of_share) {
            (Self::Busy, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`); ask again, or another server"
            }
            (Self::Crowded, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`), and as many requests wait for them as may (setting \
                 `compute_queue`); ask again, or another server"
            }
            (Self::Slow, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`), and those that wait already will take longer than a \
                 request may wait (setting `admission_wait_ms`); ask again, or another server"
            }
            (Self::Late, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`), and they were not done while the request waited (setting \
                 `admission_wait_ms`); ask again, or another server"
            }
            (Self::Busy, true) => {
                "this client has as many items in progress as one may (settings `admission_units` \
                 and `client_share`); ask again once some are answered"
            }
            (Self::Crowded, true) => {
                "this client has as many requests that wait for others as one may (settings \
                 `compute_queue` and `client_share`); ask again once some are answered"
            }
            (Self::Slow, true) => {
                "this client has as many items in progress as one may (settings `admission_units` \
                 and `client_share`), and those of it that wait already will take longer than a \
                 request may wait (setting `admission_wait_ms`); ask again once some are answered"
            }
            (Self::Late, true) => {
                "this client has as many items in progress as one may (settings `admission_units` \
                 and `client_share`), and they were not done while the request waited (setting \
                 `admission_wait_ms`); ask again once some are answered"
            }
        };
        ApiError::overloaded(Bottleneck::Admission, detail)
    }
}
