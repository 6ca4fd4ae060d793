//! The answer of `POST /rank` about a collection, as it is written: items by their names.

use cognate_collections::Attributes;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::api::rank::held::Held;
use crate::http::api::rank::plan::Told;
use crate::http::api::rank::{Page, RankRequest, SharedWord};
use crate::http::request::fields::CallersData;
use crate::http::request::query::Resolved;

/// Items of a collection by how alike they are to what is asked.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemRanking<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'r str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// The collection.
    collection: &'r str,
    /// How many of its items were ranked.
    items: usize,
    /// Where not all that are meant were: how many were taken for each text that is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortlist: Option<usize>,
    /// For one query, or for liked texts: best first, equal scores in the order in which the items were
    /// added. Items that cannot be scored are no results.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<RankedItem<'r>>>,
    /// How many of the items cannot be scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    unscored: Option<usize>,
    /// For several queries: one each, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    rankings: Option<Vec<ItemResults<'r>>>,
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    query_truncated: bool,
    /// With `coverage`, the share of the query's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// Places of liked texts that are part of no score, as they have no known word.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    like_unscored: &'r [usize],
    /// The same of disliked texts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    unlike_unscored: &'r [usize],
}

/// The items for one of several queries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemResults<'r> {
    /// Best first.
    results: Vec<RankedItem<'r>>,
    /// How many of the items cannot be scored.
    unscored: usize,
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    query_truncated: bool,
    /// With `coverage`, the share of the query's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
}

/// An item and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RankedItem<'r> {
    /// Its name.
    id: &'r str,
    /// Its score.
    score: f32,
    /// With `coverage`, the share of its tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<f32>,
    /// Its text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    /// Its attributes, if texts were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    attributes: Option<&'r Attributes>,
    /// Its `data`, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<CallersData<'r>>,
    /// Items that are nearly the same as this one, best first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    duplicates: Vec<DuplicateItem<'r>>,
    /// With `explain` and `like`, the place of the liked text that it is most like, weights included.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<usize>,
    /// With `explain`, the words with the largest shares of its score.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<&'r [SharedWord]>,
}

/// An item that is nearly the same as a better one.
#[derive(Debug, Serialize, ToSchema)]
struct DuplicateItem<'r> {
    /// Its name.
    id: &'r str,
    /// Its score.
    score: f32,
    /// How alike the two are.
    similarity: f32,
}

impl<'r> ItemRanking<'r> {
    /// What was told of the items of a collection of this name.
    pub(super) fn of(
        told: &'r Told,
        held: &'r Held,
        resolved: &'r Resolved,
        (name, return_text): (&'r str, bool),
        asked: &RankRequest<'_>,
    ) -> Self {
        let results = |page: &'r Page| page.items(held, asked.passed_over(), return_text);
        let several = asked.queries.is_some();
        let one = told.pages.first().filter(|_| !several);
        let rankings = told.pages.iter().map(|page| ItemResults {
            results: results(page),
            unscored: page.ranking.unscored.len(),
            query_truncated: page.ranking.query_truncated,
            query_known: page.ranking.query_known,
        });
        Self {
            model: &resolved.model.name,
            method: resolved.method_name(),
            measure: resolved.measure().name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            collection: name,
            items: held.meant,
            shortlist: held.shortlist,
            results: one.map(results),
            unscored: one.map(|page| page.ranking.unscored.len()),
            rankings: several.then(|| rankings.collect()),
            query_truncated: one.is_some_and(|page| page.ranking.query_truncated),
            query_known: one.and_then(|page| page.ranking.query_known),
            like_unscored: &told.passed.liked,
            unlike_unscored: &told.passed.disliked,
        }
    }
}

impl Page {
    /// The scored items of the page, after the first `offset`.
    fn items<'r>(
        &'r self,
        held: &'r Held,
        offset: usize,
        return_text: bool,
    ) -> Vec<RankedItem<'r>> {
        let item = |index: usize| held.items.get(index).map(|(_, item)| item.as_ref());
        let results = self.ranking.results.iter().skip(offset).enumerate();
        let results = results.filter_map(|(place, ranked)| {
            let of = item(ranked.index)?;
            let reason = self.reason(place);
            let duplicates = self.duplicates_of(ranked.index).iter().filter_map(|duplicate| {
                let (score, similarity) = (duplicate.ranked.score, duplicate.similarity);
                Some(DuplicateItem { id: &item(duplicate.ranked.index)?.id, score, similarity })
            });
            Some(RankedItem {
                id: &of.id,
                score: ranked.score,
                known: self.ranking.known.get(ranked.index).copied(),
                text: return_text.then_some(&*of.text),
                attributes: Some(&of.attributes).filter(|list| return_text && !list.is_empty()),
                data: of.data.as_deref().map(CallersData::stored),
                duplicates: duplicates.collect(),
                like: reason.and_then(|(like, _)| *like),
                words: reason.map(|(_, words)| words.as_slice()),
            })
        });
        results.collect()
    }
}
