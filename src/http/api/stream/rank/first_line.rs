//! The first line of a stream of candidates: the question, which is the body of `POST /rank` without
//! its candidates.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use cognate::engine::{
    BoostBy, Liked, Likes, PageOptions, RankOptions, Ranked, RankedFor, Ranking, Strategy,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::http::api::rank::{
    Asked, BoostRule, Diversify, LikeStrategy, NEGATIVE_BOOST, RankRequest, UNUSED_SCORES,
};
use crate::http::api::stream::line::LineId;
use crate::http::api::stream::rank::best::{Folded, Held, More};
use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::request::fields::{
    CallersData, CallersScores, Candidate, CandidateId, Count, DislikedText, LikedText, List,
    MeasureName, ModelName, Offset, OpposedPolicy, OppositesRule, RankMethod, Score, Share, Text,
    Weight,
};
use crate::http::request::json;
use crate::http::request::query::{OovPolicy, Resolved, Selection};
use crate::http::request::threshold::{Cutoff, Threshold};
use crate::http::work::pool::JobContext;

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
    opposites: Option<OppositesRule>,
    top_k: Option<Count>,
    offset: Option<Offset>,
    min_score: Option<Threshold>,
    threshold: Option<Threshold>,
    return_text: Option<bool>,
    oov: Option<OovPolicy>,
    truncate: Option<bool>,
    min_known: Option<Share>,
    #[serde(borrow)]
    exclude: Option<List<CandidateId<'b>>>,
    boost_by: Option<BoostRule>,
    collapse: Option<Threshold>,
    diversify: Option<Diversify>,
    explain: Option<bool>,
    return_opposes: Option<bool>,
    opposes: Option<OpposedPolicy>,
}

/// The question of a stream.
pub(super) struct FirstQuestion {
    /// The line, as it came.
    line: Vec<u8>,
    pub(super) resolved: Resolved,
    /// Empty where texts are liked.
    pub(super) query: String,
    likes: Option<OwnedLikes>,
    /// The options of the ranking.
    pub(super) options: RankOptions,
    pub(super) return_text: bool,
    pub(super) offset: usize,
    pub(super) by: BoostBy,
    /// Whether candidates that are opposed to the query are left out.
    pub(super) drop_opposed: bool,
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
            opposites: request.opposites,
            oov: request.oov,
            truncate: request.truncate,
            min_known: request.min_known,
            return_opposes: request.return_opposes,
            ..Selection::named(request.model.as_ref(), request.method.as_ref())
        };
        let resolved = selection.resolve_ranking(&app.models())?;
        let resolved = Cutoff::ask(request.threshold, resolved)?;
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
        let page = request.page_options(&resolved)?;
        let wanted = page.end().unwrap_or(most);
        if wanted > most {
            let field = if request.offset.is_some() { "/offset" } else { "/top_k" };
            return Err(ApiError::beyond(Code::TooManyItems, field, "results", most, wanted));
        }
        let options = RankOptions {
            query: resolved.query,
            // Opposed candidates are left out as they come, and take no places.
            top_k: Some(PageOptions { drop_opposed: false, ..page }.needed().unwrap_or(most)),
            min_score: request.least(&resolved)?,
        };
        let names = request.exclude.iter().flat_map(|list| &list.items);
        let exclude = names.cloned().map(CandidateId::into_owned).collect();
        let makes_pages = request.collapse.is_some()
            || request.diversify.is_some()
            || request.explain == Some(true)
            || resolved.query.opposes
            || resolved.query.threshold.is_some();
        let (return_text, offset) = (request.return_text.unwrap_or(false), page.offset);
        let by = request.boost_by.unwrap_or_default().into();
        let query = request.query_text().to_owned();
        request.parts().for_each(|part| app.metrics.ranked_with(part));
        // The request borrows from the line, which is moved below.
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
            drop_opposed: page.drop_opposed,
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
        event: None,
        within: None,
        shortlist: None,
        model: first.model,
        method: first.method,
        measure: first.measure,
        opposites: first.opposites,
        top_k: first.top_k,
        offset: first.offset,
        min_score: first.min_score,
        threshold: first.threshold,
        return_text: first.return_text,
        oov: first.oov,
        truncate: first.truncate,
        coverage: None,
        min_known: first.min_known,
        exclude: first.exclude,
        boost_by: first.boost_by,
        boosts: None,
        similarity_share: None,
        collapse_by: None,
        collapse: first.collapse,
        diversify: first.diversify,
        explain: first.explain,
        return_opposes: first.return_opposes,
        opposes: first.opposes,
        fuse: None,
        fuse_by: None,
    })
}

pub(super) struct CandidateLine<'b> {
    pub(super) id: Option<LineId<'b>>,
    text: Text<'b>,
    pub(super) boost: Option<f32>,
    pub(super) data: Option<CallersData<'b>>,
    pub(super) scores: Option<CallersScores<'b>>,
    /// Whether the question leaves it out.
    pub(super) is_excluded: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'b> {
    #[serde(borrow)]
    id: Option<LineId<'b>>,
    #[serde(borrow)]
    text: Text<'b>,
    boost: Option<Score>,
    #[serde(borrow)]
    data: Option<CallersData<'b>>,
    #[serde(borrow)]
    scores: Option<CallersScores<'b>>,
}

impl AsRef<str> for CandidateLine<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

impl<'b> CandidateLine<'b> {
    /// Refuses fields of a candidate that cannot be used.
    pub(super) fn check(&self, by: BoostBy) -> Result<(), ApiError> {
        if by == BoostBy::Multiply && self.boost.is_some_and(|boost| boost < 0.0) {
            return Err(ApiError::at(Code::OutOfRange, "/boost", NEGATIVE_BOOST));
        }
        if self.scores.is_some() {
            return Err(ApiError::at(Code::InvalidField, "/scores", UNUSED_SCORES));
        }
        Ok(())
    }

    fn of(text: Cow<'b, str>) -> Self {
        let text = Text(text);
        Self { id: None, text, boost: None, data: None, scores: None, is_excluded: false }
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for CandidateLine<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = CandidateLine<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(CandidateLine::of(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(CandidateLine::of(Cow::Owned(text.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let from = MapAccessDeserializer::new(map);
                let Fields { id, text, boost, data, scores } = Deserialize::deserialize(from)?;
                let boost = boost.map(|Score(boost)| boost as f32);
                Ok(CandidateLine { id, text, boost, data, scores, is_excluded: false })
            }
        }
        from.deserialize_any(Either)
    }
}

/// The page of the stored candidates, best first, the unscored last.
pub(super) fn page(
    first: &FirstQuestion,
    held: Vec<Held>,
    work: &JobContext,
) -> Result<Vec<Held>, ApiError> {
    let text = |held: &Held| held.text.as_deref().unwrap_or_default().to_owned();
    let candidates = held.iter().map(|held| Candidate::Text(Text(Cow::Owned(text(held)))));
    let request = first.request(candidates.collect())?;
    let scored = held.iter().enumerate();
    let scored = scored.filter_map(|(index, held)| Some(Ranked { index, score: held.score? }));
    let measure = first.resolved.measure();
    let ranking = Ranking { measure, results: scored.collect(), ..Ranking::default() };
    let unscored = held.iter().filter(|held| held.score.is_none()).count();
    let likes = first.likes();
    let asked = likes.as_ref().map_or(RankedFor::Query(&first.query), RankedFor::Likes);
    let page = request.page(ranking, &first.options, asked, &first.resolved, work)?;
    let most = request.top_k.map_or(usize::MAX, |Count(most)| most);
    let all = held.len();
    let mut held: Vec<Option<Held>> = held.into_iter().map(Some).collect();
    let mut told = Vec::new();
    for result in page.results().take(most) {
        let duplicates = result.duplicates.iter().filter_map(|duplicate| {
            let other = held.get(duplicate.ranked.index)?.as_ref()?;
            let (score, similarity) = (duplicate.ranked.score, duplicate.similarity);
            Some(Folded { index: other.index, id: other.id.clone(), score, similarity })
        });
        let duplicates = duplicates.collect();
        let Some(mut line) = held.get_mut(result.index).and_then(Option::take) else { continue };
        let (like, words) =
            result.reason.cloned().map(|reason| (reason.like, reason.words)).unzip();
        let (opposes, related) = (result.opposes, result.related);
        let more = More { duplicates, like: like.flatten(), words, opposes, related };
        line.more = Some(Box::new(more));
        told.push(line);
    }
    // Unscored candidates follow, if they are listed.
    let rest = held.drain(all - unscored..).flatten();
    let skipped = first.offset.saturating_sub(page.ranking.results.len());
    told.extend(rest.skip(skipped).take(most.saturating_sub(told.len())));
    Ok(told)
}
