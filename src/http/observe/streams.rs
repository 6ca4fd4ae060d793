//! How streams of lines end, and why connections end early. The head of a stream's answer is sent
//! long before its end, so its request is logged and counted at the end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::http::error::Code;
use crate::http::observe::budget::{Budget, Kind};
use crate::http::observe::series::{Counter, named};

named! {
    pub(crate) enum Outcome {
        /// Every line was read, and the connection took the whole answer.
        Complete = "complete",
        /// The client was gone before the end of its answer.
        ClientGone = "client_gone",
        SlowReader = "slow_reader",
        SlowSender = "slow_sender",
        /// The body broke off, or violates HTTP's framing.
        BrokenBody = "broken_body",
        /// More of the answer waited for the client than the limit.
        SpoolFull = "spool_full",
        Refused = "refused",
        Draining = "draining",
        Failed = "failed",
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamEnd {
    pub outcome: Outcome,
    pub lines: u64,
    /// Lines whose answers were written, or that were counted for the end.
    pub answered: u64,
    /// Lines answered without an error, or alerts sent.
    pub items: u64,
    pub body_bytes: u64,
    pub answer_bytes: u64,
    /// The processor time of its jobs.
    pub computed: Duration,
    /// Lines that were answered by an error, the last line included.
    pub refusals: LineRefusals,
}

/// Codes of a stream that are counted separately; the others are counted together.
const MAX_CODES: usize = 4;

/// How many lines of a stream were refused, by the first few codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LineRefusals {
    named: [Option<(Code, u64)>; MAX_CODES],
    others: u64,
}

impl LineRefusals {
    pub(crate) fn count(&mut self, code: Code, lines: u64) {
        let is_its =
            |place: &&mut Option<(Code, u64)>| place.is_none_or(|(known, _)| known == code);
        match self.named.iter_mut().find(is_its) {
            Some(place) => *place = Some((code, place.map_or(0, |(_, count)| count) + lines)),
            None => self.others += lines,
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        more.named.into_iter().flatten().for_each(|(code, lines)| self.count(code, lines));
        self.others += more.others;
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for LineRefusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named.iter().flatten().map(|(code, lines)| (code.name(), *lines));
        let others = (self.others > 0).then_some(("others", self.others));
        for (place, (code, lines)) in named.chain(others).enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{code} {lines}")?;
        }
        Ok(())
    }
}

named! {
    pub enum EndReason {
        HeaderTimeout = "header_timeout",
        BodyTimeout = "body_timeout",
        WriteTimeout = "write_timeout",
        /// The client went away in the middle of a request or an answer.
        ClientGone = "client_gone",
        InvalidHead = "invalid_head",
    }
}

impl EndReason {
    /// Returns the name of the setting that ended the connection, if a setting did.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::HeaderTimeout => Some("header_timeout_s"),
            Self::BodyTimeout => Some("body_timeout_s"),
            Self::WriteTimeout => Some("write_timeout_s"),
            Self::ClientGone | Self::InvalidHead => None,
        }
    }
}

#[derive(Clone)]
pub struct EarlyEnds(Arc<Inner>);

struct Inner {
    /// In the order of the reasons.
    counters: Vec<Counter>,
    budget: Arc<Budget>,
}

impl EarlyEnds {
    /// Counts ended connections by reason, and logs them within a budget.
    pub fn new(counter: impl FnMut(EndReason) -> Counter, budget: Arc<Budget>) -> Self {
        let counters = EndReason::ALL.iter().copied().map(counter).collect();
        Self(Arc::new(Inner { counters, budget }))
    }

    pub fn count(&self, reason: EndReason) {
        if let Some(counter) = self.0.counters.get(reason as usize) {
            counter.increment(1);
        }
    }

    pub(crate) fn tell(&self, reason: EndReason, peer: SocketAddr) {
        self.count(reason);
        if self.0.budget.admits(Kind::Connection, Instant::now()) {
            let (setting, reason) = (reason.setting(), reason.name());
            tracing::info!(%peer, reason, setting, "connection ended early");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_lines_are_counted_by_the_first_codes() {
        let mut refusals = LineRefusals::default();
        assert!(refusals.is_empty());
        refusals.count(Code::EmptyText, 1);
        refusals.count(Code::NotWritten, 256);
        refusals.count(Code::EmptyText, 2);
        assert_eq!(refusals.to_string(), "empty_text 3, not_written 256");
        let mut more = LineRefusals::default();
        for code in [Code::TextTooLong, Code::InvalidField, Code::NotWritten, Code::EmptyList] {
            more.count(code, 1);
        }
        refusals.add(more);
        refusals.add(more);
        let told = "empty_text 3, not_written 258, text_too_long 2, invalid_field 2, others 2";
        assert_eq!(refusals.to_string(), told);
    }
}
