//! The formats of errors: problem documents, and those that clients of other servers read. Each has
//! the code and the request's id, so that the line of the log can be found.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Problem, Segment};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A problem document (RFC 9457).
    Problem,
    /// A problem document with the members that clients of several servers look for: for a shared
    /// path, before the body shows the dialect.
    Shared,
    /// The format of text-embeddings-inference.
    Tei,
    /// The format of OpenAI and vLLM.
    OpenAi,
    /// The format of Cohere.
    Message,
    /// The format of Ollama and Weaviate.
    Error,
}

impl Code {
    pub(crate) fn status_in(self, dialect: Dialect) -> StatusCode {
        Form::new(Some(dialect)).status(self)
    }
}

/// Media type and schema of errors in a dialect.
pub(crate) fn described(dialect: Dialect) -> (&'static str, Cow<'static, str>) {
    let json = "application/json";
    match Form::new(Some(dialect)) {
        Form::Problem | Form::Shared => ("application/problem+json", Problem::name()),
        Form::Tei => (json, TeiError::name()),
        Form::OpenAi => (json, OpenAiError::name()),
        Form::Message => (json, MessageError::name()),
        Form::Error => (json, TextError::name()),
    }
}

impl Form {
    /// The format of a dialect; on a path that several share, none is known yet.
    pub(super) fn new(dialect: Option<Dialect>) -> Self {
        match dialect {
            None => Self::Shared,
            Some(Dialect::Native) => Self::Problem,
            Some(Dialect::Tei | Dialect::Hub) => Self::Tei,
            Some(Dialect::OpenAi | Dialect::Vllm) => Self::OpenAi,
            Some(Dialect::Rerank) => Self::Message,
            Some(Dialect::Ollama | Dialect::Weaviate) => Self::Error,
        }
    }

    /// The status of an error in this format. A problem document has the code's own.
    pub(super) fn status(self, code: Code) -> StatusCode {
        let own = code.status();
        match (self, code) {
            (Self::Problem | Self::Shared, _) => own,
            (_, Code::UnknownModel) => StatusCode::NOT_FOUND,
            // On this status these clients wait and retry.
            (Self::Tei, Code::Overloaded | Code::DeadlineExceeded) => StatusCode::TOO_MANY_REQUESTS,
            (Self::Tei, Code::EmptyList | Code::EmptyText) => StatusCode::BAD_REQUEST,
            (Self::Tei, _) => own,
            (_, _) if own == StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            (_, _) => own,
        }
    }

    pub(super) fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Problem | Self::Shared => "application/problem+json",
            Self::Tei | Self::OpenAi | Self::Message | Self::Error => "application/json",
        })
    }

    pub(super) fn body(self, refusal: &ApiError, request_id: &str) -> Vec<u8> {
        let code = refusal.code;
        // Only a problem document lists positions besides the detail.
        let detail = match self {
            Self::Problem | Self::Shared => refusal.detail.to_string(),
            _ => placed(refusal),
        };
        let detail = detail.as_str();
        match self {
            Self::Problem => bytes(&refusal.problem(request_id)),
            Self::Shared => bytes(&SharedProblem {
                problem: refusal.problem(request_id),
                error: detail,
                error_type: tei_type(code),
                message: detail,
            }),
            Self::Tei => {
                let error_type = tei_type(code);
                bytes(&TeiError { error: detail, error_type, code, request_id })
            }
            Self::OpenAi => {
                let (kind, param) = (openai_type(code), field(refusal));
                let error = OpenAiDetail { message: detail, kind, param, code };
                bytes(&OpenAiError { error, detail, request_id })
            }
            Self::Message => bytes(&MessageError { message: detail, detail, code, request_id }),
            Self::Error => bytes(&TextError { error: detail, code, request_id }),
        }
    }
}

/// Writes a body as JSON. A body has only strings and numbers, so this cannot fail.
fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

#[derive(Serialize)]
struct SharedProblem<'e> {
    #[serde(flatten)]
    problem: Problem<'e>,
    error: &'e str,
    error_type: &'static str,
    message: &'e str,
}

/// A refusal as text-embeddings-inference writes it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TeiError<'e> {
    /// What is wrong with this request, in a sentence.
    error: &'e str,
    /// The kind: `Validation`, `Empty`, `Tokenizer`, `Overloaded`, `Unhealthy` or `Backend`.
    error_type: &'static str,
    /// Stable machine-readable error code.
    code: Code,
    /// The request's id, as in the log and in `x-request-id`.
    request_id: &'e str,
}

/// A refusal as OpenAI and vLLM write it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAiError<'e> {
    /// What is wrong.
    error: OpenAiDetail<'e>,
    /// The same as `error.message`, where clients of Voyage and Jina look for it.
    detail: &'e str,
    /// The request's id, as in the log and in `x-request-id`.
    request_id: &'e str,
}

/// What is wrong with a request, in the form of OpenAI's errors.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAiDetail<'e> {
    /// What is wrong with this request, in a sentence.
    message: &'e str,
    /// The kind, such as `invalid_request_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The field that is at fault.
    param: Option<&'e str>,
    /// Stable machine-readable error code.
    code: Code,
}

/// A refusal as Cohere writes it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageError<'e> {
    /// What is wrong with this request, in a sentence.
    message: &'e str,
    /// The same as `message`, for clients of Voyage and Jina.
    detail: &'e str,
    /// Stable machine-readable error code.
    code: Code,
    /// The request's id, as in the log and in `x-request-id`.
    request_id: &'e str,
}

/// A refusal as Ollama and Weaviate write it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TextError<'e> {
    /// What is wrong with this request, in a sentence.
    error: &'e str,
    /// Stable machine-readable error code.
    code: Code,
    /// The request's id, as in the log and in `x-request-id`.
    request_id: &'e str,
}

/// The detail, with the position of the error unless the detail names it.
fn placed(refusal: &ApiError) -> String {
    let place = refusal.faults.first().map_or(String::new(), |fault| fault.pointer.in_words());
    let detail = refusal.detail.to_string();
    let is_said = place.is_empty() || detail.contains(&place);
    if is_said { detail } else { format!("{place}: {detail}") }
}

/// Returns the name of the body's field that is wrong, if a field is.
fn field(refusal: &ApiError) -> Option<&str> {
    match refusal.faults.first()?.pointer.segments().first()? {
        Segment::Field(name) => Some(name),
        Segment::Key(name) => Some(name),
        Segment::Index(_) => None,
    }
}

fn tei_type(code: Code) -> &'static str {
    match code {
        Code::EmptyList | Code::EmptyText => "Empty",
        Code::TooManyTokens | Code::TextTooLong => "Tokenizer",
        Code::Overloaded | Code::DeadlineExceeded | Code::RateLimited => "Overloaded",
        Code::NotReady | Code::Draining => "Unhealthy",
        Code::Internal | Code::NonFiniteScore => "Backend",
        _ => "Validation",
    }
}

fn openai_type(code: Code) -> &'static str {
    match code.status().as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const FORMS: [Form; 6] =
        [Form::Problem, Form::Shared, Form::Tei, Form::OpenAi, Form::Message, Form::Error];

    /// In every format, clients recognise a failure and find the code.
    #[test]
    fn every_refusal_is_one_in_every_form() {
        for &code in Code::ALL {
            for form in FORMS {
                let status = form.status(code);
                assert!(status.is_client_error() || status.is_server_error(), "{form:?} {code:?}");
                let refusal = ApiError::at(code, "/input/3", "what is wrong");
                let body = form.body(&refusal, "an id");
                let body: Value = serde_json::from_slice(&body).unwrap();
                let said =
                    if form == Form::OpenAi { &body["error"]["code"] } else { &body["code"] };
                assert_eq!(said, code.name(), "{form:?}");
                assert_eq!(body["request_id"], "an id", "{form:?}");
            }
        }
    }
}
