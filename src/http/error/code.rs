//! The table of error codes: their names, which clients compare, and their statuses.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal $name:literal $title:literal,)+) => {
        /// Stable machine-readable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[schema(as = ErrorCode)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            pub(crate) fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            pub fn status(self) -> StatusCode {
                let number: u16 = match self { $(Self::$variant => $status,)+ };
                StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    };
}

codes! {
    /// The request's head breaks a rule of HTTP.
    InvalidHead = 400 "invalid_head" "Invalid request head",
    /// The body is not JSON.
    MalformedJson = 400 "malformed_json" "Malformed JSON",
    /// A field is unknown, missing, given twice or of the wrong type.
    InvalidField = 422 "invalid_field" "Invalid field",
    /// A number does not fit.
    OutOfRange = 422 "out_of_range" "Number out of range",
    /// The body is larger than the limit.
    BodyTooLarge = 413 "body_too_large" "Body too large",
    /// The body's media type is not one this route reads.
    UnsupportedMediaType = 415 "unsupported_media_type" "Unsupported media type",
    /// The body is compressed in a way that this server does not unpack.
    UnsupportedEncoding = 415 "unsupported_encoding" "Unsupported content encoding",
    /// No key, or a wrong one.
    Unauthorized = 401 "unauthorized" "Unauthorized",
    /// The key may not do this.
    Forbidden = 403 "forbidden" "Forbidden",
    /// There is nothing at this path, or no collection or item of this name.
    NotFound = 404 "not_found" "Not found",
    /// The path has no such method.
    MethodNotAllowed = 405 "method_not_allowed" "Method not allowed",
    /// A list that must not be empty is empty.
    EmptyList = 422 "empty_list" "Empty list",
    /// A text is empty or has nothing but white space.
    EmptyText = 422 "empty_text" "Empty text",
    /// A text has no known word, and the request set `oov` to `error`.
    AllOov = 422 "all_oov" "No known word",
    /// A text has too many characters or bytes.
    TextTooLong = 422 "text_too_long" "Text too long",
    /// A text has too many tokens.
    TooManyTokens = 422 "too_many_tokens" "Too many tokens",
    /// A list has too many items.
    TooManyItems = 422 "too_many_items" "Too many items",
    /// All texts of the request together have too many tokens.
    TooManyTokensTotal = 422 "too_many_tokens_total" "Too many tokens in all",
    /// There is no model of that name.
    UnknownModel = 422 "unknown_model" "Unknown model",
    /// There is no collection of that name.
    UnknownCollection = 422 "unknown_collection" "Unknown collection",
    /// The collection has no item of that name.
    UnknownItem = 422 "unknown_item" "Unknown item",
    /// The collection has another text under the name of one that is to be matched.
    OtherText = 422 "other_text" "Other text",
    /// Other settings of the collection would delete items; `drop=true` lets them.
    WouldDrop = 422 "would_drop" "Would drop items",
    /// There is no method of that name.
    UnknownMethod = 422 "unknown_method" "Unknown method",
    /// The method has no vector for a single text.
    MethodCannotEmbed = 422 "method_cannot_embed" "Method cannot embed",
    /// The method works in `/rank` only.
    MethodOnlyRanks = 422 "method_only_ranks" "Method only ranks",
    /// The model lacks what the method needs.
    MethodUnavailable = 422 "method_unavailable" "Method unavailable",
    /// The method does not support this measure.
    MeasureNotSupported = 422 "measure_not_supported" "Measure not supported",
    /// The model has no threshold for this method and measure.
    NotCalibrated = 422 "not_calibrated" "Not calibrated",
    /// The response would be too large.
    ResponseTooLarge = 422 "response_too_large" "Response too large",
    /// The work cannot be done before the deadline.
    TooMuchWork = 422 "too_much_work" "Too much work",
    /// A model file is not valid; the old model stays in service.
    BadModel = 422 "bad_model" "Bad model",
    /// The key file is not valid; the old keys stay in force.
    BadKeys = 422 "bad_keys" "Bad keys",
    /// A model file does not fit into memory; the old model stays in service.
    ModelTooLarge = 422 "model_too_large" "Model too large",
    /// A score is not a finite number.
    NonFiniteScore = 500 "non_finite_score" "Non-finite score",
    /// The server has a fault; its log has the request's id.
    Internal = 500 "internal" "Internal error",
    /// The server is a replica, which takes no changes of collections.
    ReadOnly = 403 "read_only" "Read only",
    /// Collections have no room: memory, the number of collections, or the key's share is used up.
    CollectionFull = 507 "collection_full" "Collection full",
    /// A collection's log could not be written.
    NotWritten = 507 "not_written" "Not written",
    /// The database that keeps collections cannot be reached.
    DatabaseUnavailable = 503 "database_unavailable" "Database unavailable",
    /// The server has no room for more work, streams or unread responses.
    Overloaded = 503 "overloaded" "Overloaded",
    /// The key's quota is used up.
    RateLimited = 429 "rate_limited" "Rate limited",
    /// The models are not loaded yet, a model file was damaged in place, or collections take no changes.
    NotReady = 503 "not_ready" "Not ready",
    /// The server is about to stop.
    Draining = 503 "draining" "Draining",
    /// Computing the response took longer than the deadline.
    DeadlineExceeded = 503 "deadline_exceeded" "Deadline exceeded",
    /// The body did not arrive in time.
    RequestTimeout = 408 "request_timeout" "Request timeout",
}

impl Code {
    /// The URI of the kind of problem (RFC 9457, section 3.1.1): a page of the public listener.
    pub(crate) fn uri(self) -> String {
        format!("/problems/{}", self.name().replace('_', "-"))
    }
}
