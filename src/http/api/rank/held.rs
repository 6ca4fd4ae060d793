//! A question whose candidates are the items of a collection, or stand in the request as ever.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use cognate::engine::{Counts, Oppositions, Page, Query, WordShare};
use cognate_collections::{
    Attributes, Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError, Filter,
    Item, ItemBoosts, ItemSelector, SHORTLIST_METHOD,
};
use cognate_files::instant;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::api::collections::call;
use crate::http::api::collections::items::within;
use crate::http::api::pipeline::{AnyQuestion, Endpoint, Plan, Question};
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::plan::Computed;
use crate::http::api::rank::read_as::{ReadAs, query_known, query_read_as};
use crate::http::api::rank::response::SharedWord;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Pointer, Segment};
use crate::http::observe::metrics::RankPart;
use crate::http::registry::models::Models;
use crate::http::request::fields::{
    CallersData, Candidate, CandidateId, Count, DislikedText, LikedText, List, OppositionName,
    ShortlistLength, Text,
};
use crate::http::request::json;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::{Answer, Charge, Unsent};

/// Results of a collection unless a request says otherwise.
const RESULTS: usize = 10;
/// Bytes that an item takes while it is ranked: its place in the lists, and its score or why it has none.
const ITEM_BYTES: usize = size_of::<(u64, Arc<Item>)>() + size_of::<Candidate<'_>>() + 64;
/// Bytes of the text of an item, roughly.
const BYTES_PER_ITEM: usize = 100;
/// Bytes of a candidate's `data` and scores.
const CALLERS_BYTES: usize = 96;
/// Bytes of another number of an item, with its place.
const NUMBER_BYTES: usize = 16;
/// Bytes for each byte of a text where tokens are stored: a token is a letter and a blank at least.
const TOKEN_BYTES: usize = 4;

/// A question to `/rank`.
pub(crate) struct Ranked<'b> {
    request: RankRequest<'b>,
    caller: Caller,
    /// Whether some query for candidates of the request is read as other words, if there are any.
    guesses: OnceLock<bool>,
    /// The items found in the collection, once they were looked up.
    held: OnceLock<Held>,
}

/// The items of a collection that a question ranks.
pub(super) struct Held {
    collection: Arc<dyn Collection>,
    /// The items that are ranked, with their numbers.
    pub(super) items: Vec<(u64, Arc<Item>)>,
    /// Number of items selected by the question; `items` may be the ones among them that can be best.
    pub(super) meant: usize,
    /// Length of the shortlist for each text, if there is one.
    pub(super) shortlist: Option<usize>,
    liked: NamedItems,
    disliked: NamedItems,
    read_as: ReadAs,
    /// Attributes that the filter asks for and no item of the collection has.
    filter_unknown: Vec<Box<str>>,
    /// The share of a score that is not boosts, and what boosts add to that of each item.
    boosts: Option<(f32, Vec<f32>)>,
    /// The memory charged for ranking the items.
    _memory: Option<Charge>,
}

impl Held {
    /// Looks up the items of a question.
    fn of(
        request: &RankRequest<'_>,
        (caller, name): (&Caller, &str),
        (app, models, work): (&App, &Models, &JobContext),
    ) -> Result<Self, ApiError> {
        let collection = app.collections.of(caller)?.get(name);
        let collection = collection.map_err(|error| call::of_named(&error))?;
        let now = cognate_collections::now();
        let within = within(request.within.as_deref())?;
        let filter = request.filter.map(|written| Filter::read(written.get())).transpose();
        let filter = filter.map_err(|problem| call::of_filter(&problem, "/filter"))?;
        let filter = filter.unwrap_or_default();
        let (liked, disliked) = named_items(request, &*collection, now)?;
        let told = || collection.told(now).map_err(|error| call::of_named(&error));
        let boosts = request.item_boosts()?;
        let is_cancelled = || work.check().is_err();
        let cancel = Cancellation::when(&is_cancelled);
        let mut held = Self {
            collection: Arc::clone(&collection),
            items: Vec::new(),
            meant: 0,
            shortlist: None,
            liked,
            disliked,
            read_as: ReadAs::new(),
            filter_unknown: Vec::new(),
            boosts: None,
            _memory: None,
        };
        // Liked and disliked items are no results, nor are excluded ones.
        let named = held.liked.items.iter().chain(&held.disliked.items).flatten();
        let named = named.map(|item| Cow::from(&*item.id));
        let excluded = request.exclude.iter().flat_map(|list| &list.items);
        let without = named.chain(excluded.map(CandidateId::digits)).collect();
        let event = request.event.as_deref().map(Cow::Borrowed);
        let which = ItemSelector { filter, event, within, without };
        let resolved = request.resolve(models)?;
        let count = || Ok(told()?.items);
        call::check_filter(app, &which.filter, count)?;
        let choose = |asked: &RankRequest<'_>, collection: &dyn Collection| {
            let (choice, shortlist) = asked.choice(request.shortlist, &resolved, app, count)?;
            let chosen = collection.choose(&which, &choice, now, cancel);
            let chosen = chosen.map_err(|error| call::of_choice(error, call::of_named, work))?;
            Ok::<_, ApiError>((chosen, shortlist))
        };
        let mut chosen = choose(&request.over(&held), &*held.collection)?;
        let bytes = || told().map_or(usize::MAX, |told| told.items.saturating_mul(BYTES_PER_ITEM));
        if request.guessing(&resolved, bytes, app).is_some() {
            // Which words may be meant is told by all items that are meant, not by those of a shortlist.
            let all = held.collection.choose(&which, &Choice::All, now, cancel);
            let all = match all {
                Err(ChooseError::Collection(CollectionError::TooManyChosen { .. })) => Vec::new(),
                all => all.map_err(|error| call::of_choice(error, call::of_named, work))?.items,
            };
            let texts = all.iter().take_while(|_| !is_cancelled());
            held.read_as = request.read_as(&resolved, texts.map(|(_, item)| &*item.text));
            work.check()?;
            if !held.read_as.is_empty() {
                chosen = choose(&request.over(&held), &*held.collection)?;
            }
        }
        let (Chosen { items, meant }, shortlist) = chosen;
        let boost = |boosts: ItemBoosts| {
            let clock = told()?.settings.clock(now);
            let of = items.iter().map(|(_, item)| boosts.of(item, clock)).collect();
            Ok::<_, ApiError>((boosts.rest(), of))
        };
        let boosts = boosts.map(boost).transpose()?;
        let asked = request.over(&held);
        let lacking = held.collection.lacking(&which.filter.names(), now, cancel);
        let lacking = lacking.map_err(|error| call::of_choice(error, call::of_named, work))?;
        let filter_unknown = lacking.into_iter().map(Box::from).collect();
        let memory = memory(&asked, &resolved, &items, &app.unsent.of(&caller.client))?;
        drop((asked, which));
        let _memory = Some(memory);
        Ok(Self { items, meant, shortlist, filter_unknown, boosts, _memory, ..held })
    }

    /// Number of scored items, if not all selected items are scored.
    fn length(&self) -> Option<usize> {
        let narrowed = (self.items.len() < self.meant).then_some(self.items.len());
        self.shortlist.or(narrowed)
    }
}

/// The liked and the disliked items that a request names; the refusal where none of the liked ones is there.
fn named_items(
    request: &RankRequest<'_>,
    collection: &dyn Collection,
    now: i64,
) -> Result<(NamedItems, NamedItems), ApiError> {
    let find = |list: Vec<Option<Cow<'_, str>>>| NamedItems::of(collection, &list, now);
    let liked = request.like.iter().flat_map(|list| &list.items);
    let liked = liked.map(|liked| liked.id.as_ref().map(CandidateId::digits)).collect();
    let disliked = request.unlike.iter().flat_map(|list| &list.items);
    let disliked = disliked.map(|one| one.0.id.as_ref().map(CandidateId::digits)).collect();
    let (liked, disliked) = (find(liked)?, find(disliked)?);
    if !liked.items.is_empty() && liked.missing.len() == liked.items.len() {
        let detail = "the collection has none of the liked items";
        return Err(ApiError::at(Code::UnknownItem, "/like", detail));
    }
    Ok((liked, disliked))
}

/// Memory for ranking items, taken from that of answers; the refusal where it is more than there may be.
fn memory(
    asked: &RankRequest<'_>,
    resolved: &Resolved,
    items: &[(u64, Arc<Item>)],
    unsent: &Unsent,
) -> Result<Charge, ApiError> {
    let engine = &resolved.model.engine;
    let mut each = ITEM_BYTES;
    let scores_lists = match &resolved.fused {
        Some(fused) => {
            each += fused.fusion.parts().len() * NUMBER_BYTES;
            !engine.fuses_in_parts(&fused.fusion)
        }
        None => !engine.ranks_in_parts(resolved.query.method),
    };
    if let Some(queries) = &asked.queries {
        // A query without a known word leaves all items unscored, and these are listed; without a number
        // of results all items are listed.
        let known = engine.embed(&queries.items, &Query::new(SHORTLIST_METHOD));
        let unknown = known.map_or(queries.items.len(), |made| made.unscored.len());
        let needed = asked.page_options(resolved)?.needed();
        let whole = if needed.is_some() { unknown } else { queries.items.len() };
        each += whole * NUMBER_BYTES;
    }
    let has_more = asked.boosts.is_some() || asked.collapse_by.is_some();
    let of_item = |(_, item): &(u64, Arc<Item>)| {
        let tokens = if scores_lists { TOKEN_BYTES * item.text.len() } else { 0 };
        each + tokens + if has_more || item.data.is_some() { CALLERS_BYTES } else { 0 }
    };
    let bytes: usize = items.iter().map(of_item).sum();
    let limit = unsent.most();
    if bytes <= limit {
        return unsent.work(bytes);
    }
    let detail = format!(
        "to rank {} items takes about {bytes} bytes of memory; the limit is {limit} (setting \
         `unsent_bytes`). Ask for a `shortlist`, or filter them",
        items.len()
    );
    Err(ApiError::at(Code::TooMuchWork, "/collection", detail))
}

/// Liked or disliked items that a request names, by their places in the request.
#[derive(Default)]
struct NamedItems {
    items: Vec<Option<Arc<Item>>>,
    /// The places of those that the collection does not have: what somebody liked may be gone.
    missing: Vec<usize>,
}

impl NamedItems {
    fn of(
        collection: &dyn Collection,
        named: &[Option<Cow<'_, str>>],
        now: i64,
    ) -> Result<Self, ApiError> {
        let ids: Vec<&str> = named.iter().flatten().map(AsRef::as_ref).collect();
        if ids.is_empty() {
            return Ok(Self { items: vec![None; named.len()], missing: Vec::new() });
        }
        let found = collection.find(&ids, now).map_err(|error| call::of_named(&error))?;
        let mut found = found.into_iter();
        let item = |id: &Option<Cow<'_, str>>| id.as_ref().and_then(|_| found.next()?);
        let items: Vec<Option<Arc<Item>>> = named.iter().map(item).collect();
        let places = named.iter().zip(&items).enumerate();
        let missing = places.filter(|(_, (id, item))| id.is_some() && item.is_none());
        Ok(Self { missing: missing.map(|(place, _)| place).collect(), items })
    }

    /// The place in the request of one of those that are not missing.
    fn place(&self, of_found: usize) -> usize {
        self.missing.iter().fold(of_found, |place, missing| place + usize::from(*missing <= place))
    }

    fn places(&self, of_found: &[usize]) -> Vec<usize> {
        of_found.iter().map(|place| self.place(*place)).collect()
    }

    /// What a request has at the places that are not missing, with the item of each.
    fn found<T>(&self, list: Vec<T>) -> impl Iterator<Item = (T, &Option<Arc<Item>>)> {
        let places = list.into_iter().zip(&self.items).enumerate();
        places.filter(|(place, _)| !self.missing.contains(place)).map(|(_, one)| one)
    }
}

impl<'b> RankRequest<'b> {
    /// The same question with the items of a collection as its candidates.
    fn over<'s>(&'s self, held: &'s Held) -> RankRequest<'s>
    where
        'b: 's,
    {
        let candidate = |(place, (_, item)): (usize, &'s (u64, Arc<Item>))| {
            let boost = held.boosts.as_ref().and_then(|(_, of)| of.get(place)).copied();
            let group = self.collapse_by.as_ref().and_then(|name| item.attributes.get(name));
            let group = group.map(|value| value.to_string().into());
            Candidate::stored((&item.id, &item.text), item.data.as_deref(), boost, group)
        };
        let candidates: Vec<Candidate<'s>> = held.items.iter().enumerate().map(candidate).collect();
        let text = |one: LikedText<'s>, item: &'s Option<Arc<Item>>| match item {
            Some(item) => LikedText { text: Text(Cow::Borrowed(&item.text)), id: None, ..one },
            None => one,
        };
        let mut asked = self.reading(&held.read_as);
        if let Some(list) = &mut asked.like {
            let items = held.liked.found(std::mem::take(&mut list.items));
            list.items = items.map(|(one, item)| text(one, item)).collect();
            list.length -= held.liked.missing.len();
        }
        if let Some(list) = &mut asked.unlike {
            let items = held.disliked.found(std::mem::take(&mut list.items));
            list.items = items.map(|(one, item)| DislikedText(text(one.0, item))).collect();
            list.length -= held.disliked.missing.len();
        }
        asked.unlike = asked.unlike.filter(|list| list.length > 0);
        asked.candidates = Some(List { length: candidates.len(), items: candidates });
        asked.top_k = Some(asked.top_k.unwrap_or(Count(RESULTS)));
        asked.shortlist = Some(held.length().into());
        // They were excluded when the items were looked up.
        asked.exclude = None;
        asked.similarity_share = held.boosts.as_ref().map(|(share, _)| *share);
        asked
    }
}

impl RankRequest<'_> {
    /// Which items are ranked, and the length of the shortlist if they are those of one: all where that is
    /// asked for, or where those that may be among the best are known.
    fn choice<'s>(
        &'s self,
        shortlist: Option<ShortlistLength>,
        resolved: &'s Resolved,
        app: &App,
        count: impl FnOnce() -> Result<usize, ApiError>,
    ) -> Result<(Choice<'s>, Option<usize>), ApiError> {
        let is_remote = app.collections.is_remote();
        let best = self.best(resolved, app).filter(|_| !is_remote);
        let length = match shortlist {
            Some(shortlist) => shortlist.length(),
            None if best.is_some() => None,
            None => {
                let page = self.page_options(resolved)?;
                let results = page.end().unwrap_or(RESULTS).max(page.pool());
                resolved.usual_shortlist(is_remote, results, count)?
            }
        };
        let Some(length) = length else { return Ok((best.unwrap_or(Choice::All), None)) };
        self.check_lengths(app)?;
        Ok((Choice::Shortlist(self.top_query(resolved, length)?), Some(length)))
    }
}

/// What is told by the vectors of the items, which are kept for the next question; by their texts where
/// there is no memory for them.
fn told_of_kept(
    asked: &RankRequest<'_>,
    held: &Held,
    plan: &Plan,
    (app, work): (&App, &JobContext),
) -> Result<Computed, ApiError> {
    let (engine, method) = (&plan.resolved.model.engine, plan.resolved.query.method);
    let is_cancelled = || work.check().is_err();
    let cancel = Cancellation::when(&is_cancelled);
    let vectors = held.collection.vectors(engine, method, &held.items, cancel);
    let vectors = vectors.map_err(|error| call::of_choice(error, call::of_named, work))?;
    let kept = vectors.as_ref().and_then(|vectors| {
        held.items.iter().map(|(number, _)| vectors.of(*number)).collect::<Option<Vec<_>>>()
    });
    asked.told(plan, app, work, kept.as_deref())
}

/// A fault of an item has no place in the body, so it is a fault of the collection.
fn of_items(mut error: ApiError) -> ApiError {
    for fault in &mut error.faults {
        if let [Segment::Field("candidates"), ..] = fault.pointer.segments() {
            fault.pointer = "/collection".into();
        }
    }
    error
}

impl Endpoint for Ranked<'_> {
    type Address = Caller;

    fn may_wait(app: &App) -> bool {
        app.collections.is_remote()
    }

    fn read<'b>(body: &'b [u8], caller: &Caller) -> Result<AnyQuestion<'b>, ApiError> {
        let (request, caller) = (json::read_object(body)?, caller.clone());
        let (guesses, held) = (OnceLock::new(), OnceLock::new());
        Ok(Box::new(Ranked { request, caller, guesses, held }))
    }
}

impl Question for Ranked<'_> {
    fn waits(&self, app: &App) -> bool {
        self.request.collection.is_some() && app.collections.is_remote()
    }

    /// Looking through a large collection holds a thread for longer than the runtime can spare.
    fn is_long(&self) -> bool {
        self.ranks_collection()
    }

    fn ranks_collection(&self) -> bool {
        self.request.collection.is_some()
    }

    fn look_up(&self, app: &App, models: &Models, work: &JobContext) -> Result<(), ApiError> {
        let Some(name) = &self.request.collection else { return Ok(()) };
        if self.request.candidates.is_some() {
            let detail = "give either `candidates` or `collection`";
            return Err(ApiError::at(Code::InvalidField, "/candidates", detail));
        }
        if let Some(list) = &self.request.exclude {
            let (most, length) = (app.settings.max_candidates, list.length);
            if length > most {
                let (code, what) = (Code::TooManyItems, "ids to exclude");
                return Err(ApiError::beyond(code, "/exclude", what, most, length));
            }
        }
        let held = Held::of(&self.request, (&self.caller, name), (app, models, work))?;
        // A question is looked up once.
        let _ = self.held.set(held);
        Ok(())
    }

    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        self.request.pointer_in_body(pointer)
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        match self.held.get() {
            Some(held) => self.request.over(held).plan(app, models).map_err(of_items),
            None => {
                let plan = self.request.plan(app, models)?;
                let texts = self.request.candidates().iter().map(AsRef::<str>::as_ref);
                let bytes = || texts.map(str::len).sum();
                let guessing = self.request.guessing(&plan.resolved, bytes, app);
                // A question is planned once.
                let _ = self.guesses.set(guessing.is_some());
                match guessing {
                    Some(work) => plan.heavier(work, app),
                    None => Ok(plan),
                }
            }
        }
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let Some(held) = self.held.get() else {
            let candidates = self.request.candidates().iter().map(AsRef::as_ref);
            let read_as = match self.guesses.get() {
                Some(true) => self.request.read_as(&plan.resolved, candidates),
                _ => ReadAs::new(),
            };
            let told = match &*read_as {
                [] => self.request.told(plan, app, work, None)?,
                read_as => self.request.reading(read_as).told(plan, app, work, None)?,
            };
            return self.request.tell(&told, &read_as, plan, answer);
        };
        app.metrics.ranked_with(RankPart::Collection);
        if held.shortlist.is_some() {
            app.metrics.ranked_with(RankPart::Shortlist);
        }
        let asked = self.request.over(held);
        let told = match asked.keeps_vectors(&plan.resolved) {
            false => asked.told(plan, app, work, None),
            true => told_of_kept(&asked, held, plan, (app, work)),
        };
        let told = told.map_err(of_items)?;
        let return_text = asked.return_text.unwrap_or(false);
        let name = self.request.collection.as_deref().unwrap_or_default();
        let ranking = ItemRanking::of(
            &told,
            held,
            &plan.resolved,
            (name, return_text),
            asked.queries.is_some(),
        );
        answer.write_json(&ranking)?;
        Ok(told.counts)
    }
}

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
    /// The share of the query's tokens that the model lists, where it does not list all of them; with
    /// `coverage` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// What the query is read as, where the model lists none of its words and misspelt ones are likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_read_as: Option<&'r str>,
    /// Places of liked texts that are part of no score, as they have no known word.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    like_unscored: Vec<usize>,
    /// Places of liked items that the collection does not have; they are part of no score.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    like_missing: &'r [usize],
    /// The same of disliked texts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    unlike_unscored: Vec<usize>,
    /// The same of disliked items.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    unlike_missing: &'r [usize],
    /// Attributes that `filter` asks for and no item of the collection has.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    filter_unknown: &'r [Box<str>],
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
    /// The share of the query's tokens that the model lists, where it does not list all of them; with
    /// `coverage` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// What the query is read as, where the model lists none of its words and misspelt ones are likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_read_as: Option<&'r str>,
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
    /// When it was written, or else added, if texts were asked for: RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// Its attributes, if texts were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    attributes: Option<&'r Attributes>,
    /// Its `data`, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<CallersData<'r>>,
    /// The event that it belongs to, where it was matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'r str>,
    /// Items that are nearly the same as this one, best first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    duplicates: Vec<DuplicateItem<'r>>,
    /// With `explain` and `like`, the place of the liked text that it is most like, weights included.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<usize>,
    /// With `explain`, the words with the largest shares of its score.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<SharedWord>>)]
    words: Option<&'r [WordShare]>,
    /// With `return_opposes`, how it is opposed to the query; an empty list where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<OppositionName>>)]
    opposes: Option<Oppositions>,
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
    /// The answer for the items of the collection of this name.
    pub(super) fn of(
        told: &'r Computed,
        held: &'r Held,
        resolved: &'r Resolved,
        (name, return_text): (&'r str, bool),
        several: bool,
    ) -> Self {
        let results = |page: &'r Page| ranked_items(page, held, return_text);
        let one = told.pages.first().filter(|_| !several);
        let rankings = told.pages.iter().enumerate().map(|(place, page)| ItemResults {
            results: results(page),
            unscored: page.ranking.unscored.len(),
            query_truncated: page.ranking.query_truncated,
            query_known: query_known(page, &held.read_as, place),
            query_read_as: query_read_as(&held.read_as, place),
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
            query_known: one.and_then(|page| query_known(page, &held.read_as, 0)),
            query_read_as: one.and_then(|_| query_read_as(&held.read_as, 0)),
            like_unscored: held.liked.places(&told.passed.liked),
            like_missing: &held.liked.missing,
            unlike_unscored: held.disliked.places(&told.passed.disliked),
            unlike_missing: &held.disliked.missing,
            filter_unknown: &held.filter_unknown,
        }
    }
}

/// The scored items of a page.
fn ranked_items<'r>(page: &'r Page, held: &'r Held, return_text: bool) -> Vec<RankedItem<'r>> {
    let item = |index: usize| held.items.get(index).map(|(_, item)| item.as_ref());
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
            like: result.reason.and_then(|reason| Some(held.liked.place(reason.like?))),
            words: result.reason.map(|reason| reason.words.as_slice()),
            opposes: result.opposes,
        })
    });
    results.collect()
}
