//! How streams of lines end: counted, and told in the log where they did not end well. An answer's
//! head is out long before its end, so its status alone says nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderValue, Method as Verb};
use tokio::sync::watch;

use crate::http::observe::budget::{Budget, Kind};
use crate::http::observe::series::Counter;

/// Declares the outcomes with the labels of their counters.
macro_rules! outcomes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// How a stream ended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Outcome { $($(#[$doc])* $variant,)+ }

        impl Outcome {
            /// Every outcome.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The label of its counter.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

outcomes! {
    /// Every line was read, and the connection took the whole answer.
    Complete = "complete",
    /// The client was gone before the end of its answer.
    ClientGone = "client_gone",
    /// The client read too slowly.
    SlowReader = "slow_reader",
    /// The client sent too slowly.
    SlowSender = "slow_sender",
    /// The body broke off, or is not framed as HTTP demands.
    BrokenBody = "broken_body",
    /// More of the answer waited for the client than may.
    SpoolFull = "spool_full",
    /// The question of the stream cannot be answered.
    Refused = "refused",
    Draining = "draining",
    Failed = "failed",
}

/// A stream's request, as counters and log call it.
#[derive(Debug, Clone)]
pub(crate) struct RequestName {
    pub id: HeaderValue,
    pub route: Arc<str>,
    pub verb: Verb,
}

/// Where the stream of an answer learns what its request is called: an extension of the answer, which
/// says that the answer is counted when it ends, not when it begins.
#[derive(Debug, Clone)]
pub(crate) struct Naming(watch::Sender<Option<RequestName>>);

impl Naming {
    /// A name that is sent later, and its receiver.
    pub(crate) fn new() -> (Self, Named) {
        let (teller, name) = watch::channel(None);
        (Self(teller), Named(name))
    }

    pub(crate) fn tell(&self, name: RequestName) {
        self.0.send_replace(Some(name));
    }
}

/// Receives the name of a request.
#[derive(Debug)]
pub(crate) struct Named(watch::Receiver<Option<RequestName>>);

impl Named {
    /// Waits until the name is known, or the request ended without one.
    pub(crate) async fn known(&mut self) {
        // Without an answer the name is never sent.
        let _ = self.0.wait_for(Option::is_some).await;
    }

    pub(crate) fn name(&self) -> Option<RequestName> {
        self.0.borrow().clone()
    }
}

pub(super) struct StreamCounters(Vec<Counter>);

impl StreamCounters {
    /// One counter for each outcome, by its label.
    pub(super) fn new(counter: impl Fn(&'static str) -> Counter) -> Self {
        Self(Outcome::ALL.iter().map(|outcome| counter(outcome.name())).collect())
    }

    pub(super) fn count(&self, outcome: Outcome) {
        if let Some(counter) = self.0.get(outcome as usize) {
            counter.increment(1);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The head of a request did not arrive in time.
    HeaderTimeout,
    /// A request's body did not come in time.
    BodyTimeout,
    /// The client did not read its answer fast enough.
    WriteTimeout,
    /// The client went away in the middle of a request or an answer.
    ClientGone,
    /// The bytes are no head of a request.
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

/// Counts and logs connections that end early.
#[derive(Clone)]
pub struct EarlyEnds(Arc<Inner>);

struct Inner {
    counters: [Counter; 5],
    budget: Arc<Budget>,
}

impl EarlyEnds {
    /// Counts ended connections by reason, and logs them within a budget.
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

    /// Counts an end that nothing else logs.
    pub(crate) fn tell(&self, reason: EndReason, peer: SocketAddr) {
        self.count(reason);
        if self.0.budget.admits(Kind::Connection, Instant::now()) {
            let (setting, reason) = (reason.setting(), reason.name());
            tracing::info!(%peer, reason, setting, "connection ended early");
        }
    }
}
