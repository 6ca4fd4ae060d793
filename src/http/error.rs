//! What a request is refused with: one table of codes, and the problem document that is sent
//! (RFC 9457). A detail never repeats a text, a key, a path or the message of a panic.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Place;
use crate::engine::QueryError;

/// Most entries of `errors` in one document.
pub const MOST_ITEMS: usize = 16;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $status:literal $name:literal $title:literal,)+) => {
        /// Why a request is refused. A variant a row of the table that clients are promised.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code { $($(#[$doc])* $variant,)+ }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// What clients switch on.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// In a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// The answer's status.
            pub fn status(self) -> StatusCode {
                let number: u16 = match self { $(Self::$variant => $status,)+ };
                StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    };
}

codes! {
    /// The body is no JSON.
    MalformedJson = 400 "malformed_json" "Malformed JSON",
    /// A field is unknown, missing, given twice or of the wrong type.
    InvalidField = 422 "invalid_field" "Invalid field",
    /// A number does not fit.
    OutOfRange = 422 "out_of_range" "Number out of range",
    /// The body is larger than the limit.
    BodyTooLarge = 413 "body_too_large" "Body too large",
    /// The body's media type is not one this route reads.
    UnsupportedMediaType = 415 "unsupported_media_type" "Unsupported media type",
    /// The body is compressed.
    UnsupportedEncoding = 415 "unsupported_encoding" "Unsupported content encoding",
    /// No key, or a wrong one.
    Unauthorized = 401 "unauthorized" "Unauthorized",
    /// The key may not do this.
    Forbidden = 403 "forbidden" "Forbidden",
    /// No such path.
    NotFound = 404 "not_found" "Not found",
    /// The path has no such method.
    MethodNotAllowed = 405 "method_not_allowed" "Method not allowed",
    /// A list without an item.
    EmptyList = 422 "empty_list" "Empty list",
    /// A text of white space.
    EmptyText = 422 "empty_text" "Empty text",
    /// No word of a text is known, and the request asked for that to be an error.
    AllOov = 422 "all_oov" "No known word",
    /// A text is too long.
    TextTooLong = 422 "text_too_long" "Text too long",
    /// A text has too many tokens.
    TooManyTokens = 422 "too_many_tokens" "Too many tokens",
    /// A list has too many items.
    TooManyItems = 422 "too_many_items" "Too many items",
    /// All texts together have too many tokens.
    TooManyTokensTotal = 422 "too_many_tokens_total" "Too many tokens in all",
    /// No model of that name.
    UnknownModel = 422 "unknown_model" "Unknown model",
    /// No method of that name.
    UnknownMethod = 422 "unknown_method" "Unknown method",
    /// The method has no vector of one text.
    MethodCannotEmbed = 422 "method_cannot_embed" "Method cannot embed",
    /// The method only ranks.
    MethodOnlyRanks = 422 "method_only_ranks" "Method only ranks",
    /// The model has nothing for the method.
    MethodUnavailable = 422 "method_unavailable" "Method unavailable",
    /// The method has its own way of comparing.
    MeasureNotSupported = 422 "measure_not_supported" "Measure not supported",
    /// The model has no threshold for this method and measure.
    NotCalibrated = 422 "not_calibrated" "Not calibrated",
    /// The answer would be too large.
    ResponseTooLarge = 422 "response_too_large" "Response too large",
    /// The work could not be done before any deadline.
    TooMuchWork = 422 "too_much_work" "Too much work",
    /// A model file is not sound; the old one serves on.
    BadModel = 422 "bad_model" "Bad model",
    /// A model file does not fit into memory; the old one serves on.
    ModelTooLarge = 422 "model_too_large" "Model too large",
    /// A score is not a finite number.
    NonFiniteScore = 500 "non_finite_score" "Non-finite score",
    /// A defect.
    Internal = 500 "internal" "Internal error",
    /// More work is in the house than it takes.
    Overloaded = 503 "overloaded" "Overloaded",
    /// The key's quota is used up.
    RateLimited = 429 "rate_limited" "Rate limited",
    /// The models are not loaded yet, or a model file was damaged in place.
    NotReady = 503 "not_ready" "Not ready",
    /// The server is about to stop.
    Draining = 503 "draining" "Draining",
    /// Computing took too long.
    DeadlineExceeded = 503 "deadline_exceeded" "Deadline exceeded",
    /// The body did not arrive in time.
    RequestTimeout = 408 "request_timeout" "Request timeout",
}

/// One fault of a request.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Fault {
    /// Where it stands in the body, as a JSON pointer.
    pub pointer: String,
    /// What it is.
    pub code: Code,
    /// The limit that was passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<u64>,
}

/// The body of every refusal: RFC 9457, `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem<'e> {
    /// A stable URI that names the kind of problem.
    #[serde(rename = "type")]
    kind: String,
    /// In a few words.
    title: &'static str,
    /// The answer's status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What clients switch on.
    code: Code,
    /// What is wrong with this request, for people.
    detail: &'e str,
    /// The request's name in the log.
    request_id: &'e str,
    /// What is wrong where, at most sixteen.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, max_items = 16)]
    errors: &'e [Fault],
    /// Seconds after which asking again is worth while.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u32>,
}

/// A refusal on its way out. It becomes a [`Problem`] where the request's id is known.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// Why.
    pub code: Code,
    /// For people.
    pub detail: Cow<'static, str>,
    /// What is wrong where.
    pub faults: Vec<Fault>,
    /// Seconds after which asking again is worth while.
    pub retry_after_s: Option<u32>,
    /// Whether the connection is closed, because not all of the body was read.
    pub close: bool,
    /// Whether there was no place left to wait for the compute threads, which is counted apart.
    pub full_queue: bool,
    /// One more header that the refusal owes.
    pub header: Option<Box<(HeaderName, HeaderValue)>>,
    /// What the log is told beyond the detail; never sent.
    pub cause: Option<Arc<str>>,
}

impl ApiError {
    /// A refusal.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let retry_after_s = match code {
            Code::NotReady | Code::Draining => Some(2),
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
            full_queue: false,
            header: None,
            cause: None,
        }
    }

    /// A refusal of one place in the body.
    pub fn at(
        code: Code,
        pointer: impl Into<String>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let fault = Fault { pointer: pointer.into(), code, limit: None, actual: None };
        Self { faults: vec![fault], ..Self::new(code, detail) }
    }

    /// A refusal of something that there is too much of.
    pub fn beyond(code: Code, pointer: &str, what: &str, limit: usize, actual: usize) -> Self {
        let detail = format!("{actual} {what}; the limit is {limit}");
        let mut error = Self::at(code, pointer, detail);
        for fault in &mut error.faults {
            fault.limit = Some(limit as u64);
            fault.actual = Some(actual as u64);
        }
        error
    }

    /// The same refusal of a question whose only pair stands in the fields `a` and `b`.
    pub fn of_one_pair(mut self) -> Self {
        for fault in &mut self.faults {
            for (side, field) in ["a", "b"].into_iter().enumerate() {
                if fault.pointer == pointer(Place::Pair(0, side)) {
                    fault.pointer = format!("/{field}");
                    let place = Place::Pair(0, side).to_string();
                    self.detail = self.detail.replace(&place, field).into();
                }
            }
        }
        self
    }

    /// The same refusal with one more header.
    pub fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { header: Some(Box::new((name, value))), ..self }
    }

    /// A defect, of which only the log learns more.
    pub fn internal(cause: &str) -> Self {
        let detail = "the server failed; its log says more under this request id";
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, detail) }
    }

    /// A panic, of which the log learns the message.
    pub fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::internal(text.as_deref().unwrap_or("a panic without a message"))
    }

    /// The problem document for the request of that id.
    pub fn respond(&self, request_id: &str) -> Response {
        let code = self.code;
        let problem = Problem {
            kind: format!("https://cognate.invalid/problems/{}", code.name().replace('_', "-")),
            title: code.title(),
            status: code.status().as_u16(),
            code,
            detail: &self.detail,
            request_id,
            errors: &self.faults,
            retry_after_s: self.retry_after_s,
        };
        // Strings and numbers alone: this cannot fail.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = code.status();
        let headers = response.headers_mut();
        let media = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, media);
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

/// The refusal itself rides in the response's extensions; the outermost layer writes the document.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Where a text stands in the body of its request.
pub fn pointer(place: Place) -> String {
    match place {
        Place::Text(index) => format!("/texts/{index}"),
        Place::Pair(index, side) => format!("/pairs/{index}/{side}"),
        Place::Query => "/query".to_owned(),
        Place::Candidate(index) => format!("/candidates/{index}"),
    }
}

impl Fault {
    /// What is wrong with a text, if it is a text that is at fault.
    pub fn of(error: &QueryError) -> Option<Self> {
        let place = error.place()?;
        let (code, limit, actual) = match *error {
            QueryError::EmptyText { .. } => (Code::EmptyText, None, None),
            QueryError::AllUnknown { .. } => (Code::AllOov, None, None),
            QueryError::TextTooLong { limit, actual, .. } => {
                (Code::TextTooLong, Some(limit as u64), Some(actual as u64))
            }
            QueryError::TooManyTokens { limit, actual, .. } => {
                (Code::TooManyTokens, Some(limit as u64), Some(actual as u64))
            }
            _ => return None,
        };
        Some(Self { pointer: pointer(place), code, limit, actual })
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let detail = error.to_string();
        if let Some(fault) = Fault::of(&error) {
            return Self { faults: vec![fault.clone()], ..Self::new(fault.code, detail) };
        }
        let (code, field) = match error {
            QueryError::UnknownMethod { .. } => (Code::UnknownMethod, "/method"),
            QueryError::MethodUnavailable { .. } => (Code::MethodUnavailable, "/method"),
            QueryError::CannotEmbed { .. } => (Code::MethodCannotEmbed, "/method"),
            QueryError::OnlyRanks { .. } => (Code::MethodOnlyRanks, "/method"),
            QueryError::MeasureNotSupported { .. } => (Code::MeasureNotSupported, "/measure"),
            // The others have a place and are faults of a text.
            _ => return Self::new(Code::NonFiniteScore, "a score is not a finite number"),
        };
        Self::at(code, field, detail)
    }
}
