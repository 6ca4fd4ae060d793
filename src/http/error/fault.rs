//! Faults of single texts and fields: what is wrong, and where that stands in the body, as a JSON
//! pointer.

use cognate::engine::fuse::FusedProblem;
use cognate::engine::{Place, QueryError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code};

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

/// Where a text stands in the body of its request.
pub(crate) fn pointer(place: Place) -> String {
    match place {
        Place::Text(index) => format!("/texts/{index}"),
        Place::Pair(index, side) => format!("/pairs/{index}/{side}"),
        Place::Query => "/query".to_owned(),
        Place::QueryOf(index) => format!("/queries/{index}"),
        Place::Liked(index) => format!("/like/{index}"),
        Place::Disliked(index) => format!("/unlike/{index}"),
        Place::Candidate(index) => format!("/candidates/{index}"),
    }
}

impl Fault {
    /// What is wrong with a text, if it is a text that is at fault.
    pub(crate) fn of(error: &QueryError) -> Option<Self> {
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
        if let QueryError::TooMuchTogether { limit, actual } = error {
            let what = "tokens in texts that are compared with each other";
            return Self::beyond(Code::TooManyTokensTotal, "", what, limit, actual);
        }
        let (code, field) = match error {
            QueryError::UnknownMethod { .. } => (Code::UnknownMethod, "/method"),
            QueryError::MethodUnavailable { .. } => (Code::MethodUnavailable, "/method"),
            QueryError::CannotEmbed { .. } => (Code::MethodCannotEmbed, "/method"),
            QueryError::OnlyRanks { .. } => (Code::MethodOnlyRanks, "/method"),
            QueryError::Fused { problem, .. } => match problem {
                FusedProblem::Unknown(_) => (Code::UnknownMethod, "/method"),
                FusedProblem::OnlyRanks => (Code::MethodOnlyRanks, "/method"),
                FusedProblem::Measured => (Code::MeasureNotSupported, "/measure"),
                FusedProblem::Unavailable(_) => (Code::MethodUnavailable, "/method"),
            },
            QueryError::MeasureNotSupported { .. } => (Code::MeasureNotSupported, "/measure"),
            // The others have a place and are faults of a text.
            _ => return Self::new(Code::NonFiniteScore, "a score is not a finite number"),
        };
        Self::at(code, field, detail)
    }
}
