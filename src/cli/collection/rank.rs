//! `cognate collection rank`: the items of a collection by their similarity to a text, or to some
//! items and not to others.

use std::borrow::Cow;
use std::fmt;

use clap::Args;
use cognate::engine::rank::Asked;
use cognate::engine::{Duplicate, Likes, Measure, Oppositions, PageOptions, Strategy, WordShare};
use cognate_collections::rank::{ItemSearch, LikedBy, NamedItems};
use cognate_collections::{
    Attributes, Cancellation, Filter, ItemBoosts, ItemSelector, UnknownNames, rank,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::ask::rank::{judged, share, show_result, threshold};
use crate::cli::ask::{Chosen, KnownQuery, OpposedResults, on_a_line};
use crate::cli::choices::choice;
use crate::cli::collection::home::{HomeArgs, named};
use crate::cli::events::duration;
use crate::cli::{Failure, ask, count, print, usage};
use crate::http::api::rank::{DuplicateItem, ItemBoostFields, item_boosts};
use crate::http::error::ApiError;
use crate::http::request::fields::{List, Share, ShortlistLength};
use crate::http::request::threshold::Threshold;

#[derive(Debug, Args)]
pub(in crate::cli) struct RankArgs {
    /// Name of the collection
    name: String,
    /// The query text, unless --like is given; without either, only --boost ranks
    #[arg(required_unless_present_any = ["like", "boost"], conflicts_with = "like")]
    query: Option<String>,
    #[command(flatten)]
    home: HomeArgs,
    /// Rank items by similarity to the item of this id, which is then no result; can be repeated
    #[arg(long, value_name = "ID")]
    like: Vec<String>,
    /// Rank lower what is similar to the item of this id; can be repeated
    #[arg(long, value_name = "ID", requires = "like")]
    unlike: Vec<String>,
    /// What the scores with several liked items come to [default: best]
    #[arg(long, value_parser = choice::<Strategy>(), requires = "like")]
    strategy: Option<Strategy>,
    /// Only items that this admits, as `{"lang": "en", "year": {"gte": 2000}}`
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// Only items of the event of this name
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Only items of which the time is no further back, as 30s, 15m, 24h or 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<i64>,
    /// How many items are scored: `all`, or so many that are nearest to what is asked about by avg-cos
    /// [default: all up to 5000, of more 1000 by auto, coverage and dynamax; all up to 200000 by others]
    #[arg(long, value_name = "all|N", value_parser = ShortlistLength::parse)]
    shortlist: Option<ShortlistLength>,
    /// Most items to print
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<usize>(1, 100_000))]
    top_k: usize,
    /// Pass over the first items
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<usize>(0, 100_000))]
    offset: usize,
    /// Also tell whether each item is related: its score is at or above this, a number or `calibrated`, and
    /// it does not say the opposite of the query, unless --opposites is ignore
    #[arg(long, value_name = "SCORE", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// List an item that is alike a better one from this score on, or `calibrated`, below that
    #[arg(long, value_name = "SCORE", value_parser = threshold)]
    collapse: Option<Threshold>,
    /// Leave the best item alone of those that have the same value of this attribute
    #[arg(long, value_name = "ATTRIBUTE")]
    collapse_by: Option<String>,
    /// Leave so many of the same value, the best of them
    #[arg(
        long,
        value_name = "N",
        default_value_t = rank::PER_GROUP,
        requires = "collapse_by",
        value_parser = count::<usize>(1, 100_000)
    )]
    per_group: usize,
    /// Choose for variety as well: 1 for the scores alone, 0 for items that differ
    #[arg(long, value_name = "LAMBDA", value_parser = share)]
    diversify: Option<Share>,
    /// Raise what is new, as `{"half_life": "30d", "weight": 0.2}`, or has a large number, as
    /// `{"attribute": "views", "half": 1000, "weight": 0.1}`; may stand more than once
    #[arg(long, value_name = "JSON")]
    boost: Vec<String>,
    /// Print the words with the largest shares of the first twenty scores, and whether they stand in the
    /// query (or what is liked), the candidate or both
    #[arg(long)]
    explain: bool,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_parser = choice::<Measure>())]
    measure: Option<Measure>,
    #[command(flatten)]
    known: KnownQuery,
    #[command(flatten)]
    opposites: OpposedResults,
    #[command(flatten)]
    chosen: Chosen,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Found<'f> {
    collection: &'f str,
    /// `boosts`, if these alone rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranked_by: Option<&'static str>,
    items: usize,
    /// If not all selected items were ranked: how many were taken for each text of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortlist: Option<usize>,
    results: Vec<Line<'f>>,
    /// Number of items that cannot be scored.
    unscored: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// Indices of liked and disliked items that the collection does not have.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    like_missing: &'f [usize],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unlike_missing: &'f [usize],
    #[serde(flatten)]
    unknown: &'f UnknownNames,
}

#[derive(Debug, Serialize)]
struct Line<'f> {
    id: &'f str,
    score: f32,
    text: &'f str,
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    attributes: &'f Attributes,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'f RawValue>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    words: &'f [WordShare],
    /// Items that are nearly the same as this one, best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    duplicates: Vec<DuplicateItem<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opposes: Option<Oppositions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<bool>,
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { id, score, text, words, opposes, related, duplicates, .. } in &self.results {
            let text = format!("{}  {}", on_a_line(id), on_a_line(text));
            let same = duplicates.iter().map(|one| one.id);
            show_result(f, (Some(*score), &text), (*related, *opposes), words, same)?;
        }
        Ok(())
    }
}

pub(super) fn filter(written: Option<&str>) -> Result<Filter, Failure> {
    let Some(written) = written else { return Ok(Filter::default()) };
    let wrong = |problem: cognate_collections::FilterProblem| {
        usage(format!("--filter{}: {}", problem.pointer, problem.what))
    };
    Filter::read(written).map_err(wrong)
}

impl RankArgs {
    /// The query, or the texts of the liked and disliked items.
    fn asked<'t>(&'t self, [liked, disliked]: &'t [NamedItems; 2]) -> Asked<'t> {
        if let Some(query) = &self.query {
            return Asked::from(query.as_str());
        }
        if self.like.is_empty() {
            return Asked::Nothing;
        }
        let texts = |named: &'t NamedItems, ids: &[String]| {
            (0..ids.len()).filter_map(|place| named.text(place)).collect::<Vec<&'t str>>()
        };
        let disliked = texts(disliked, &self.unlike).into_iter().map(Cow::from).collect();
        let strategy = self.strategy.unwrap_or_default();
        Likes { disliked, strategy, ..Likes::any_of(texts(liked, &self.like)) }.into()
    }
}

fn boosts(args: &RankArgs) -> Result<Option<ItemBoosts>, Failure> {
    let mut items = Vec::new();
    for one in &args.boost {
        let wrong = |error: serde_json::Error| usage(format!("--boost `{one}`: {error}"));
        items.push(serde_json::from_str::<ItemBoostFields<'_>>(one).map_err(wrong)?);
    }
    let wrong = |error: ApiError| usage(format!("--boost: {}", error.detail));
    let rank_alone = args.query.is_none() && args.like.is_empty();
    item_boosts(&List { length: items.len(), items }, rank_alone).map_err(wrong)
}

pub(super) fn run(args: &RankArgs) -> Result<(), Failure> {
    let (filter, boosts) = (filter(args.filter.as_deref())?, boosts(args)?);
    let collections = args.home.read()?;
    let collection = named(&*collections, &args.name)?;
    let now = cognate_collections::now();
    let named = |ids: &[String]| {
        let ids: Vec<_> = ids.iter().map(|id| LikedBy::Id(Cow::from(id))).collect();
        NamedItems::find_liked_items(&*collection, &ids, now)
    };
    let named = [named(&args.like)?, named(&args.unlike)?];
    let others = (args.collapse_by.as_deref(), boosts.as_ref());
    let unknown = UnknownNames::find(&*collection, &filter, others, now, Cancellation::NEVER)?;
    let without = named.iter().flat_map(NamedItems::ids).map(Cow::from).collect();
    let model = args.chosen.open()?;
    let resolved = args.opposites.of(args.chosen.ranked_by(&model, args.measure)?);
    let (resolved, _) = judged(args.known.of(resolved), args.threshold)?;
    let page = PageOptions {
        offset: args.offset,
        top_k: Some(args.top_k),
        explain: args.explain,
        drop_opposed: args.opposites.are_dropped(),
        ..ask::rank::varied(args.collapse, args.diversify, &resolved)?
    };
    let event = args.event.as_deref().map(Cow::Borrowed);
    let search = ItemSearch {
        collection: &*collection,
        engine: &model.engine,
        which: ItemSelector { filter, event, within: args.within, without },
        now,
        shortlist: args.shortlist.map(|shortlist| shortlist.length()),
        is_remote: collections.is_remote(),
        // Vectors that narrow the choice pay off from the second question on; this process has one.
        narrows: false,
    };
    let mut question = ask::rank::question(&resolved, args.asked(&named), page)?;
    if !rank::ranks(&mut question, &named[0], boosts.as_ref()) {
        return Err(usage("the collection has none of the liked items"));
    }
    let found = search.find(&question, Cancellation::NEVER)?;
    let [like_missing, unlike_missing] = named.each_ref().map(|named| &*named.missing);
    for (ids, missing) in [(&args.like, like_missing), (&args.unlike, unlike_missing)] {
        for id in missing.iter().filter_map(|place| ids.get(*place)).filter(|_| !args.json) {
            ask::note(&format!("the collection has no item `{id}`, which is part of no score"));
        }
    }
    unknown.lines().filter(|_| !args.json).for_each(|line| ask::note(&line));
    if found.items.is_empty() {
        return Err(usage("no item of the collection is left to be ranked"));
    }
    let clock = collection.told(now)?.settings.clock(now);
    let items = found.ranked();
    let boosts = boosts.as_ref().map(|boosts| (boosts, clock));
    let group_by = args.collapse_by.as_deref().map(|name| (name, args.per_group));
    let candidates = rank::candidates(&items, boosts, group_by);
    let made = ask::rank::rank(&resolved, &question, &candidates)?;
    let Some(page) = made.one() else { return Ok(()) };
    let item = |index: usize| items.get(index).map(|one| one.0);
    let duplicate = |one: &Duplicate| {
        let (id, score) = (&*item(one.ranked.index)?.id, one.ranked.score);
        Some(DuplicateItem { id, score, similarity: one.similarity })
    };
    let lines = page.results().filter_map(|result| {
        let item = item(result.index)?;
        // An item without a score is no result.
        let score = result.score?;
        Some(Line {
            id: &item.id,
            score,
            text: &item.text,
            attributes: &item.attributes,
            data: item.data.as_deref(),
            words: result.reason.map_or(&[], |reason| &reason.words),
            duplicates: result.duplicates.iter().filter_map(duplicate).collect(),
            opposes: result.opposes,
            related: result.related,
        })
    });
    let shown = Found {
        collection: &args.name,
        ranked_by: question.asked.is_nothing().then_some("boosts"),
        items: found.meant,
        shortlist: found.shortlist,
        results: lines.collect(),
        unscored: page.ranking.unscored.len(),
        query_known: page.ranking.query_known,
        like_missing,
        unlike_missing,
        unknown: &unknown,
    };
    if args.json {
        return print(&serde_json::to_string(&shown)?);
    }
    ask::tell_query(page);
    print(&shown.to_string())
}
