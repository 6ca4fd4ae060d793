//! Traces: the one that a request belongs to, and a span of the request for who collects spans.
//!
//! Spans are exported only by builds with the feature `otlp`. In other builds the same names stand
//! for the same, but for spans that nobody sees, so that nothing outside this folder needs to know.

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod otlp;
mod parent;
#[cfg(not(feature = "otlp"))]
mod unseen;

use axum::http::StatusCode;
#[cfg(feature = "otlp")]
pub(crate) use otlp::Span;
#[cfg(feature = "otlp")]
pub(crate) use otlp::Tracer;
#[cfg(feature = "otlp")]
pub(crate) use otlp::check_endpoint;
pub use parent::{Parent, TraceId};
#[cfg(not(feature = "otlp"))]
pub(crate) use unseen::Span;
#[cfg(not(feature = "otlp"))]
pub(crate) use unseen::Tracer;
#[cfg(not(feature = "otlp"))]
pub(crate) use unseen::check_endpoint;

/// What a span tells when its request is answered. Neither texts nor headers.
#[derive(Debug)]
pub struct Answered<'a> {
    pub id: &'a str,
    /// The status of the answer.
    pub status: StatusCode,
    /// The code of the refusal, if it is one.
    pub code: Option<&'static str>,
}
