//! The items of a collection that a question ranks.

use std::borrow::Cow;
use std::sync::Arc;

use cognate::engine::rank::{Asked, Pages, Question};
use cognate::engine::{Engine, KeptText, Query};
use cognate_collections::rank::{FoundItems, ItemSearch, LikedBy, NamedItems, RankedItem};
use cognate_collections::{
    Cancellation, Collection, CollectionError, Filter, Item, ItemBoosts, ItemSelector,
    SHORTLIST_METHOD, UnknownNames, rank,
};

use crate::http::api::collections::call;
use crate::http::api::collections::call::within;
use crate::http::api::cost::Cost;
use crate::http::api::rank::run::compute;
use crate::http::api::rank::{RankRequest, item_boosts};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Result};
use crate::http::request::fields::{CandidateId, LikedText};
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::{Charge, Unsent};

/// Bytes that an item takes while it is ranked: its entries in lists, and its score or why it has
/// none.
const ITEM_BYTES: usize =
    size_of::<(u64, Arc<Item>)>() + size_of::<RankedItem<'_>>() + size_of::<KeptText<'_>>() + 64;
/// Bytes of an item's boost and group.
const MORE_BYTES: usize = 64;
/// Bytes of one more score per item.
const NUMBER_BYTES: usize = 16;
/// Bytes for each byte of a text where tokens are stored: a token is at least a letter and a blank.
const TOKEN_BYTES: usize = 4;

pub(super) struct Held {
    collection: Arc<dyn Collection>,
    pub(super) found: FoundItems,
    pub(super) named: [NamedItems; 2],
    pub(super) unknown: UnknownNames,
    /// The boosts of items, and the collection's clock.
    boosts: Option<(ItemBoosts, i64)>,
    /// The memory charged for ranking the items.
    _memory: Option<Charge>,
}

impl Held {
    /// Looks up the items of a question and its boosts.
    pub(super) fn new<'b>(
        request: &RankRequest<'b>,
        resolved: &Resolved,
        (caller, name): (&Caller, &str),
        (app, work): (&App, &JobContext),
    ) -> Result<(Question<'b>, Self)> {
        let refused = |error: CollectionError| call::of_named(error);
        let collection = app.collections.of(caller)?.get(name).map_err(refused)?;
        let now = cognate_collections::now();
        let within = within(request.within.as_deref())?;
        let filter = request.filter.map(|written| Filter::read(written.get())).transpose();
        let filter = filter.map_err(|problem| call::of_filter(&problem, "/filter"))?;
        let filter = filter.unwrap_or_default();
        let named = |list: Vec<&LikedText<'b>>| {
            let liked = list.iter().map(|one| match &one.id {
                Some(id) => LikedBy::Id(id.digits()),
                None => LikedBy::Text(&one.text.0),
            });
            NamedItems::find_liked_items(&*collection, &liked.collect::<Vec<_>>(), now)
                .map_err(refused)
        };
        let named = [named(request.liked())?, named(request.disliked())?];
        let boosts = request.boosts.as_ref();
        let boosts = boosts.map(|boosts| item_boosts(boosts, request.asks_nothing()));
        let boosts = boosts.transpose()?.flatten();
        // Liked, disliked and excluded items are no results.
        let excluded = request.exclude.iter().flat_map(|list| &list.items);
        let excluded = excluded.map(CandidateId::digits);
        let without = named.iter().flat_map(NamedItems::ids).map(Cow::from).chain(excluded);
        let event = request.event.as_deref().map(Cow::Borrowed);
        let which = ItemSelector { filter, event, within, without: without.collect() };
        let asked = request.asked(Some(&named))?;
        request.check_lengths(app)?;
        let mut question = request.question(asked, resolved)?;
        if !rank::ranks(&mut question, &named[0], boosts.as_ref()) {
            let detail = "the collection has none of the liked items";
            return Err(ApiError::at(Code::UnknownItem, "/like", detail));
        }
        let engine = &resolved.model.engine;
        let search = ItemSearch {
            collection: &*collection,
            engine,
            which,
            now,
            shortlist: request.shortlist.map(|shortlist| shortlist.length()),
            is_remote: app.collections.is_remote(),
            narrows: boosts.is_none() && request.collapse_by.is_none(),
        };
        call::check_filter(app, &search.which.filter, &*collection)?;
        let cancel = Cancellation::when(work);
        let found = search.find(&question, cancel).map_err(call::of_named)?;
        let clock = |boosts| Ok((boosts, collection.told(now)?.settings.clock(now)));
        let boosts = boosts.map(clock).transpose().map_err(refused)?;
        let others = (request.collapse_by.as_deref(), boosts.as_ref().map(|(boosts, _)| boosts));
        let unknown = UnknownNames::find(&*collection, &search.which.filter, others, now, cancel);
        let unknown = unknown.map_err(call::of_named)?;
        let has_more = boosts.is_some() || request.collapse_by.is_some();
        let unsent = app.unsent.of(&caller.client);
        let _memory = Some(memory(&question, resolved, (&found.items, has_more), &unsent)?);
        let collection = Arc::clone(&collection);
        Ok((question, Self { collection, found, named, unknown, boosts, _memory }))
    }

    pub(super) fn ranks_kept(&self, question: &Question<'_>, engine: &Engine) -> bool {
        let are_all = self.found.items.len() == self.found.meant;
        self.found.shortlist.is_none() && are_all && rank::ranks_kept(engine, question)
    }

    /// Ranks the items: by stored vectors if there are any, unless there is no memory for them.
    pub(super) fn pages(
        &self,
        request: &RankRequest<'_>,
        question: &Question<'_>,
        (resolved, cost): (&Resolved, &Cost),
        (app, work): (&App, &JobContext),
    ) -> Result<Pages> {
        let items = self.found.ranked();
        let boosts = self.boosts.as_ref().map(|(boosts, clock)| (boosts, *clock));
        let candidates = rank::candidates(&items, boosts, request.group_by());
        let engine = &resolved.model.engine;
        let vectors = if self.ranks_kept(question, engine) && !question.asked.is_nothing() {
            let (method, cancel) = (question.query.method, Cancellation::when(work));
            let vectors = self.collection.vectors(engine, method, &self.found.items, cancel);
            vectors.map_err(call::of_named)?
        } else {
            None
        };
        let kept = vectors.as_ref().and_then(|vectors| {
            let numbers = self.found.items.iter().map(|(number, _)| *number);
            numbers.map(|number| vectors.of(number)).collect::<Option<Vec<_>>>()
        });
        let candidates = candidates.with_vectors(kept);
        // The tokens of a collection's items were counted before.
        compute(question, &candidates, (resolved, cost, usize::MAX), app, work)
    }
}

/// Charges memory for ranking items as for answers; refuses more than the limit.
fn memory(
    question: &Question<'_>,
    resolved: &Resolved,
    (items, has_more): (&[(u64, Arc<Item>)], bool),
    unsent: &Unsent,
) -> Result<Charge> {
    let engine = &resolved.model.engine;
    let parts = question.fusion.as_ref().map_or(0, |fusion| fusion.parts().len());
    let mut each = ITEM_BYTES + parts * NUMBER_BYTES + if has_more { MORE_BYTES } else { 0 };
    if let Asked::Each(queries) = &question.asked {
        // A query without a known word leaves all items unscored, and these are listed; without
        // `top_k` all items are listed.
        let known = engine.embed(queries, &Query::new(SHORTLIST_METHOD));
        let unknown = known.map_or(queries.len(), |made| made.unscored.len());
        let whole = if question.page.needed().is_some() { unknown } else { queries.len() };
        each += whole * NUMBER_BYTES;
    }
    let scores_lists = !question.is_in_parts(engine);
    let tokens = |item: &Item| if scores_lists { TOKEN_BYTES * item.text.len() } else { 0 };
    let bytes: usize = items.iter().map(|(_, item)| each + tokens(item)).sum();
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
