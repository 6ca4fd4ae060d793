//! Every route and what it may be refused with, as data: the document and the counters read it.

use crate::http::error::Code;

/// A route and what it may be refused with.
pub struct Route {
    /// The verb.
    pub verb: &'static str,
    /// The path, as it is matched.
    pub path: &'static str,
    /// What it may be refused with, beside what may meet every request.
    pub codes: &'static [Code],
    /// Whether it is in the document; other names of a route and pages are not.
    pub documented: bool,
}

/// What a question may be refused with whatever it asks.
macro_rules! question {
    ($($own:ident),*) => {
        &[
            Code::MalformedJson, Code::InvalidField, Code::OutOfRange, Code::BodyTooLarge,
            Code::UnsupportedMediaType, Code::UnsupportedEncoding, Code::Unauthorized,
            Code::RateLimited, Code::EmptyText, Code::AllOov, Code::TextTooLong,
            Code::TooManyTokens, Code::UnknownModel, Code::UnknownMethod, Code::MethodUnavailable,
            Code::TooMuchWork, Code::ResponseTooLarge, Code::NonFiniteScore, Code::Internal, Code::Overloaded,
            Code::NotReady, Code::DeadlineExceeded, Code::RequestTimeout, $(Code::$own,)*
        ]
    };
}

/// What any request may be refused with.
pub const ANY: &[Code] = &[Code::InvalidHead];

const LISTING: &[Code] =
    &[Code::Unauthorized, Code::RateLimited, Code::NotReady, Code::InvalidField, Code::Internal];

const fn documented(verb: &'static str, path: &'static str, codes: &'static [Code]) -> Route {
    Route { verb, path, codes, documented: true }
}

const fn also(path: &'static str) -> Route {
    Route { verb: "GET", path, codes: &[], documented: false }
}

/// Every route.
pub const ROUTES: [Route; 18] = [
    documented(
        "POST",
        "/similarity",
        question![
            EmptyList,
            TooManyItems,
            TooManyTokensTotal,
            MethodOnlyRanks,
            MeasureNotSupported,
            NotCalibrated
        ],
    ),
    documented(
        "POST",
        "/embed",
        question![EmptyList, TooManyItems, TooManyTokensTotal, MethodCannotEmbed],
    ),
    documented(
        "POST",
        "/rank",
        question![EmptyList, TooManyItems, TooManyTokensTotal, MeasureNotSupported],
    ),
    documented("POST", "/explain", question![MethodOnlyRanks, MeasureNotSupported]),
    documented(
        "GET",
        "/methods",
        &[
            Code::Unauthorized,
            Code::RateLimited,
            Code::NotReady,
            Code::InvalidField,
            Code::UnknownModel,
            Code::Internal,
        ],
    ),
    documented("GET", "/models", LISTING),
    documented("GET", "/health", &[Code::Internal]),
    documented("GET", "/ready", &[Code::NotReady, Code::Draining, Code::Internal]),
    documented("GET", "/metrics", &[Code::Internal]),
    documented(
        "POST",
        "/-/reload",
        &[
            Code::Unauthorized,
            Code::Forbidden,
            Code::RateLimited,
            Code::BadKeys,
            Code::BadModel,
            Code::ModelTooLarge,
            Code::Internal,
        ],
    ),
    also("/livez"),
    also("/healthz"),
    also("/readyz"),
    also("/openapi.json"),
    also("/docs"),
    also("/docs/{file}"),
    also("/"),
    also("/assets/{file}"),
];

/// Verb and path of every route, for the counters.
pub fn routes() -> Vec<(&'static str, &'static str)> {
    ROUTES.iter().map(|route| (route.verb, route.path)).collect()
}
