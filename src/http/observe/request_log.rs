//! The line that the log has of a request: who asked, what, how much, and what came of it. Neither
//! texts nor headers nor paths that match no route.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::MatchedPath;
use axum::http::{HeaderValue, Method as Verb, Request, StatusCode};

use crate::http::error::{ApiError, Code};
use crate::http::observe::budget::{Budget, Kind};
use crate::http::observe::metrics::{KeyUse, UNMATCHED};
use crate::http::observe::streams::{self, LineRefusals, StreamEnd};
use crate::http::observe::trace::{Answered, Span};

/// Routes of health checks, which are called often: their answers are logged at debug.
const QUIET: [&str; 6] = ["/health", "/healthz", "/livez", "/ready", "/readyz", "/metrics"];
/// Orders of the operator, which are always logged; those of others are refused like any request.
const ORDERS: [&str; 2] = ["/-/reload", "/-/backup"];

/// Which requests are logged at level info.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedRequests {
    All,
    Refused,
    /// Only those that met a defect.
    None,
}

/// The name of a request's route.
#[derive(Debug)]
pub(crate) enum Matched {
    Route(MatchedPath),
    /// The path of a request that the router did not see.
    Path(Arc<str>),
}

impl Matched {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Route(route) => route.as_str(),
            Self::Path(path) => path,
        }
    }
}

/// A request in progress: the data for its line in the log.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    pub id: HeaderValue,
    pub peer: Option<SocketAddr>,
    pub matched: Option<Matched>,
    pub verb: Verb,
    pub facts: Arc<Facts>,
    pub began: Instant,
    pub span: Span,
}

impl RequestRecord {
    pub(crate) fn route(&self) -> &str {
        self.matched.as_ref().map_or(UNMATCHED, Matched::as_str)
    }

    pub(crate) fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    /// Logs how the stream that answered with this status ended, and ends the span.
    pub(crate) fn end(self, log: &RequestLog, status: StatusCode, end: StreamEnd) {
        let line = Line { request: &self, ended: Instant::now(), stream: Some(end) };
        log.tell(&line, &Outcome::Answered(status));
        let id = self.id.to_str().unwrap_or_default();
        self.span.end(&Answered { id, status, code: None, stream: Some(end) });
    }
}

/// An ended request, with the stream that answered it.
pub(crate) struct Line<'a> {
    pub request: &'a RequestRecord,
    pub ended: Instant,
    pub stream: Option<StreamEnd>,
}

pub(crate) enum Outcome<'a> {
    Answered(StatusCode),
    Refused(StatusCode, &'a ApiError),
    Left,
}

pub(crate) struct RequestLog {
    logged: LoggedRequests,
    budget: Arc<Budget>,
}

macro_rules! line {
    ($level:ident, $line:expr, $status:expr, $code:expr, $detail:expr, $message:expr) => {
        tracing::$level!(
            request_id = $line.request.id(),
            trace_id = $line.request.span.trace().map(tracing::field::display),
            key = $line.request.facts.caller().and_then(|caller| caller.id()),
            peer = $line.request.peer.map(tracing::field::display),
            route = $line.request.route(),
            method = %$line.request.verb,
            collection = $line.request.facts.collection(),
            model = $line.request.facts.asked().map(|asked| &*asked.model),
            scoring_method = $line.request.facts.asked().map(|asked| &*asked.method),
            items = $line.items(),
            lines = $line.stream.map(|stream| stream.lines),
            answered = $line.stream.map(|stream| stream.answered),
            body_bytes = $line.body_bytes(),
            answer_bytes = $line.stream.map(|stream| stream.answer_bytes),
            status = $status.map(|status| status.as_u16()),
            took_ms = milliseconds($line.ended.duration_since($line.request.began)),
            computed_ms = $line.stream.map(|stream| milliseconds(stream.computed)),
            outcome = $line.stream.map(|stream| stream.outcome.name()),
            codes = $line.codes().map(tracing::field::display),
            code = $code,
            detail = $detail,
            "{}", $message
        )
    };
}

/// To the microsecond, without the digits of a binary fraction.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

impl Line<'_> {
    fn items(&self) -> Option<u64> {
        let items = self.request.facts.asked().and_then(|asked| asked.items);
        self.stream.map(|stream| stream.items).or(items.map(|items| items as u64))
    }

    fn codes(&self) -> Option<LineRefusals> {
        self.stream.map(|stream| stream.refusals).filter(|refusals| !refusals.is_empty())
    }

    fn body_bytes(&self) -> Option<u64> {
        let bytes = self.request.facts.body_bytes().map(|bytes| bytes as u64);
        self.stream.map(|stream| stream.body_bytes).or(bytes)
    }
}

impl RequestLog {
    pub(crate) fn new(logged: LoggedRequests, budget: Arc<Budget>) -> Self {
        Self { logged, budget }
    }

    pub(crate) fn report(&self) {
        self.budget.report(Instant::now());
    }

    /// Logs a request at the level of its outcome; at debug if it is excluded or too many come at
    /// once.
    pub(crate) fn tell(&self, line: &Line<'_>, outcome: &Outcome<'_>) {
        let route = line.request.route();
        let order = ORDERS.contains(&route);
        match outcome {
            Outcome::Answered(status) => {
                let told = self.logged == LoggedRequests::All && !QUIET.contains(&route);
                let status = Some(status);
                // A stream that did not end well is always logged.
                match line.stream.map(|stream| stream.outcome) {
                    None | Some(streams::Outcome::Complete) => {}
                    Some(streams::Outcome::Failed) => {
                        return line!(error, line, status, "", "", "stream failed");
                    }
                    Some(_) => return line!(info, line, status, "", "", "stream ended early"),
                }
                match order || (told && self.budget.admits(Kind::Answered, line.ended)) {
                    true => line!(info, line, status, "", "", "answered"),
                    false => line!(debug, line, status, "", "", "answered"),
                }
            }
            Outcome::Refused(status, error) => self.refused(line, *status, error, order),
            Outcome::Left => {
                let status = None::<StatusCode>;
                let told = self.logged != LoggedRequests::None;
                match order || (told && self.budget.admits(Kind::Refused, line.ended)) {
                    true => line!(info, line, status, "", "", "client gone"),
                    false => line!(debug, line, status, "", "", "client gone"),
                }
            }
        }
    }

    fn refused(&self, line: &Line<'_>, status: StatusCode, error: &ApiError, order: bool) {
        let (code, status) = (error.code.name(), Some(status));
        let detail = error.cause.as_deref().map(Cow::Borrowed);
        let detail = detail.unwrap_or_else(|| error.detail.to_string().into());
        let failed = matches!(error.code, Code::Internal | Code::NonFiniteScore);
        let kind = match error.code {
            _ if failed => Kind::Failed,
            Code::Overloaded | Code::RateLimited | Code::DeadlineExceeded => Kind::Shed,
            _ => Kind::Refused,
        };
        let order = order && !matches!(error.code, Code::Unauthorized | Code::Forbidden);
        let told = failed || self.logged != LoggedRequests::None;
        if !(order || (told && self.budget.admits(kind, line.ended))) {
            line!(debug, line, status, code, &*detail, "refused");
        } else if failed {
            line!(error, line, status, code, &*detail, "failed");
        } else if error.code == Code::DeadlineExceeded
            || error.code.status() == StatusCode::INSUFFICIENT_STORAGE
        {
            line!(warn, line, status, code, &*detail, "refused");
        } else {
            line!(info, line, status, code, &*detail, "refused");
        }
    }
}

/// Facts about a request that handlers record, as a request extension. The first value of each
/// stays.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    caller: OnceLock<Arc<KeyUse>>,
    body_bytes: OnceLock<usize>,
    asked: OnceLock<Asked>,
    collection: OnceLock<Box<str>>,
    ranks_collection: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Asked {
    pub model: Arc<str>,
    pub method: Cow<'static, str>,
    /// Texts, pairs or candidates; `None` for a stream.
    pub items: Option<usize>,
}

impl Facts {
    pub(crate) fn from_request<B>(request: &Request<B>) -> Arc<Self> {
        request.extensions().get::<Arc<Self>>().cloned().unwrap_or_default()
    }

    /// Records the key of the request, or that it needed a key and had none.
    pub(crate) fn is_from(&self, caller: &Arc<KeyUse>) {
        let _ = self.caller.set(Arc::clone(caller));
    }

    pub(crate) fn brings(&self, bytes: usize) {
        let _ = self.body_bytes.set(bytes);
    }

    pub(crate) fn asks(&self, model: &Arc<str>, method: Cow<'static, str>, items: Option<usize>) {
        let _ = self.asked.set(Asked { model: Arc::clone(model), method, items });
    }

    pub(crate) fn names(&self, collection: &str) {
        if cognate_collections::check_name(collection).is_ok() {
            let _ = self.collection.set(collection.into());
        }
    }

    pub(crate) fn note_ranked_collection(&self, name: &str) {
        self.names(name);
        self.ranks_collection.store(true, Ordering::Relaxed);
    }

    pub(crate) fn collection(&self) -> Option<&str> {
        self.collection.get().map(AsRef::as_ref)
    }

    pub(crate) fn has_ranked_collection(&self) -> bool {
        self.ranks_collection.load(Ordering::Relaxed)
    }

    pub(crate) fn caller(&self) -> Option<&KeyUse> {
        self.caller.get().map(Arc::as_ref)
    }

    pub(crate) fn body_bytes(&self) -> Option<usize> {
        self.body_bytes.get().copied()
    }

    pub(crate) fn asked(&self) -> Option<&Asked> {
        self.asked.get()
    }
}

/// A source of request ids: a random part for the process, and a number.
pub struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Self {
        let mut seed = [0; 8];
        // A failure is ignored: ids may then repeat between processes, which does no harm to the log.
        let _ = getrandom::fill(&mut seed);
        Self { process: u64::from_le_bytes(seed), next: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Written by hand: `format!` would take longer than the rest.
        let mut digits = [0; 24];
        let (process, count) = digits.split_at_mut(16);
        hexadecimal(self.process, process);
        // Ids of eight digits repeat after four thousand million requests of one process.
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
