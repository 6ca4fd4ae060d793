//! `GET /collections/{name}/events` and `…/events/{id}`: events of matched texts, with sizes, times
//! and names; searched, merged, split and deleted by hand.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;
use cognate::engine::{Engine, Query, RankOptions};
use cognate::window::naming::{TermCounts, Terms};
use cognate::window::usual::Preset;
use cognate::window::{likeness, naming};
use cognate_collections::{
    Cancellation, Choice, Collection, CollectionError, EventChange, EventItems, Item, ItemSelector,
    Time, Write,
};
use cognate_files::instant;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::api::collections::answers::{Changed, ItemEntry};
use crate::http::api::collections::call;
use crate::http::api::collections::call::{Call, Named, filter, within};
use crate::http::api::collections::items::{LISTED, MAX_LISTED};
use crate::http::api::pipeline;
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::{BODY, COLLECTION, WRITE, refusals};
use crate::http::registry::models::LoadedModel;
use crate::http::request::fields::{CandidateId, CutText, List, ModelName};
use crate::http::request::json;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Charge;

const MAX_EVENTS: usize = 100;
const EVENTS: usize = 20;
/// Most hours of an event that are returned: those of a year.
const MAX_HOURS: usize = 366 * 24;
const SIMILAR: usize = 5;
const MIN_EVENT_ITEMS: usize = 2;
const NAMES: usize = 6;
/// Texts of an event, and of a collection, from which its names are found.
const NAMED_BY: usize = 256;
const BACKGROUND: usize = 4096;
/// Texts of an event among which its central one is chosen.
const CENTRAL_OF: usize = 32;
/// Texts of either event that are compared to score their similarity: those nearest to the mean of
/// the other event's.
const ALIKE_BY: usize = 32;
const NEAREST: usize = 32;
/// Bytes of texts, of an event and of a collection, that are read for this: fewer of long texts.
const EVENT_BYTES: usize = 64 << 10;
const BACKGROUND_BYTES: usize = 1 << 20;
/// Most terms that are counted.
const TERMS: usize = 1 << 16;
/// Bytes of memory of an item while events are computed.
const ITEM_BYTES: usize = 64;

/// The path of an event.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
struct EventPath {
    /// The collection
    name: String,
    /// The item that the event began with
    id: String,
}

/// An event of a collection, computed from the items that the collection has now.
#[derive(Debug, Serialize, ToSchema)]
struct EventEntry<'i> {
    /// The item that it began with, which may have left.
    id: &'i str,
    /// How many items it has.
    size: usize,
    /// How many different values the attribute that was asked for has among them: an event of many sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    distinct: Option<usize>,
    /// The time of its first item: RFC 3339.
    first: String,
    /// The time of its last item.
    last: String,
    /// Items an hour from the first to the last; absent if these are less than a minute apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_hour: Option<f64>,
    /// The hour with the most items.
    peak: Hour,
    /// How much of it is chatter, from 0 to 1: the less its texts say, in words the more common in the
    /// language, the more.
    chatter: f64,
    /// Words and phrases that distinguish the event from the rest of the collection, the most distinctive first.
    words: Vec<String>,
    /// The most central text.
    text: &'i str,
    /// How well the event matches the query, or how similar it is to the other event.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
}

/// An hour of an event.
#[derive(Debug, Serialize, ToSchema)]
struct Hour {
    /// How many items.
    size: usize,
    /// The beginning of the hour.
    from: String,
}

impl Hour {
    fn new((size, from): (usize, i64)) -> Self {
        Self { size, from: instant::written(from) }
    }
}

/// Events of a collection.
#[derive(Debug, Serialize, ToSchema)]
struct EventList<'i> {
    /// As they were asked for.
    events: Vec<EventEntry<'i>>,
    /// Number of matching events in all.
    total: usize,
}

/// An event with its items.
#[derive(Debug, Serialize, ToSchema)]
struct EventWithItems<'i> {
    #[serde(flatten)]
    event: EventEntry<'i>,
    /// The hours of the clock in which it has items, at most the first 8784 of them.
    hours: Vec<Hour>,
    /// By time.
    items: Vec<ItemEntry<'i>>,
}

/// What comes first in a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum EventOrder {
    /// Events that an item joined last.
    #[default]
    Last,
    /// Events that began last.
    First,
    /// Events with the most items.
    Size,
    /// Events with the most different values of the attribute that `distinct` names.
    Distinct,
    /// Events with the most items an hour.
    PerHour,
    /// Events with the most items within one hour.
    Peak,
    /// Events with the least chatter.
    Chatter,
}

impl EventOrder {
    /// The sort key, largest first. Times and numbers of items are far below 2^53.
    fn of(
        self,
        event: &EventItems<'_>,
        distinct: Option<&str>,
        engine: &Engine,
        work: &JobContext,
    ) -> Result<f64> {
        work.check()?;
        Ok(match self {
            Self::Last => event.last() as f64,
            Self::First => event.first() as f64,
            Self::Size => event.size() as f64,
            Self::Distinct => distinct.map_or(0, |name| event.distinct(name)) as f64,
            Self::PerHour => event.per_hour().unwrap_or(0.0),
            Self::Peak => event.peak().0 as f64,
            Self::Chatter => {
                let texts = texts_of(event, NAMED_BY);
                let mut terms = Terms::default();
                let bits = texts.iter().map(|text| {
                    work.check()?;
                    terms.read(engine, text);
                    Ok(terms.bits())
                });
                bits.sum::<Result<f64>>()? / texts.len().max(1) as f64
            }
        })
    }
}

/// The highest score of a query with texts of an event; without texts, below all scores.
fn answer(query: &str, texts: &[&str], engine: &Engine, work: &JobContext) -> Result<f64> {
    work.check()?;
    let query_of = Query { truncate: true, ..Query::new(engine.method("auto")?) };
    let best = RankOptions { top_k: Some(1), ..RankOptions::all(query_of) };
    let ranking = engine.rank_best(query, texts, &best)?;
    Ok(ranking.results.first().map_or(f64::NEG_INFINITY, |best| f64::from(best.score)))
}

/// Returns events with their sort keys, largest key first; equal keys by the event's name.
fn sorted<'i>(
    events: Vec<EventItems<'i>>,
    key: impl Fn(&EventItems<'i>) -> Result<f64>,
) -> Result<Vec<(f64, EventItems<'i>)>> {
    let keyed = events.into_iter().map(|event| Ok((key(&event)?, event)));
    let mut keyed: Vec<_> = keyed.collect::<Result<_>>()?;
    keyed.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.id.cmp(b.id)));
    Ok(keyed)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsParameters {
    /// Only events that an item joined at this time or later: RFC 3339, `YYYY-MM-DD HH:MM:SS`, seconds or
    /// milliseconds since 1970.
    #[param(value_type = Option<String>)]
    since: Option<Time>,
    /// The fewest items; default: 2.
    #[param(maximum = 18446744073709551615_u64)]
    least: Option<usize>,
    /// An attribute whose different values are counted for each event, as `source`.
    distinct: Option<String>,
    /// The order: `last` (the default), `first`, `size`, `distinct`, `per_hour` or `peak`, always the
    /// largest or latest; or `chatter`, the least first.
    #[param(inline)]
    sort: Option<EventOrder>,
    /// A query: events come first if one of their texts answers it best, by `auto`.
    #[param(value_type = Option<CutText>)]
    query: Option<String>,
    /// Events consist of the items that this filter admits: a filter of `/rank`, as JSON.
    filter: Option<String>,
    /// Events consist of items whose time is at most this far back, as `24h`, by the collection's clock.
    within: Option<String>,
    /// The model of the query, the central texts and the chatter; default: the server's first model.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
    /// Most events, at most 100; default: 20.
    #[param(maximum = 100)]
    limit: Option<usize>,
    /// How many of the first are skipped.
    #[param(maximum = 18446744073709551615_u64)]
    offset: Option<usize>,
}

refusals!(
    ListRefusals: COLLECTION,
    &[Code::InvalidField, Code::OutOfRange, Code::UnknownModel, Code::ResponseTooLarge, Code::TooMuchWork],
    &[Code::EmptyText, Code::TextTooLong, Code::NonFiniteScore]
);

/// Lists the events of a collection: the events of the texts that were matched.
///
/// An event consists of its items that the collection has now, so it ends when the last of them
/// leaves. Items that were not matched belong to none.
#[utoipa::path(
    get,
    path = "/collections/{name}/events",
    tag = "collections",
    operation_id = "events",
    params(("name" = String, Path, description = "The collection"), EventsParameters),
    responses((status = 200, description = "The events", body = EventList<'_>), ListRefusals),
)]
pub(crate) async fn list(Named { call, collection, .. }: Named, uri: Uri) -> Result<Response> {
    let asked: EventsParameters = json::read_query(&uri)?;
    let limit = call::page_length(asked.limit, EVENTS, MAX_EVENTS, "events")?;
    let which = ItemSelector {
        filter: filter(asked.filter.as_deref())?,
        within: within(asked.within.as_deref())?,
        ..ItemSelector::default()
    };
    if asked.query.is_some() && asked.sort.is_some() {
        let detail = "what answers a query comes in the order of its score, without `sort`";
        return Err(ApiError::at(Code::InvalidField, "/sort", detail));
    }
    if asked.sort == Some(EventOrder::Distinct) && asked.distinct.is_none() {
        let detail = "to sort by the values of an attribute, name it by `distinct`";
        return Err(ApiError::at(Code::InvalidField, "/sort", detail));
    }
    let model = Arc::clone(call.app.models().choose(asked.model.as_deref())?);
    call.compute(move |call, work| {
        let distinct = asked.distinct.as_deref();
        let (items, _memory) = chosen(&*collection, &which, &call, work)?;
        let mut events = EventItems::group(items.iter().map(|(_, item)| item));
        events.retain(|event| {
            event.size() >= asked.least.unwrap_or(MIN_EVENT_ITEMS)
                && asked.since.as_ref().is_none_or(|Time(since)| event.last() >= *since)
        });
        let engine = &model.engine;
        let events = match (&asked.query, asked.sort) {
            (None, sort) => {
                sorted(events, |event| sort.unwrap_or_default().of(event, distinct, engine, work))?
            }
            (Some(query), _) => {
                // An empty query is refused where there is no event, too.
                answer(query, &[], engine, work)?;
                sorted(events, |event| answer(query, &texts_of(event, NAMED_BY), engine, work))?
            }
        };
        let total = events.len();
        let page: Vec<_> = events.iter().skip(asked.offset.unwrap_or(0)).take(limit).collect();
        let naming = Naming::new(&items, engine, &call, work)?;
        let told = page.into_iter().map(|(score, event)| {
            let score =
                asked.query.as_ref().map(|_| *score as f32).filter(|score| score.is_finite());
            let distinct = distinct.map(|name| event.distinct(name));
            Ok(EventEntry { score, distinct, ..naming.entry(event, work)? })
        });
        let events: Vec<EventEntry<'_>> = told.collect::<Result<_>>()?;
        let bytes = events.iter().map(|event| event.text.len() + ITEM_BYTES).sum();
        call.answer(bytes, &EventList { events, total })
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventParameters {
    /// An attribute whose different values are counted, as `source`.
    distinct: Option<String>,
    /// The model that the central text is found by, unless it is the server's first.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
    /// Most items, at most 1000; default: 100.
    #[param(maximum = 1000)]
    limit: Option<usize>,
    /// How many of the first items are skipped.
    #[param(maximum = 18446744073709551615_u64)]
    offset: Option<usize>,
}

/// Returns an event of a collection, with its items by time.
///
/// Items that were matched into the event, or moved there, a page at a time.
#[utoipa::path(
    get,
    path = "/collections/{name}/events/{id}",
    tag = "collections",
    operation_id = "event",
    params(EventPath, EventParameters),
    responses((status = 200, description = "The event", body = EventWithItems<'_>), ListRefusals),
)]
pub(crate) async fn look(Named { call, collection, id }: Named, uri: Uri) -> Result<Response> {
    let page = EventPage::new(&call.app, &uri)?;
    page.answer(call, collection, id).await
}

struct EventPage {
    model: Arc<LoadedModel>,
    distinct: Option<String>,
    offset: usize,
    limit: usize,
}

impl EventPage {
    fn new(app: &App, uri: &Uri) -> Result<Self> {
        let asked: EventParameters = json::read_query(uri)?;
        Ok(Self {
            limit: call::page_length(asked.limit, LISTED, MAX_LISTED, "items")?,
            offset: asked.offset.unwrap_or(0),
            model: Arc::clone(app.models().choose(asked.model.as_deref())?),
            distinct: asked.distinct,
        })
    }

    async fn answer(
        self,
        call: Call,
        collection: Arc<dyn Collection>,
        id: Box<str>,
    ) -> Result<Response> {
        call.compute(move |call, work| {
            let all = ItemSelector::default();
            let (items, _memory) = chosen(&*collection, &all, &call, work)?;
            let of_event = items.iter().map(|(_, item)| item).filter(|item| item.is_of_event(&id));
            let events = EventItems::group(of_event);
            let event = events.first().ok_or_else(no_event)?;
            let page = event.items.iter().skip(self.offset).take(self.limit);
            let page: Vec<&Arc<Item>> = page.copied().collect();
            let hours: Vec<Hour> = event.hours().take(MAX_HOURS).map(Hour::new).collect();
            let texts: usize = page.iter().map(|item| item.bytes()).sum();
            let bytes = texts + hours.len() * ITEM_BYTES;
            let naming = Naming::new(&items, &self.model.engine, &call, work)?;
            let distinct = self.distinct.as_deref().map(|name| event.distinct(name));
            let entry = EventEntry { distinct, ..naming.entry(event, work)? };
            let items = page.into_iter().map(|item| ItemEntry::from(item.as_ref())).collect();
            call.answer(bytes, &EventWithItems { event: entry, hours, items })
        })
        .await
    }
}

/// The body of `POST /collections/{name}/events/{id}/merge`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct MergeRequest<'b> {
    /// The events whose items become items of this event.
    #[schema(value_type = Vec<CandidateId<'b>>, min_items = 1, max_items = 10000)]
    events: List<CandidateId<'b>>,
}

/// The body of `POST /collections/{name}/events/{id}/split`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct SplitRequest<'b> {
    /// The items of the event that become one of their own.
    #[schema(value_type = Vec<CandidateId<'b>>, min_items = 1, max_items = 10000)]
    ids: List<CandidateId<'b>>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SimilarParameters {
    /// The kind of the stream: `topics` (the default) or `stories`.
    #[param(inline)]
    preset: Option<Preset>,
    /// The fewest items of an event; default: 2.
    #[param(maximum = 18446744073709551615_u64)]
    least: Option<usize>,
    /// The model that says how alike they are, unless it is the server's first.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
    /// Most events, at most 32; default: 5.
    #[param(maximum = 32)]
    limit: Option<usize>,
}

/// Lists the events most similar to an event, which may be the same event.
///
/// The `score` is that by which texts of the smaller event would join the larger. Nothing is changed; `merge`
/// joins them.
#[utoipa::path(
    get,
    path = "/collections/{name}/events/{id}/similar",
    tag = "collections",
    operation_id = "similar_events",
    params(EventPath, SimilarParameters),
    responses((status = 200, description = "The events", body = EventList<'_>), ListRefusals),
)]
pub(crate) async fn similar(Named { call, collection, id }: Named, uri: Uri) -> Result<Response> {
    let asked: SimilarParameters = json::read_query(&uri)?;
    let limit = call::page_length(asked.limit, SIMILAR, NEAREST, "similar events")?;
    let model = Arc::clone(call.app.models().choose(asked.model.as_deref())?);
    call.compute(move |call, work| {
        let engine = &model.engine;
        let (items, _memory) = chosen(&*collection, &ItemSelector::default(), &call, work)?;
        let mut events = EventItems::group(items.iter().map(|(_, item)| item));
        let own = events.iter().position(|event| event.id == &*id).ok_or_else(no_event)?;
        let own = events.swap_remove(own);
        events.retain(|event| event.size() >= asked.least.unwrap_or(MIN_EVENT_ITEMS));
        let (texts, total) = (texts_of(&own, ALIKE_BY), events.len());
        let middle = likeness::middle(engine, &texts)?;
        let mut events = sorted(events, |event| {
            work.check()?;
            let other = likeness::middle(engine, &texts_of(event, ALIKE_BY))?;
            Ok(f64::from(likeness::near(&middle, &other)))
        })?;
        events.truncate(NEAREST);
        let events = events.into_iter().map(|(_, event)| event).collect();
        let mut events = sorted(events, |event| {
            let other = texts_of(event, ALIKE_BY);
            let both: [&[&str]; 2] = match event.size() < own.size() {
                true => [&other, &texts],
                false => [&texts, &other],
            };
            let preset = asked.preset.unwrap_or_default();
            let score = likeness::score(engine, preset, both, || work.check().is_ok())?;
            work.check()?;
            Ok(f64::from(score))
        })?;
        events.truncate(limit);
        let naming = Naming::new(&items, engine, &call, work)?;
        let told = events.iter().map(|(score, event)| {
            Ok(EventEntry { score: Some(*score as f32), ..naming.entry(event, work)? })
        });
        let events: Vec<EventEntry<'_>> = told.collect::<Result<_>>()?;
        let bytes = events.iter().map(|event| event.text.len() + ITEM_BYTES).sum();
        call.answer(bytes, &EventList { events, total })
    })
    .await
}

refusals!(
    ChangeRefusals: BODY,
    &[Code::EmptyList, Code::TooManyItems, Code::UnknownModel, Code::CollectionFull],
    &[Code::ResponseTooLarge, Code::TooMuchWork], WRITE, COLLECTION
);

fn names_of(
    (field, what): (&'static str, &str),
    list: List<CandidateId<'_>>,
    app: &App,
) -> Result<Vec<Box<str>>> {
    pipeline::check_length(field, what, list.length, ("max_texts", app.settings.max_texts))?;
    Ok(list.items.iter().map(|name| name.digits().into()).collect())
}

/// Merges events: all items of some become items of this event.
///
/// Items keep their places, so that later texts join by what the events are then. Needs a key of the scope
/// `collection`, where keys are set.
#[utoipa::path(
    post,
    path = "/collections/{name}/events/{id}/merge",
    tag = "collections",
    operation_id = "merge_events",
    params(EventPath, EventParameters),
    request_body = MergeRequest<'_>,
    responses((status = 200, description = "The event", body = EventWithItems<'_>), ChangeRefusals),
)]
pub(crate) async fn merge(
    Named { mut call, collection, id: into }: Named,
    request: Request,
) -> Result<Response> {
    let page = EventPage::new(&call.app, request.uri())?;
    let body = call.json_body(request).await?;
    let MergeRequest { events } = json::read_object(&body)?;
    let events = names_of(("/events", "events"), events, &call.app)?;
    let change = EventChange::Merge { into: into.clone(), events };
    call.write(&collection, Write::Move(change, usize::MAX), "").await?;
    page.answer(call, collection, into).await
}

/// Splits an event: some of its items become a new event, which is returned.
///
/// It is called by the first of them whose name no other event has. Items keep their places, so that later
/// texts join by what the events are then. Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    post,
    path = "/collections/{name}/events/{id}/split",
    tag = "collections",
    operation_id = "split_event",
    params(EventPath, EventParameters),
    request_body = SplitRequest<'_>,
    responses((status = 200, description = "The event that came of it", body = EventWithItems<'_>), ChangeRefusals),
)]
pub(crate) async fn split(
    Named { mut call, collection, id: event }: Named,
    request: Request,
) -> Result<Response> {
    let page = EventPage::new(&call.app, request.uri())?;
    let body = call.json_body(request).await?;
    let SplitRequest { ids } = json::read_object(&body)?;
    let ids = names_of(("/ids", "items"), ids, &call.app)?;
    let first = ids.first().cloned();
    call.write(&collection, Write::Move(EventChange::Split { event, ids }, usize::MAX), "").await?;
    let of = Arc::clone(&collection);
    let made = call.again().look_up(move |_| {
        let names: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
        let found = of.find(&names, cognate_collections::now())?.into_iter().flatten().next();
        let event = found.and_then(|item| Some(item.event.as_ref()?.id.clone()));
        event.ok_or_else(no_event)
    });
    page.answer(call, collection, made.await?).await
}

refusals!(DeleteRefusals: &[Code::CollectionFull, Code::TooMuchWork], WRITE, COLLECTION);

/// Removes an event from a collection: all items that belong to the event.
///
/// Needs a key of the scope `collection`, where keys are set.
#[utoipa::path(
    delete,
    path = "/collections/{name}/events/{id}",
    tag = "collections",
    operation_id = "delete_event",
    params(EventPath),
    responses((status = 200, description = "What came of it", body = Changed), DeleteRefusals),
)]
pub(crate) async fn delete(Named { mut call, collection, id }: Named) -> Result<Response> {
    call.check_writes()?;
    let event = Some(String::from(id).into());
    let applied =
        call.remove(&collection, ItemSelector { event, ..ItemSelector::default() }).await?;
    if applied.removed == 0 {
        return Err(no_event());
    }
    call.answer(0, &Changed::from(applied))
}

type Items = Vec<(u64, Arc<Item>)>;

/// The items that events are computed from, and the memory charged for them.
fn chosen(
    collection: &dyn Collection,
    which: &ItemSelector<'_>,
    Call { app, caller, .. }: &Call,
    work: &JobContext,
) -> Result<(Items, Charge)> {
    let now = cognate_collections::now();
    call::check_filter(app, &which.filter, collection)?;
    let count = collection.told(now)?.items;
    let memory = app.unsent.of(&caller.client).work(count.saturating_mul(ITEM_BYTES))?;
    let chosen = collection.choose(which, &Choice::All, now, Cancellation::when(work))?;
    Ok((chosen.items, memory))
}

struct Naming<'e> {
    engine: &'e Engine,
    all: TermCounts,
    /// The memory of these terms, and of those of one event.
    _memory: Charge,
}

impl<'e> Naming<'e> {
    fn new(
        items: &Items,
        engine: &'e Engine,
        Call { app, caller, .. }: &Call,
        work: &JobContext,
    ) -> Result<Self> {
        let texts = items.iter().map(|(_, item)| &*item.text);
        let texts = some_of(texts, BACKGROUND, BACKGROUND_BYTES);
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let memory =
            [bytes, bytes.min(EVENT_BYTES)].map(|texts| TermCounts::bytes_of(texts, TERMS));
        let memory = app.unsent.of(&caller.client).work(memory.iter().sum())?;
        Ok(Self { engine, all: counted(engine, &texts, work)?, _memory: memory })
    }

    fn entry<'i>(&self, event: &EventItems<'i>, work: &JobContext) -> Result<EventEntry<'i>> {
        let terms = counted(self.engine, &texts_of(event, NAMED_BY), work)?;
        let names = naming::names(&terms, &self.all, NAMES);
        let texts = texts_of(event, CENTRAL_OF);
        work.check()?;
        let central = naming::central(self.engine, &texts)?;
        Ok(EventEntry {
            id: event.id,
            size: event.size(),
            distinct: None,
            first: instant::written(event.first()),
            last: instant::written(event.last()),
            per_hour: event.per_hour().map(hundredths),
            peak: Hour::new(event.peak()),
            chatter: hundredths(terms.chatter()),
            words: names.into_iter().map(str::to_owned).collect(),
            text: texts.get(central).copied().unwrap_or_default(),
            score: None,
        })
    }
}

fn counted(engine: &Engine, texts: &[&str], work: &JobContext) -> Result<TermCounts> {
    let (mut terms, mut counts) = (Terms::default(), TermCounts::default());
    for text in texts {
        work.check()?;
        terms.read(engine, text);
        counts.add(&terms, TERMS);
    }
    Ok(counts)
}

pub(super) fn hundredths(number: f64) -> f64 {
    (100.0 * number).round() / 100.0
}

fn texts_of<'i>(event: &EventItems<'i>, most: usize) -> Vec<&'i str> {
    some_of(event.items.iter().map(|item| &*item.text), most, EVENT_BYTES)
}

/// At most `most` texts, evenly chosen, and fewer of long ones: about as many as `bytes` allows,
/// but at least one.
fn some_of<'t>(
    texts: impl ExactSizeIterator<Item = &'t str> + Clone,
    most: usize,
    bytes: usize,
) -> Vec<&'t str> {
    let spread = |most: usize| {
        let (all, count) = (texts.len(), texts.len().min(most));
        let places = (0..count).map(move |at| at * all / count.max(1));
        let mut texts = texts.clone().enumerate();
        places.filter_map(move |place| Some(texts.find(|(at, _)| *at == place)?.1))
    };
    let length: usize = spread(most).map(str::len).sum();
    let fit = (most.min(texts.len()) as u128 * bytes as u128 / length.max(1) as u128) as usize;
    let (mut some, mut left) = (Vec::new(), bytes);
    for text in spread(most.min(fit.max(1))) {
        if !some.is_empty() && text.len() > left {
            break;
        }
        left = left.saturating_sub(text.len());
        some.push(text);
    }
    some
}

fn no_event() -> ApiError {
    CollectionError::NoEvent.into()
}
