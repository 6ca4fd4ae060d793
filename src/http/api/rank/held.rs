//! The items of a collection that a question ranks.

use std::borrow::Cow;
use std::sync::Arc;

use cognate::engine::Query;
use cognate_collections::{
    Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError, CollectionInfo, Filter,
    Item, ItemBoosts, ItemSelector, SHORTLIST_METHOD,
};

use crate::http::api::collections::call;
use crate::http::api::collections::items::within;
use crate::http::api::rank::read_as::ReadAs;
use crate::http::api::rank::{RankRequest, item_boosts};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code};
use crate::http::registry::models::Models;
use crate::http::request::fields::{
    Candidate, CandidateId, Count, DislikedText, LikedText, List, ShortlistLength, Text,
};
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::{Charge, Unsent};

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

/// The items of a collection that a question ranks.
pub(super) struct Held {
    pub(super) collection: Arc<dyn Collection>,
    /// The items that are ranked, with their numbers.
    pub(super) items: Vec<(u64, Arc<Item>)>,
    /// Number of items selected by the question; `items` may be the ones among them that can be best.
    pub(super) meant: usize,
    /// Length of the shortlist for each text, if there is one.
    pub(super) shortlist: Option<usize>,
    pub(super) liked: NamedItems,
    pub(super) disliked: NamedItems,
    pub(super) read_as: ReadAs,
    /// Attributes that the filter asks for and no item of the collection has.
    pub(super) filter_unknown: Vec<Box<str>>,
    /// The share of a score that is not boosts, and what boosts add to that of each item.
    boosts: Option<(f32, Vec<f32>)>,
    /// The value that each item has of the attribute by which they are grouped, if they are.
    groups: Vec<Option<String>>,
    /// The memory charged for ranking the items.
    _memory: Option<Charge>,
}

impl Held {
    /// Looks up the items of a question.
    pub(super) fn of(
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
        let boosts = request.boosts.as_ref().map(item_boosts).transpose()?.flatten();
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
            groups: Vec::new(),
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
        let search = Search {
            request,
            collection: &*collection,
            which,
            resolved: &resolved,
            now,
            app,
            work,
        };
        call::check_filter(app, &search.which.filter, || Ok(search.told()?.items))?;
        let mut chosen = search.choose(&request.over(&held))?;
        held.read_as = search.read_as()?;
        if !held.read_as.is_empty() {
            chosen = search.choose(&request.over(&held))?;
        }
        let (Chosen { items, meant }, shortlist) = chosen;
        let boost = |boosts: ItemBoosts| {
            let clock = search.told()?.settings.clock(now);
            let of = items.iter().map(|(_, item)| boosts.of(item, clock)).collect();
            Ok::<_, ApiError>((boosts.rest(), of))
        };
        let boosts = boosts.map(boost).transpose()?;
        let groups = request.collapse_by.as_ref().map_or_else(Vec::new, |name| {
            let value = |item: &Item| item.attributes.get(name).map(ToString::to_string);
            items.iter().map(|(_, item)| value(item)).collect()
        });
        let filter_unknown = search.filter_unknown()?;
        drop(search);
        let memory =
            memory(&request.over(&held), &resolved, &items, &app.unsent.of(&caller.client))?;
        let _memory = Some(memory);
        Ok(Self { items, meant, shortlist, filter_unknown, boosts, groups, _memory, ..held })
    }

    /// Number of scored items, if not all selected items are scored.
    fn length(&self) -> Option<usize> {
        let narrowed = (self.items.len() < self.meant).then_some(self.items.len());
        self.shortlist.or(narrowed)
    }
}

/// What a request looks for among the items of a collection.
struct Search<'s> {
    request: &'s RankRequest<'s>,
    collection: &'s dyn Collection,
    which: ItemSelector<'s>,
    resolved: &'s Resolved,
    now: i64,
    app: &'s App,
    work: &'s JobContext,
}

impl Search<'_> {
    fn told(&self) -> Result<CollectionInfo, ApiError> {
        self.collection.told(self.now).map_err(|error| call::of_named(&error))
    }

    /// Does what may be given up when the client is gone or the time is over.
    fn cancellable<T>(
        &self,
        act: impl FnOnce(Cancellation<'_>) -> Result<T, ChooseError>,
    ) -> Result<T, ApiError> {
        let is_cancelled = || self.work.check().is_err();
        act(Cancellation::when(&is_cancelled))
            .map_err(|error| call::of_choice(error, call::of_named, self.work))
    }

    /// The items that are ranked, and the length of the shortlist if they are those of one.
    fn choose(&self, asked: &RankRequest<'_>) -> Result<(Chosen, Option<usize>), ApiError> {
        let count = || Ok(self.told()?.items);
        let (choice, shortlist) =
            asked.choice(self.request.shortlist, self.resolved, self.app, count)?;
        let choose = |cancel: Cancellation<'_>| {
            self.collection.choose(&self.which, &choice, self.now, cancel)
        };
        Ok((self.cancellable(choose)?, shortlist))
    }

    /// How queries were meant of which nothing is known. Which words may be meant is told by all items that
    /// are selected, not by those of a shortlist.
    fn read_as(&self) -> Result<ReadAs, ApiError> {
        let bytes =
            || self.told().map_or(usize::MAX, |told| told.items.saturating_mul(BYTES_PER_ITEM));
        if self.request.guessing(self.resolved, bytes, self.app).is_none() {
            return Ok(ReadAs::new());
        }
        let all = self.cancellable(|cancel| {
            match self.collection.choose(&self.which, &Choice::All, self.now, cancel) {
                Err(ChooseError::Collection(CollectionError::TooManyChosen { .. })) => {
                    Ok(Vec::new())
                }
                all => Ok(all?.items),
            }
        })?;
        let texts = all.iter().take_while(|_| self.work.check().is_ok());
        let read_as = self.request.read_as(self.resolved, texts.map(|(_, item)| &*item.text));
        self.work.check()?;
        Ok(read_as)
    }

    /// Attributes that the filter asks for and no item has.
    fn filter_unknown(&self) -> Result<Vec<Box<str>>, ApiError> {
        let names = self.which.filter.names();
        let lacking =
            self.cancellable(|cancel| self.collection.lacking(&names, self.now, cancel))?;
        Ok(lacking.into_iter().map(Box::from).collect())
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
pub(super) struct NamedItems {
    items: Vec<Option<Arc<Item>>>,
    /// The places of those that the collection does not have: what somebody liked may be gone.
    pub(super) missing: Vec<usize>,
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
    pub(super) fn place(&self, of_found: usize) -> usize {
        self.missing.iter().fold(of_found, |place, missing| place + usize::from(*missing <= place))
    }

    pub(super) fn places(&self, of_found: &[usize]) -> Vec<usize> {
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
    pub(super) fn over<'s>(&'s self, held: &'s Held) -> RankRequest<'s>
    where
        'b: 's,
    {
        let candidate = |(place, (_, item)): (usize, &'s (u64, Arc<Item>))| {
            let boost = held.boosts.as_ref().and_then(|(_, of)| of.get(place)).copied();
            let group = held.groups.get(place).and_then(Option::as_deref);
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
