//! Traces: the trace that a request belongs to, and a span of the request for a collector.
//!
//! Only builds with the feature `otlp` export spans. In other builds the same names exist, with
//! spans that record nothing, so that no code outside this folder depends on the feature.

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
mod unseen;

use std::fmt;

use axum::http::{HeaderMap, HeaderName, StatusCode};
#[cfg(feature = "otlp")]
pub(crate) use otlp::{Span, Tracer, check_endpoint};
#[cfg(not(feature = "otlp"))]
pub(crate) use unseen::{Span, Tracer, check_endpoint};

use crate::http::observe::streams::StreamEnd;

/// The attributes of a span when its request is answered: neither texts nor headers.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "spans that nobody sees read nothing")
)]
pub(crate) struct Answered<'a> {
    pub id: &'a str,
    pub status: StatusCode,
    pub code: Option<&'static str>,
    pub stream: Option<StreamEnd>,
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Length of the header in the known version.
const LENGTH: usize = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".len();
const SAMPLED: u8 = 1;

/// The id of a trace; shown as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub u128);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The calling service's span, from the header `traceparent` (W3C Trace Context). `tracestate` is
/// for services that call others; it is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    pub trace: TraceId,
    pub span: u64,
    pub sampled: bool,
}

impl Parent {
    /// The parent span named by a request; `None` if the header is repeated or invalid.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (first, second) = (values.next()?, values.next());
        if second.is_some() { None } else { Self::read(first.as_bytes()) }
    }

    /// Reads the header. Later versions begin as the first does and may continue after a dash.
    pub fn read(header: &[u8]) -> Option<Self> {
        let (known, more) = header.split_at_checked(LENGTH)?;
        let mut fields = known.split(|&byte| byte == b'-');
        let mut field = |digits| hexadecimal(fields.next()?, digits);
        let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let ends = more.is_empty() || (version > 0 && more.starts_with(b"-"));
        if version == 0xff || !ends || trace == 0 || span == 0 {
            return None;
        }
        let sampled = u8::try_from(flags).ok()? & SAMPLED != 0;
        Some(Self { trace: TraceId(trace), span: u64::try_from(span).ok()?, sampled })
    }
}

/// A number of exactly that many digits; capital letters are not valid here.
fn hexadecimal(text: &[u8], digits: usize) -> Option<u128> {
    let digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let valid = text.len() == digits && text.iter().all(digit);
    if valid { u128::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok() } else { None }
}
