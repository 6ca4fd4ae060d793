//! The answer of `POST /rank`, as it is written.

use cognate::engine::{
    Duplicate, OppositionKind, Oppositions, Page, PageResult, Reason, UnscoredLikes, WordShare,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::api::envelope::{Envelope, enveloped};
use crate::http::api::rank::ItemRanking;
use crate::http::request::fields::{CallersData, Candidate, CandidateId};
use crate::http::request::query::Resolved;

enveloped! {
    /// Candidates by how alike they are to the query.
    pub(crate) struct RankResponse<'r> {
        /// Best first, equal scores by index; candidates that cannot be scored come last with score 0.
        results: Vec<RankedCandidate<'r>>,
        /// Indexes of the candidates that cannot be scored; all candidates if the query has no known word.
        unscored: &'r [usize],
        /// The reason for each of them: `empty`, `unknown` or `too_long`.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<String>)]
        reasons: &'r [Reason],
        /// Indexes of the candidates that were cut.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        truncated: &'r [usize],
        /// Whether the query was cut.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        query_truncated: bool,
        /// The share of the query's tokens that the model lists, where it does not list all of them; with
        /// `coverage` in any case.
        #[serde(skip_serializing_if = "Option::is_none")]
        query_known: Option<f32>,
        /// Places of liked texts that are part of no score, as they have no known word.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        like_unscored: &'r [usize],
        /// The same for disliked texts.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        unlike_unscored: &'r [usize],
    }
}

enveloped! {
    /// A ranking for each of several queries.
    pub(super) struct RankingsResponse<'r> {
        /// One a query, in order.
        rankings: Vec<OneRanking<'r>>,
    }
}

/// What the answer to one query alone has beside its model and method.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OneRanking<'r> {
    /// Best first, equal scores by index; candidates that cannot be scored come last with score 0.
    results: Vec<RankedCandidate<'r>>,
    /// Indexes of the candidates that cannot be scored; all candidates if the query has no known word.
    unscored: &'r [usize],
    /// The reason for each of them: `empty`, `unknown` or `too_long`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    reasons: &'r [Reason],
    /// Indexes of the candidates that were cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'r [usize],
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    query_truncated: bool,
    /// The share of the query's tokens that the model lists, where it does not list all of them; with
    /// `coverage` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
}

/// A ranking, or one for each of several queries.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(super) enum EitherRanking<'r> {
    /// For one query, or for liked texts.
    One(RankResponse<'r>),
    /// For several queries.
    Several(RankingsResponse<'r>),
    /// Of a collection.
    Items(ItemRanking<'r>),
}

/// A candidate and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankedCandidate<'r> {
    /// The index among the candidates.
    index: usize,
    /// The candidate's own `id`, if it came with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r CandidateId<'r>>,
    /// The score, boost included.
    score: f32,
    /// With `coverage`, the share of the candidate's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<f32>,
    /// The text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    /// The candidate's `data`, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'r CallersData<'r>>,
    /// Candidates that are nearly the same as this candidate, best first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    duplicates: Vec<DuplicateCandidate<'r>>,
    /// With `explain` and `like`, the index of the liked text that the item is most like, weights included.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<usize>,
    /// With `explain`, the words with the largest shares of its score, boost aside, with the query, or
    /// with that liked text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<WordShare>>)]
    words: Option<&'r [WordShare]>,
    /// With `return_opposes`, how it is opposed to the query; an empty list where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<OppositionKind>>)]
    opposes: Option<Oppositions>,
    /// With `threshold`, whether its score is at or above it and it is not opposed to the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<bool>,
}

/// A candidate that is nearly the same as a better one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DuplicateCandidate<'r> {
    /// The index among the candidates.
    index: usize,
    /// The candidate's own `id`, if it came with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r CandidateId<'r>>,
    /// The score, boost included.
    score: f32,
    /// How alike the two are.
    similarity: f32,
}

impl<'r> RankResponse<'r> {
    /// The answer of a page with these results; some liked and disliked texts may count in no
    /// score.
    pub(crate) fn new(
        page: &'r Page,
        results: Vec<RankedCandidate<'r>>,
        unscored: &'r UnscoredLikes,
        resolved: &'r Resolved,
    ) -> Self {
        let ranking = &page.ranking;
        Self {
            results,
            unscored: &ranking.unscored,
            reasons: &ranking.reasons,
            truncated: &ranking.truncated,
            query_truncated: ranking.query_truncated,
            query_known: ranking.query_known,
            like_unscored: &unscored.liked,
            unlike_unscored: &unscored.disliked,
            ..Envelope::new(resolved, resolved.measure()).into()
        }
    }
}

impl<'r> RankingsResponse<'r> {
    /// Rankings, with their results.
    pub(super) fn new(
        rankings: impl Iterator<Item = (&'r Page, Vec<RankedCandidate<'r>>)>,
        resolved: &'r Resolved,
    ) -> Self {
        let one = |(page, results): (&'r Page, _)| OneRanking {
            results,
            unscored: &page.ranking.unscored,
            reasons: &page.ranking.reasons,
            truncated: &page.ranking.truncated,
            query_truncated: page.ranking.query_truncated,
            query_known: page.ranking.query_known,
        };
        Self {
            rankings: rankings.map(one).collect(),
            ..Envelope::new(resolved, resolved.measure()).into()
        }
    }
}

impl<'r> RankedCandidate<'r> {
    /// The results of a page of candidates, with the texts if requested, and the candidates' own
    /// fields. An unscored candidate has score 0, and comes last if all are listed.
    pub(crate) fn all(
        page: &'r Page,
        candidate: impl Fn(usize) -> (Option<&'r str>, Option<&'r Candidate<'r>>),
    ) -> Vec<Self> {
        let id = |index: usize| candidate(index).1.and_then(Candidate::id);
        let result = |result: PageResult<'r>| {
            let (text, came) = candidate(result.index);
            let duplicate = |one: &Duplicate| DuplicateCandidate {
                index: one.ranked.index,
                id: id(one.ranked.index),
                score: one.ranked.score,
                similarity: one.similarity,
            };
            Self {
                index: result.index,
                id: id(result.index),
                score: result.score.unwrap_or(0.0),
                known: page.ranking.known.get(result.index).copied(),
                text,
                data: came.and_then(Candidate::data),
                duplicates: result.duplicates.iter().map(duplicate).collect(),
                like: result.reason.and_then(|reason| reason.like),
                words: result.reason.map(|reason| reason.words.as_slice()),
                opposes: result.opposes,
                related: result.related,
            }
        };
        page.results().map(result).collect()
    }
}
