//! `cognate collection rank`: the items of a collection by how alike they are to a text, or to items and
//! not to others.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use clap::Args;
use cognate::engine::{Likes, Measure, Oppositions, PageOptions, RankedFor, WordShare};
use cognate_collections::{
    Attributes, Cancellation, Choice, Chosen as ChosenItems, Collection, Filter, Item,
    ItemSelector, TopQuery,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::ask::{Chosen, OpposedResults, on_a_line, opposed};
use crate::cli::choices::choice;
use crate::cli::collection::home::{HomeArgs, named};
use crate::cli::events::duration;
use crate::cli::{Failure, ask, count, print, usage};
use crate::http::api::rank::LikeStrategy;
use crate::http::request::fields::ShortlistLength;

#[derive(Debug, Args)]
pub(in crate::cli) struct RankArgs {
    /// Name of the collection
    name: String,
    /// The text to rank for, unless --like is given
    #[arg(required_unless_present = "like", conflicts_with = "like")]
    query: Option<String>,
    #[command(flatten)]
    home: HomeArgs,
    /// Rank for items of these ids, which are then no results; may stand more than once
    #[arg(long, value_name = "ID")]
    like: Vec<String>,
    /// And against items of these ids; may stand more than once
    #[arg(long, value_name = "ID", requires = "like")]
    unlike: Vec<String>,
    /// What the scores with several liked items come to [default: best]
    #[arg(long, value_parser = choice::<LikeStrategy>(), requires = "like")]
    strategy: Option<LikeStrategy>,
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
    /// Print the words with the largest shares of the first twenty scores
    #[arg(long)]
    explain: bool,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_parser = choice::<Measure>())]
    measure: Option<Measure>,
    #[command(flatten)]
    opposites: OpposedResults,
    #[command(flatten)]
    chosen: Chosen,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Found<'f> {
    collection: &'f str,
    /// How many items were ranked.
    items: usize,
    /// Where not all that are meant were: how many were taken for each text that is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortlist: Option<usize>,
    results: Vec<Line<'f>>,
    /// How many of them cannot be scored.
    unscored: usize,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    opposes: Option<Oppositions>,
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { id, score, text, words, opposes, .. } in &self.results {
            let score = score.to_string();
            writeln!(f, "{score:<12} {}  {}", on_a_line(id), on_a_line(text))?;
            if !words.is_empty() {
                writeln!(f, "{:<12}   by {}", "", ask::rank::shares(words))?;
            }
            if let Some(kinds) = opposes.filter(|kinds| !kinds.is_empty()) {
                writeln!(f, "{:<12}   opposed by {}", "", opposed(kinds))?;
            }
        }
        Ok(())
    }
}

/// The items that are named, which must be there.
fn items(collection: &dyn Collection, ids: &[String], now: i64) -> Result<Vec<Arc<Item>>, Failure> {
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    let found = collection.find(&names, now)?.into_iter().zip(ids);
    let there = |(item, id): (Option<Arc<Item>>, &String)| {
        item.ok_or_else(|| usage(format!("the collection has no item `{id}`")))
    };
    found.map(there).collect()
}

fn filter(args: &RankArgs) -> Result<Filter, Failure> {
    let Some(written) = &args.filter else { return Ok(Filter::default()) };
    let wrong = |problem: cognate_collections::FilterProblem| {
        usage(format!("--filter{}: {}", problem.pointer, problem.what))
    };
    Filter::read(written).map_err(wrong)
}

pub(super) fn run(args: &RankArgs) -> Result<(), Failure> {
    let filter = filter(args)?;
    let collections = args.home.read()?;
    let collection = named(&*collections, &args.name)?;
    let now = cognate_collections::now();
    let (liked, disliked) =
        (items(&*collection, &args.like, now)?, items(&*collection, &args.unlike, now)?);
    let without = liked.iter().chain(&disliked).map(|item| Cow::from(&*item.id)).collect();
    let model = args.chosen.open()?;
    let resolved = args.opposites.of(args.chosen.ranked_by(&model, args.measure)?);
    let engine = &model.engine;
    let length = match args.shortlist {
        Some(shortlist) => shortlist.length(),
        None => {
            let results = args.offset.saturating_add(args.top_k);
            let items = || Ok::<_, Failure>(collection.told(now)?.items);
            resolved.usual_shortlist(collections.is_remote(), results, items)?
        }
    };
    let likes = Likes {
        disliked: disliked.iter().map(|item| &*item.text).collect(),
        strategy: args.strategy.unwrap_or_default().into(),
        unlike_weight: Likes::UNLIKE_WEIGHT,
        ..Likes::any_of(
            args.query.as_deref().into_iter().chain(liked.iter().map(|item| &*item.text)),
        )
    };
    let asked = args.query.as_deref().map_or(RankedFor::Likes(&likes), RankedFor::Query);
    let page = PageOptions {
        offset: args.offset,
        top_k: Some(args.top_k),
        explain: args.explain,
        drop_opposed: args.opposites.are_dropped(),
        ..PageOptions::default()
    };
    let choice = match length {
        // Vectors that narrow the choice pay off from the second question on; this process has one.
        None => Choice::All,
        Some(length) => Choice::Shortlist(TopQuery::of_liked(engine, &likes, length)),
    };
    let event = args.event.as_deref().map(Cow::Borrowed);
    let which = ItemSelector { filter, event, within: args.within, without };
    let ChosenItems { items, meant } =
        collection.choose(&which, &choice, now, Cancellation::NEVER)?;
    let texts: Vec<&str> = items.iter().map(|(_, item)| &*item.text).collect();
    if texts.is_empty() {
        return Err(usage("no item of the collection is left to be ranked"));
    }
    let (page, _) = ask::rank::rank(&resolved, asked, &page, &texts)?;
    let lines = page.results().filter_map(|result| {
        let (_, item) = items.get(result.index)?;
        // What cannot be scored is no result.
        let score = result.score?;
        Some(Line {
            id: &item.id,
            score,
            text: &item.text,
            attributes: &item.attributes,
            data: item.data.as_deref(),
            words: result.reason.map_or(&[], |reason| &reason.words),
            opposes: result.opposes,
        })
    });
    let found = Found {
        collection: &args.name,
        items: meant,
        shortlist: length,
        results: lines.collect(),
        unscored: page.ranking.unscored.len(),
    };
    match args.json {
        true => print(&serde_json::to_string(&found)?),
        false => print(&found.to_string()),
    }
}
