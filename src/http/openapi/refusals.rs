//! The errors of routes, as the document lists them: a response per status, which names its codes.

use std::collections::BTreeMap;

use utoipa::openapi::schema::AnyOf;
use utoipa::openapi::{Content, Ref, RefOr, Response, Schema};

use crate::http::dialect::Dialect;
use crate::http::error::{Code, form};

/// Error codes that any request may get.
pub(crate) const ANY: &[Code] = &[Code::InvalidHead, Code::Internal];

pub(crate) const KEYED: &[Code] = &[Code::Unauthorized, Code::RateLimited];

pub(crate) const BODY: &[Code] = &[
    Code::MalformedJson,
    Code::InvalidField,
    Code::OutOfRange,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::UnsupportedEncoding,
    Code::RequestTimeout,
];

pub(crate) const COLLECTION: &[Code] = &[
    Code::NotFound,
    Code::Forbidden,
    Code::NotReady,
    Code::DatabaseUnavailable,
    Code::DeadlineExceeded,
    Code::Overloaded,
];

pub(crate) const WRITE: &[Code] = &[
    Code::Forbidden,
    Code::ReadOnly,
    Code::Draining,
    Code::NotWritten,
    Code::NotReady,
    Code::DatabaseUnavailable,
    Code::DeadlineExceeded,
    Code::Overloaded,
];

pub(crate) const QUESTION: &[Code] = &[
    Code::MalformedJson,
    Code::InvalidField,
    Code::OutOfRange,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::UnsupportedEncoding,
    Code::EmptyText,
    Code::AllOov,
    Code::TextTooLong,
    Code::TooManyTokens,
    Code::UnknownModel,
    Code::UnknownMethod,
    Code::MethodUnavailable,
    Code::TooMuchWork,
    Code::ResponseTooLarge,
    Code::NonFiniteScore,
    Code::Overloaded,
    Code::NotReady,
    Code::DeadlineExceeded,
    Code::RequestTimeout,
];

pub const LIST: &[Code] = &[Code::EmptyList, Code::TooManyItems, Code::TooManyTokensTotal];

pub(crate) type Responses = BTreeMap<String, RefOr<Response>>;

/// Lists a code among the responses of a route in this dialect. If another dialect of the route has
/// the same status and media type, the schema is either of theirs.
pub(crate) fn list(responses: &mut Responses, code: Code, dialect: Dialect) {
    let status = code.status_in(dialect).as_str().to_owned();
    let response = responses.entry(status).or_insert_with(|| Response::default().into());
    let RefOr::T(response) = response else { return };
    let (media_type, schema) = form::described(dialect);
    let content = response.content.entry(media_type.to_owned());
    let content = content.or_insert_with(|| RefOr::T(Content::default()));
    if let RefOr::T(content) = content {
        content.schema = Some(either(content.schema.take(), Ref::from_schema_name(schema)));
    }
    let name = format!("`{}`", code.name());
    if !response.description.contains(&name) {
        if !response.description.is_empty() {
            response.description.push_str(", ");
        }
        response.description.push_str(&name);
    }
}

fn either(known: Option<RefOr<Schema>>, schema: Ref) -> RefOr<Schema> {
    let schema = RefOr::Ref(schema);
    match known {
        None => schema,
        Some(RefOr::T(Schema::AnyOf(mut either))) => {
            if !either.items.contains(&schema) {
                either.items.push(schema);
            }
            Schema::from(either).into()
        }
        Some(known) if known == schema => known,
        Some(known) => {
            let items = vec![known, schema];
            Schema::from(AnyOf { items, ..AnyOf::default() }).into()
        }
    }
}

/// Adds a problem document to the schemas of each error: on a path that several dialects share, errors
/// found before the body is read are problem documents.
pub(crate) fn share(responses: &mut Responses) {
    let (media_type, schema) = form::described(Dialect::Native);
    // Only these depend on the body.
    let of_bodies = ["200", "400", "404", "422"];
    for (status, response) in responses {
        if let RefOr::T(response) = response
            && !of_bodies.contains(&status.as_str())
        {
            let problem = Content::new(Some(Ref::from_schema_name(schema.clone())));
            response.content.entry(media_type.to_owned()).or_insert(problem.into());
        }
    }
}

/// Declares the errors of a route, besides [`ANY`] and [`KEYED`], from lists of codes, in the form
/// of each dialect that bodies of the route may have; used in the `responses` of `#[utoipa::path]`.
macro_rules! refusals {
    ($name:ident: $($codes:expr),+) => {
        $crate::http::openapi::refusals::refusals!(
            $name in $crate::http::dialect::Dialect::Native; $($codes),+
        );
    };
    ($name:ident in $($dialect:expr),+; $($codes:expr),+) => {
        pub(crate) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> $crate::http::openapi::refusals::Responses {
                let mut responses = Default::default();
                for dialect in [$($dialect),+] {
                    for codes in [$($codes),+] {
                        for &code in codes {
                            $crate::http::openapi::refusals::list(&mut responses, code, dialect);
                        }
                    }
                }
                responses
            }
        }
    };
}

pub(in crate::http) use refusals;
