//! The errors of requests: one table of codes, and the problem document that is sent (RFC 9457). A
//! detail never repeats a text, a key, a path or the message of a panic.

mod code;
mod fault;
pub(crate) mod form;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
pub use code::Code;
pub use fault::{Detail, Fault, Pointer, Segment};
pub(crate) use form::{MessageError, OpenAiError, TeiError, TextError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::dialect::Dialect;
use crate::http::error::form::Form;

/// What a request comes to, or why it is refused.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Most entries of `errors` in one document.
pub(crate) const MAX_ITEMS: usize = 16;

/// The body of every refusal: RFC 9457, `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem<'e> {
    /// A stable URI that names the kind of problem.
    #[serde(rename = "type")]
    kind: String,
    /// A short summary of the code.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// Stable machine-readable error code.
    code: Code,
    /// What is wrong with this request, in a sentence.
    #[schema(value_type = String)]
    detail: &'e Detail,
    /// The request's id, as in the log and in `x-request-id`.
    request_id: &'e str,
    /// The faults and where they stand, at most sixteen.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(max_items = 16)]
    errors: &'e [Fault],
    /// Seconds after which to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    Admission,
    Queue,
    Unsent,
    Streams,
}

impl Bottleneck {
    pub(crate) const ALL: [Self; 4] = [Self::Admission, Self::Queue, Self::Unsent, Self::Streams];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Queue => "queue",
            Self::Unsent => "unsent",
            Self::Streams => "streams",
        }
    }
}

/// An error on its way out. It becomes a `Problem` where the request's id is known.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub code: Code,
    pub detail: Detail,
    pub faults: Vec<Fault>,
    /// Seconds after which the client should retry.
    pub retry_after_s: Option<u32>,
    /// Whether the connection is closed, because not all of the body was read.
    pub close: bool,
    /// The resource that was lacking, if the server is overloaded.
    pub bottleneck: Option<Bottleneck>,
    pub header: Option<Box<(HeaderName, HeaderValue)>>,
    /// Further detail for the log; never sent.
    pub cause: Option<Arc<str>>,
    /// The dialect of the error, if the body decides it; `None`: the route's dialect.
    pub dialect: Option<Dialect>,
}

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<Detail>) -> Self {
        let retry_after_s = match code {
            Code::NotReady | Code::Draining | Code::DatabaseUnavailable => Some(2),
            Code::DeadlineExceeded => Some(1),
            _ => None,
        };
        let detail = detail.into();
        let close = matches!(code, Code::Draining | Code::RequestTimeout | Code::BodyTooLarge);
        Self {
            code,
            detail,
            faults: Vec::new(),
            retry_after_s,
            close,
            bottleneck: None,
            header: None,
            cause: None,
            dialect: None,
        }
    }

    /// An error for lack of room, with one of two times to wait so that the clients do not all
    /// retry at once.
    pub(crate) fn overloaded(bottleneck: Bottleneck, detail: &'static str) -> Self {
        static REFUSED: AtomicU32 = AtomicU32::new(0);
        let turn = REFUSED.fetch_add(1, Ordering::Relaxed);
        Self {
            retry_after_s: Some(1 + turn % 2),
            bottleneck: Some(bottleneck),
            ..Self::new(Code::Overloaded, detail)
        }
    }

    pub(crate) fn at(code: Code, pointer: impl Into<Pointer>, detail: impl Into<Detail>) -> Self {
        Self { faults: vec![Fault::at(code, pointer)], ..Self::new(code, detail) }
    }

    /// An error of exceeding a limit.
    pub(crate) fn beyond(
        code: Code,
        pointer: impl Into<Pointer>,
        what: &str,
        limit: usize,
        actual: usize,
    ) -> Self {
        let detail = format!("{actual} {what}; the limit is {limit}");
        let mut error = Self::at(code, pointer, detail);
        for fault in &mut error.faults {
            fault.limit = Some(limit as u64);
            fault.actual = Some(actual as u64);
        }
        error
    }

    pub(crate) fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { header: Some(Box::new((name, value))), ..self }
    }

    /// A defect; only the log gets the cause.
    pub(crate) fn internal(cause: &str) -> Self {
        let detail = "the server failed; its log says more under this request id";
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, detail) }
    }

    /// A panic; only the log gets the message.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::internal(text.as_deref().unwrap_or("a panic without a message"))
    }

    fn problem<'e>(&'e self, request_id: &'e str) -> Problem<'e> {
        let code = self.code;
        Problem {
            kind: code.uri(),
            title: code.title(),
            status: code.status().as_u16(),
            code,
            detail: &self.detail,
            request_id,
            errors: &self.faults,
            retry_after_s: self.retry_after_s,
        }
    }

    /// This error in the given dialect, unless it has a dialect.
    pub(crate) fn in_dialect(self, dialect: Dialect) -> Self {
        Self { dialect: self.dialect.or(Some(dialect)), ..self }
    }

    /// The answer to the request of that id, in the dialect of its route; `None` if several share
    /// it.
    pub(crate) fn respond(&self, request_id: &str, route: Option<Dialect>) -> Response {
        let form = Form::new(self.dialect.or(route));
        let mut response = Response::new(Body::from(form.body(self, request_id)));
        *response.status_mut() = form.status(self.code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, form.media_type());
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(header) = &self.header {
            let (name, value) = header.as_ref().clone();
            headers.insert(name, value);
        }
        response
    }
}

/// The error itself is in the response's extensions; the outermost layer writes the document.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    /// Every 503 has a time to wait; `overloaded` sets it for lack of room.
    #[test]
    fn every_503_says_how_long_to_wait() {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        for &code in Code::ALL.iter().filter(|code| code.status() == unavailable) {
            let refusal = match code {
                Code::Overloaded => ApiError::overloaded(Bottleneck::Queue, "no room"),
                code => ApiError::new(code, "what is wrong"),
            };
            assert!(refusal.retry_after_s.is_some(), "{code:?}");
        }
    }
}
