//! Connections that end before everything asked on them is answered and read: counted by their
//! reason, and told to the log. How a connection finds out is not known here.

use std::net::SocketAddr;
use std::sync::Arc;

use metrics::Counter;

use crate::http::observe::budget::{Budget, Kind};

/// Why a connection ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// No complete head of a request came in time.
    HeaderTimeout,
    /// A request's body did not come in time.
    BodyTimeout,
    /// The client did not read its answer fast enough.
    WriteTimeout,
    /// The client went away in the middle of a request or an answer.
    ClientGone,
    /// What came was no head of a request.
    InvalidHead,
}

impl EndReason {
    pub const ALL: [Self; 5] = [
        Self::HeaderTimeout,
        Self::BodyTimeout,
        Self::WriteTimeout,
        Self::ClientGone,
        Self::InvalidHead,
    ];

    /// The label of its counter.
    pub fn name(self) -> &'static str {
        match self {
            Self::HeaderTimeout => "header_timeout",
            Self::BodyTimeout => "body_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::ClientGone => "client_gone",
            Self::InvalidHead => "invalid_head",
        }
    }

    /// The setting that decided, if one did.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::HeaderTimeout => Some("header_timeout_s"),
            Self::BodyTimeout => Some("body_timeout_s"),
            Self::WriteTimeout => Some("write_timeout_s"),
            Self::ClientGone | Self::InvalidHead => None,
        }
    }
}

/// Where early ends are counted and told.
#[derive(Clone)]
pub struct EarlyEnds(Arc<Inner>);

struct Inner {
    counters: [Counter; 5],
    budget: Arc<Budget>,
}

impl EarlyEnds {
    /// Counts by the counters of each reason, and tells within a budget of lines.
    pub fn new(counter: impl FnMut(EndReason) -> Counter, budget: Arc<Budget>) -> Self {
        Self(Arc::new(Inner { counters: EndReason::ALL.map(counter), budget }))
    }

    pub fn count(&self, reason: EndReason) {
        for (counter, known) in self.0.counters.iter().zip(EndReason::ALL) {
            if known == reason {
                counter.increment(1);
            }
        }
    }

    /// Counts one of which nothing else tells the log.
    pub(crate) fn tell(&self, reason: EndReason, peer: SocketAddr) {
        self.count(reason);
        if self.0.budget.admits(Kind::Connection) {
            let (setting, reason) = (reason.setting(), reason.name());
            tracing::info!(%peer, reason, setting, "connection ended early");
        }
    }
}
