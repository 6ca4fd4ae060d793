//! The answer to a question about the items of a collection.

use cognate::engine::rank::{Asked, Pages};
use cognate::engine::{OppositionKind, Oppositions, Page, WordShare};
use cognate_collections::Attributes;
use cognate_collections::rank::NamedItems;
use cognate_files::instant;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::api::envelope::{Envelope, enveloped};
use crate::http::api::rank::held::Held;
use crate::http::request::fields::CallersData;
use crate::http::request::query::Resolved;

enveloped! {
    /// The answer: items of a collection, sorted by similarity to the query.
    pub(super) struct ItemRanking<'r> {
        /// The collection.
        collection: &'r str,
        /// `boosts`, where these rank alone: no text was given to rank for, or no liked item is left.
        #[serde(skip_serializing_if = "Option::is_none")]
        ranked_by: Option<&'static str>,
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
        query_truncated: bool,
        /// The share of the query's tokens that the model lists, where it does not list all of them; with
        /// `coverage` in any case.
        #[serde(skip_serializing_if = "Option::is_none")]
        query_known: Option<f32>,
        /// Places of liked texts that are part of no score, as they have no known word.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        like_unscored: Vec<usize>,
        /// Places of liked items that the collection does not have; they are part of no score.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        like_missing: &'r [usize],
        /// Places of liked texts that are word for word the ids of items: probably `{"id"}` is meant.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        like_is_id: &'r [usize],
        /// The same for disliked texts.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        unlike_unscored: Vec<usize>,
        /// The same for disliked items.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        unlike_missing: &'r [usize],
        /// Indexes of the disliked texts that are ids of items.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        unlike_is_id: &'r [usize],
        /// Attributes that `filter` asks for and no item of the collection has.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<String>)]
        filter_unknown: &'r [Box<str>],
        /// Attributes for which `filter` asks for a kind of value (a string, a number, a boolean) that no
        /// item has.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<String>)]
        filter_mistyped: &'r [Box<str>],
        /// `collapse_by`, where no item of the collection has such an attribute.
        #[serde(skip_serializing_if = "Option::is_none")]
        collapse_by_unknown: Option<&'r str>,
        /// Attributes of `boosts` that are a number of no item of the collection.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<String>)]
        boosts_unknown: &'r [Box<str>],
    }
}

/// The results of one of several queries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemResults<'r> {
    /// Best first.
    results: Vec<RankedItem<'r>>,
    /// How many of the items cannot be scored.
    unscored: usize,
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    query_truncated: bool,
    /// The share of the query's tokens that the model lists, where it does not list all of them; with
    /// `coverage` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
}

/// An item and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RankedItem<'r> {
    /// The item's id.
    id: &'r str,
    /// The score.
    score: f32,
    /// With `coverage`, the share of the candidate's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<f32>,
    /// The text, with `return_text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    /// The time when the text was written, or else added, if texts were asked for: RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// The attributes, with `return_text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    attributes: Option<&'r Attributes>,
    /// The item's `data`, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<CallersData<'r>>,
    /// The event that it belongs to, where it was matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'r str>,
    /// Items that are nearly the same as this item, best first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    duplicates: Vec<DuplicateItem<'r>>,
    /// With `explain` and `like`, the index of the liked text that the item is most like, weights included.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<usize>,
    /// With `explain`, the words with the largest shares of the item's score.
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

/// An item that is nearly the same as a better one.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DuplicateItem<'r> {
    /// The item's id.
    pub id: &'r str,
    /// The score.
    pub score: f32,
    /// How alike the two are.
    pub similarity: f32,
}

impl<'r> ItemRanking<'r> {
    /// The answer for the items of the collection of this name.
    pub(super) fn new(
        told: &'r Pages,
        held: &'r Held,
        resolved: &'r Resolved,
        (name, return_text): (&'r str, bool),
        asked: &Asked<'_>,
    ) -> Self {
        let several = matches!(asked, Asked::Each(_));
        let results = |page: &'r Page| ranked_items(page, held, return_text);
        let one = told.pages.first().filter(|_| !several);
        let rankings = told.pages.iter().map(|page| ItemResults {
            results: results(page),
            unscored: page.ranking.unscored.len(),
            query_truncated: page.ranking.query_truncated,
            query_known: page.ranking.query_known,
        });
        let [liked, disliked] = &held.named;
        let places = |named: &NamedItems, of_found: &[usize]| {
            of_found.iter().map(|place| named.place(*place)).collect()
        };
        Self {
            collection: name,
            ranked_by: asked.is_nothing().then_some("boosts"),
            items: held.found.meant,
            shortlist: held.found.shortlist,
            results: one.map(results),
            unscored: one.map(|page| page.ranking.unscored.len()),
            rankings: several.then(|| rankings.collect()),
            query_truncated: one.is_some_and(|page| page.ranking.query_truncated),
            query_known: one.and_then(|page| page.ranking.query_known),
            like_unscored: places(liked, &told.unscored.liked),
            like_missing: &liked.missing,
            like_is_id: &liked.are_ids,
            unlike_unscored: places(disliked, &told.unscored.disliked),
            unlike_missing: &disliked.missing,
            unlike_is_id: &disliked.are_ids,
            filter_unknown: &held.unknown.filter,
            filter_mistyped: &held.unknown.mistyped,
            collapse_by_unknown: held.unknown.group_by.as_deref(),
            boosts_unknown: &held.unknown.boosts,
            ..Envelope::new(resolved, resolved.measure()).into()
        }
    }
}

/// The scored items of a page.
fn ranked_items<'r>(page: &'r Page, held: &'r Held, return_text: bool) -> Vec<RankedItem<'r>> {
    let item = |index: usize| held.found.items.get(index).map(|(_, item)| item.as_ref());
    let results = page.results().filter_map(|result| {
        let (of, score) = (item(result.index)?, result.score?);
        let duplicates = result.duplicates.iter().filter_map(|duplicate| {
            let (score, similarity) = (duplicate.ranked.score, duplicate.similarity);
            Some(DuplicateItem { id: &item(duplicate.ranked.index)?.id, score, similarity })
        });
        Some(RankedItem {
            id: &of.id,
            score,
            known: page.ranking.known.get(result.index).copied(),
            text: return_text.then_some(&*of.text),
            time: return_text.then(|| instant::written_exactly(of.time)),
            attributes: Some(&of.attributes).filter(|list| return_text && !list.is_empty()),
            data: of.data.as_deref().map(CallersData::stored),
            event: of.event.as_ref().map(|event| &*event.id),
            duplicates: duplicates.collect(),
            like: result.reason.and_then(|reason| Some(held.named[0].place(reason.like?))),
            words: result.reason.map(|reason| reason.words.as_slice()),
            opposes: result.opposes,
            related: result.related,
        })
    });
    results.collect()
}
