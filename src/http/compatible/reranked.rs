//! Reranked documents as the clients of each server read them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::compatible::openai::Usage;
use crate::http::compatible::spans::Span;

/// Documents, most relevant first.
#[derive(Serialize, ToSchema)]
pub(super) struct RerankResponse<'r> {
    /// What this answer is called.
    pub(super) id: String,
    /// `rerank`.
    pub(super) object: &'static str,
    /// The model's name.
    pub(super) model: &'r str,
    /// The documents, most relevant first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) results: Option<Vec<RerankResult<'r>>>,
    /// The same, for bodies with Voyage's fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Vec<RerankResult<'r>>>,
    pub(super) usage: Usage,
}

/// A document and its relevance.
#[derive(Serialize, ToSchema)]
pub(super) struct RerankResult<'r> {
    /// Its place among the documents.
    pub(super) index: usize,
    /// Its relevance, between 0 and 1 where the method's scores have bounds.
    pub(super) relevance_score: f64,
    /// Its text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) document: Option<RerankDocument<'r>>,
    /// The stretches that speak for it, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) relevant_spans: Option<Vec<Span>>,
}

/// A document's text.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum RerankDocument<'r> {
    /// As Voyage has it.
    Bare(&'r str),
    /// As the others have it.
    Object {
        /// The text.
        text: &'r str,
    },
}

/// A score, or the relevance that it comes to.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum TeiScore {
    /// A score, as `/rank` gives it.
    Raw(f32),
    Relevance(f64),
}

/// A text and its score, as text-embeddings-inference writes it.
#[derive(Serialize, ToSchema)]
pub(super) struct TeiRank<'r> {
    pub(super) index: usize,
    #[schema(value_type = f64)]
    pub(super) score: TeiScore,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'r str>,
}

/// What is answered: an object for `documents`, a bare list for `texts`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(super) enum EitherRerank<'r> {
    /// For `documents`.
    Results(RerankResponse<'r>),
    /// For `texts`.
    Ranks(Vec<TeiRank<'r>>),
}
