//! The answer of `POST /rank`, as it is written.

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Ranking;
use crate::engine::Reason;
use crate::http::request::fields::CallersData;
use crate::http::request::fields::Candidate;
use crate::http::request::fields::CandidateId;
use crate::http::request::query::Resolved;

/// Candidates by how alike they are to the query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'r str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// Best first, equal scores by index; candidates that cannot be scored come last with score 0.
    results: Vec<RankedCandidate<'r>>,
    /// Indexes of the candidates that cannot be scored; all of them where the query has no known word.
    unscored: &'r [usize],
    /// Why, one of `empty`, `unknown`, `too_long` for each of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    reasons: &'r [Reason],
    /// Indexes of the candidates that were cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    query_truncated: bool,
    /// With `coverage`, the share of the query's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
}

/// A candidate and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankedCandidate<'r> {
    /// Its place among the candidates.
    index: usize,
    /// Its own name, if it came with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r CandidateId<'r>>,
    /// Its score, boost included.
    score: f32,
    /// With `coverage`, the share of its tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<f32>,
    /// The text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    /// The candidate's `data`, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'r CallersData<'r>>,
}

impl<'r> RankResponse<'r> {
    /// What the engine ranked of a question, with these of its results.
    pub(crate) fn of(
        ranking: &'r Ranking,
        results: Vec<RankedCandidate<'r>>,
        resolved: &'r Resolved,
    ) -> Self {
        Self {
            model: &resolved.model.name,
            method: resolved.method_name(),
            measure: ranking.measure.name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            results,
            unscored: &ranking.unscored,
            reasons: &ranking.reasons,
            truncated: &ranking.truncated,
            query_truncated: ranking.query_truncated,
            query_known: ranking.query_known,
        }
    }
}

impl<'r> RankedCandidate<'r> {
    /// A candidate without a name; one that cannot be scored has score 0.
    pub(crate) fn of(index: usize, score: Option<f32>, text: Option<&'r str>) -> Self {
        Self { index, id: None, score: score.unwrap_or(0.0), known: None, text, data: None }
    }

    /// The same candidate with what came with it, and the share of its tokens that the model lists.
    pub(super) fn with(self, candidate: &'r Candidate<'_>, known: Option<f32>) -> Self {
        Self { id: candidate.id(), data: candidate.data(), known, ..self }
    }
}
