//! The first line of a stream of candidates: the question, which is the body of `POST /rank` without
//! its candidates.

use std::collections::HashSet;

use cognate::engine::{BoostBy, Liked, Likes, RankOptions, Strategy};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::http::api::rank::{Asked, BoostRule, Diversify, LikeStrategy, RankRequest};
use crate::http::api::stream::line::LineId;
use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::request::fields::{
    Candidate, CandidateId, Count, DislikedText, LikedText, List, MeasureName, ModelName, Offset,
    RankMethod, Text, Weight,
};
use crate::http::request::json;
use crate::http::request::query::{OovPolicy, Resolved, Selection};
use crate::http::request::threshold::Threshold;

/// The fields of the first line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine<'b> {
    #[serde(borrow)]
    query: Option<Text<'b>>,
    queries: Option<IgnoredAny>,
    #[serde(borrow)]
    like: Option<List<LikedText<'b>>>,
    #[serde(borrow)]
    unlike: Option<List<DislikedText<'b>>>,
    strategy: Option<LikeStrategy>,
    unlike_weight: Option<Weight>,
    #[serde(borrow)]
    model: Option<ModelName<'b>>,
    #[serde(borrow)]
    method: Option<RankMethod<'b>>,
    measure: Option<MeasureName>,
    top_k: Option<Count>,
    offset: Option<Offset>,
    min_score: Option<Threshold>,
    return_text: Option<bool>,
    oov: Option<OovPolicy>,
    truncate: Option<bool>,
    #[serde(borrow)]
    exclude: Option<List<CandidateId<'b>>>,
    boost_by: Option<BoostRule>,
    collapse: Option<Threshold>,
    diversify: Option<Diversify>,
    explain: Option<bool>,
}

/// The question of a stream.
pub(super) struct FirstQuestion {
    /// The line, as it came.
    line: Vec<u8>,
    pub(super) resolved: Resolved,
    /// Empty where texts are liked.
    pub(super) query: String,
    likes: Option<OwnedLikes>,
    /// What is wanted of the candidates that are held.
    pub(super) options: RankOptions,
    pub(super) return_text: bool,
    pub(super) offset: usize,
    pub(super) by: BoostBy,
    /// Whether more is made of the results than an order.
    pub(super) makes_pages: bool,
    exclude: HashSet<CandidateId<'static>>,
}

/// Liked and disliked texts that outlive the line.
struct OwnedLikes {
    liked: Vec<(String, f32)>,
    disliked: Vec<String>,
    strategy: Strategy,
    unlike_weight: f32,
}

impl OwnedLikes {
    fn of(likes: &Likes<'_>) -> Self {
        let liked = likes.liked.iter().map(|one| (one.text.to_owned(), one.weight));
        Self {
            liked: liked.collect(),
            disliked: likes.disliked.iter().map(|&text| text.to_owned()).collect(),
            strategy: likes.strategy,
            unlike_weight: likes.unlike_weight,
        }
    }
}

impl FirstQuestion {
    /// The question of a line.
    pub(super) fn read(app: &App, line: Vec<u8>) -> Result<Self, ApiError> {
        let request = request(&line, List { items: Vec::new(), length: 0 })?;
        let likes = match request.asked()? {
            Asked::Likes(likes) => Some(OwnedLikes::of(&likes)),
            Asked::Query(_) | Asked::Queries(_) => None,
        };
        request.check_lengths(app)?;
        let selection = Selection {
            measure: request.measure.map(|MeasureName(measure)| measure),
            oov: request.oov,
            truncate: request.truncate,
            ..Selection::named(request.model.as_ref(), request.method.as_ref())
        };
        let resolved = selection.resolve_ranking(&app.models())?;
        let engine = &resolved.model.engine;
        engine.check(&resolved.query)?;
        let method = resolved.query.method;
        if resolved.fused.is_some() || !engine.ranks_in_parts(method) {
            let detail = format!(
                "{} scores each candidate by all others, which a stream does not keep: send them as \
                 JSON, or choose another method",
                resolved.method_name()
            );
            return Err(ApiError::at(Code::InvalidField, "/method", detail));
        }
        request.check_method(&resolved)?;
        let most = app.settings.max_candidates;
        let wanted = request.wanted().unwrap_or(most);
        if wanted > most {
            let field = if request.offset.is_some() { "/offset" } else { "/top_k" };
            return Err(ApiError::beyond(Code::TooManyItems, field, "results", most, wanted));
        }
        let options = RankOptions {
            query: resolved.query,
            top_k: Some(request.needed().unwrap_or(most)),
            min_score: request.least(&resolved)?,
        };
        let names = request.exclude.iter().flat_map(|list| &list.items);
        let exclude = names.cloned().map(CandidateId::into_owned).collect();
        let makes_pages = request.collapse.is_some()
            || request.diversify.is_some()
            || request.explain == Some(true);
        let (return_text, offset) = (request.return_text.unwrap_or(false), request.passed_over());
        let by = request.boost_by.unwrap_or_default().into();
        let query = request.query_text().to_owned();
        request.parts().for_each(|part| app.metrics.ranked_with(part));
        // It borrows from the line.
        drop(request);
        Ok(Self {
            line,
            resolved,
            query,
            likes,
            options,
            return_text,
            offset,
            by,
            makes_pages,
            exclude,
        })
    }

    /// The question with candidates, as `POST /rank` would have it.
    pub(super) fn request<'b>(
        &'b self,
        items: Vec<Candidate<'b>>,
    ) -> Result<RankRequest<'b>, ApiError> {
        let length = items.len();
        request(&self.line, List { items, length })
    }

    /// The texts that candidates are compared with.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let likes = self.likes.iter();
        let liked = likes.clone().flat_map(|likes| likes.liked.iter().map(|(text, _)| text));
        let disliked = likes.flat_map(|likes| &likes.disliked);
        let query = self.likes.is_none().then_some(&self.query);
        query.into_iter().chain(liked).chain(disliked).map(String::as_str)
    }

    /// Liked and disliked texts, where they stand in the place of a query.
    pub(super) fn likes(&self) -> Option<Likes<'_>> {
        let likes = self.likes.as_ref()?;
        let liked = likes.liked.iter().map(|(text, weight)| Liked { text, weight: *weight });
        Some(Likes {
            liked: liked.collect(),
            disliked: likes.disliked.iter().map(String::as_str).collect(),
            strategy: likes.strategy,
            unlike_weight: likes.unlike_weight,
        })
    }

    /// Whether a candidate of this name is left out.
    pub(super) fn excludes(&self, name: Option<LineId<'_>>) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        let name = name.and_then(|name| {
            // A number that is no name of a list is excluded by none.
            serde_json::from_str::<CandidateId<'_>>(name.as_written())
                .ok()
                .map(CandidateId::into_owned)
        });
        name.is_some_and(|name| self.exclude.contains(&name))
    }
}

/// A first line with candidates.
fn request<'b>(
    line: &'b [u8],
    candidates: List<Candidate<'b>>,
) -> Result<RankRequest<'b>, ApiError> {
    let first: FirstLine<'b> = json::read_object(line)?;
    if first.queries.is_some() {
        let detail =
            "a stream ranks for one query, or by liked texts: send several queries as JSON";
        return Err(ApiError::at(Code::InvalidField, "/queries", detail));
    }
    Ok(RankRequest {
        query: first.query,
        queries: None,
        like: first.like,
        unlike: first.unlike,
        strategy: first.strategy,
        unlike_weight: first.unlike_weight,
        candidates: Some(candidates),
        collection: None,
        filter: None,
        within: None,
        shortlist: None,
        model: first.model,
        method: first.method,
        measure: first.measure,
        top_k: first.top_k,
        offset: first.offset,
        min_score: first.min_score,
        return_text: first.return_text,
        oov: first.oov,
        truncate: first.truncate,
        coverage: None,
        exclude: first.exclude,
        boost_by: first.boost_by,
        collapse: first.collapse,
        diversify: first.diversify,
        explain: first.explain,
        fuse: None,
        fuse_by: None,
    })
}
