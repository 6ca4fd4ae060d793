//! Answers that describe collections and their items.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::Response;
use cognate::window::stream::AddPolicy;
use cognate_collections::{
    Applied, Cancellation, Collection, CollectionError, CollectionInfo, ConsideredEvent, Item,
    ItemPatch, MatchOptions, MatchReasons, Matched, Outgoing, Patched, Pending, SharedEngine,
    Write,
};
use cognate_files::instant;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::api::collections::call;
use crate::http::api::collections::call::Call;
use crate::http::api::collections::match_options::Matching;
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::refusals;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;

/// Words of a post, assumed where those of a window are not looked up.
pub(crate) const POST_WORDS: u64 = 15;
/// Items whose words are counted to weigh a match.
const SAMPLE: usize = 16;

/// A collection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CollectionEntry {
    /// The id.
    name: String,
    /// How many items it has.
    items: usize,
    /// Bytes of memory that the items take, roughly.
    bytes: usize,
    /// Whether it outlives the process: it does if the server has a folder for it (setting `data`).
    durable: bool,
    /// Bytes of the collection's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_bytes: Option<u64>,
    /// Most items: of more the oldest leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<usize>,
    /// Items whose time is further back than this are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
}

impl From<CollectionInfo> for CollectionEntry {
    fn from(told: CollectionInfo) -> Self {
        Self {
            name: told.name,
            items: told.items,
            bytes: told.bytes,
            durable: told.durable,
            log_bytes: told.log_bytes,
            max_items: told.settings.max_items,
            ttl: told.settings.ttl_ms.map(instant::written_span),
        }
    }
}

/// Every collection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CollectionList {
    /// By name.
    pub(super) collections: Vec<CollectionEntry>,
}

/// The counts of a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Changed {
    /// Items that are new.
    added: usize,
    /// Items that replaced items with the same `id`.
    replaced: usize,
    /// Items that were patched.
    #[serde(skip_serializing_if = "is_none_of_them")]
    patched: usize,
    /// Items that were taken out.
    removed: usize,
    /// Items that left, because newer items took their room or their `ttl` is over.
    left: usize,
    /// Items that were too old for the collection's `ttl` when they were added, and are not shown.
    #[serde(skip_serializing_if = "is_none_of_them")]
    expired: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(super) fn is_none_of_them(count: &usize) -> bool {
    *count == 0
}

impl From<Applied> for Changed {
    fn from(applied: Applied) -> Self {
        let Applied { added, replaced, patched, removed, left, expired } = applied;
        Self { added, replaced, patched, removed, left, expired }
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct ItemEntry<'i>(pub(super) Outgoing<'i>);

/// An item.
#[derive(ToSchema)]
#[allow(dead_code)]
struct ItemFields<'i> {
    /// The id.
    id: &'i str,
    /// The text.
    text: &'i str,
    /// The time when the text was written, or else added: RFC 3339.
    time: &'i str,
    /// Attributes for filters: strings, numbers, booleans.
    #[schema(value_type = Option<Object>)]
    attributes: Option<()>,
    /// An object of the caller's own.
    #[schema(value_type = Option<Object>)]
    data: Option<&'i RawValue>,
    /// The item that its event began with, where it was matched.
    event: Option<&'i str>,
}

impl PartialSchema for ItemEntry<'_> {
    fn schema() -> RefOr<Schema> {
        ItemFields::schema()
    }
}

impl ToSchema for ItemEntry<'_> {
    fn name() -> Cow<'static, str> {
        "ItemEntry".into()
    }
}

impl<'i> From<&'i Item> for ItemEntry<'i> {
    fn from(item: &'i Item) -> Self {
        Self(Outgoing::new(item))
    }
}

/// Items of a collection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemList<'i> {
    /// In the order in which they were added.
    pub(super) items: Vec<ItemEntry<'i>>,
    /// How many the filter admits.
    pub(super) total: usize,
    /// Attributes that the filter asks for and no item of the collection has.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub(super) filter_unknown: Vec<Box<str>>,
    /// Attributes for which the filter asks for a kind of value that no item has.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub(super) filter_mistyped: Vec<Box<str>>,
}

/// A text that was matched.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MatchedEntry<'m> {
    /// The id.
    pub(crate) id: &'m str,
    /// The item that its event began with: its own name where it begins one.
    event: &'m str,
    /// Whether it begins one.
    new: bool,
    /// The score of its event, or of the best of those that it did not join.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    /// The rarest word that it shares with the nearest item of the event that it joined: why it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<&'m str>,
    /// The nearest items before it that reach `threshold`, best first.
    nearest: Vec<NearEntry<'m>>,
    /// The item that says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<&'m str>,
    /// Whether the text was answered before; its nearest items are not stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
    /// Whether the collection has it by now, which it has unless the request said otherwise.
    #[serde(skip_serializing_if = "is_so")]
    added: bool,
    /// Whether the text is too old for the collection's `ttl`: no later text is near it, and it is not
    /// shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    expired: bool,
    /// How many items left when this text was added, and texts before it since the last such count. A
    /// body of JSON has it for all its texts.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub(crate) left: usize,
    /// Why the text has its event, with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<ReasonsEntry<'m>>,
}

/// Whether a field has its default, true.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_so(said: &bool) -> bool {
    *said
}

/// An item that is near.
#[derive(Debug, Serialize, ToSchema)]
struct NearEntry<'m> {
    /// The id.
    id: &'m str,
    /// How alike both are.
    score: f32,
}

/// Why a text has its event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReasonsEntry<'m> {
    /// All items that were asked, below `threshold` too, best first.
    nearest: Vec<AskedEntry<'m>>,
    /// The events that it might have joined, in the order of their nearest items.
    events: Vec<ConsideredEntry<'m>>,
    /// Words that it shares with the nearest item of the event that it joined, the rarest first.
    words: Vec<&'m str>,
}

/// An item that was asked for its event.
#[derive(Debug, Serialize, ToSchema)]
struct AskedEntry<'m> {
    /// The id.
    id: &'m str,
    /// How alike both are.
    score: f32,
    /// The event.
    event: &'m str,
}

/// An event that a text might have joined.
#[derive(Debug, Serialize, ToSchema)]
struct ConsideredEntry<'m> {
    /// The id.
    event: &'m str,
    /// The mean of the event's votes less `step`; below `threshold` the text does not join the event.
    score: f32,
    /// Number of the event's items whose scores make up the mean.
    votes: usize,
    /// How many of its items were to speak for it: one that is not among the nearest counts nothing.
    wanted: usize,
    /// What the event lost because it has few items.
    step: f32,
}

impl<'m> From<&'m MatchReasons> for ReasonsEntry<'m> {
    fn from(reasons: &'m MatchReasons) -> Self {
        let nearest = reasons.nearest.iter();
        let nearest = nearest.map(|(id, score, event)| AskedEntry { id, score: *score, event });
        let events = reasons.considered.iter().map(|one| {
            let ConsideredEvent { event, score, votes, wanted, step } = one;
            let (score, step) = (*score, *step);
            ConsideredEntry { event, score, votes: *votes, wanted: *wanted, step }
        });
        Self {
            nearest: nearest.collect(),
            events: events.collect(),
            words: reasons.words.iter().map(AsRef::as_ref).collect(),
        }
    }
}

impl<'m> MatchedEntry<'m> {
    /// The answer for the text of this name.
    pub(crate) fn new(id: &'m str, matched: &'m Matched) -> Self {
        let near = |(id, score): &'m (std::sync::Arc<str>, f32)| NearEntry { id, score: *score };
        Self {
            id,
            event: &matched.event,
            new: matched.new,
            score: matched.score,
            word: matched.word.as_deref(),
            nearest: matched.nearest.iter().map(near).collect(),
            duplicate_of: matched.duplicate_of.as_deref(),
            repeated: matched.repeated,
            added: matched.added,
            expired: matched.expired,
            left: matched.left,
            explanation: matched.reasons.as_deref().map(ReasonsEntry::from),
        }
    }
}

refusals!(ListRefusals: &[Code::Forbidden, Code::ResponseTooLarge, Code::DatabaseUnavailable, Code::DeadlineExceeded, Code::Overloaded]);

/// Lists the collections that the key may reach, by name.
///
/// Each with its settings, its items and the memory that they take.
#[utoipa::path(
    get,
    path = "/collections",
    tag = "collections",
    operation_id = "collections",
    responses((status = 200, description = "Every collection", body = CollectionList), ListRefusals),
)]
pub(crate) async fn list(call: Call) -> Result<Response> {
    call.look_up(|call| {
        let (all, now) = (call.app.collections.of(&call.caller)?.all(), cognate_collections::now());
        // A collection that another server deletes meanwhile is not listed.
        let told = |one: &Arc<dyn Collection>| match one.told(now) {
            Err(CollectionError::Unknown) => None,
            told => Some(told.map(CollectionEntry::from)),
        };
        let collections = all?.iter().filter_map(told).collect::<Result<_, _>>()?;
        call.answer(0, &CollectionList { collections })
    })
    .await
}

/// A collection that texts of a match, or a stream of items, are written to.
pub(crate) struct Against {
    pub(crate) call: Call,
    collection: Arc<dyn Collection>,
    /// Writes that may not be durable yet.
    pending: Mutex<Vec<Pending>>,
}

impl Against {
    pub(crate) fn new(call: Call, collection: Arc<dyn Collection>) -> Self {
        Self { call, collection, pending: Mutex::default() }
    }

    pub(crate) fn collection(&self) -> &dyn Collection {
        &*self.collection
    }

    pub(crate) fn check_adds(&self, add: AddPolicy) -> Result<()> {
        if add == AddPolicy::None { Ok(()) } else { self.call.check_writes() }
    }

    /// Refuses a match that adds texts, if the caller may not write, and a filter that would take
    /// too long.
    pub(crate) fn check(&self, how: &MatchOptions) -> Result<()> {
        self.check_adds(how.add)?;
        call::check_filter(&self.call.app, &how.filter, &*self.collection)
    }

    /// Words of the items that texts are matched against, estimated from the last of them. A
    /// database is not queried for them.
    pub(crate) fn words(&self, resolved: &Resolved) -> Result<u64, CollectionError> {
        let now = cognate_collections::now();
        if self.call.app.collections.is_remote() {
            return Ok(POST_WORDS);
        }
        let last = self.collection.added(None, 1, now)?.items;
        let first = last.first().map_or(0, |(last, _)| last.saturating_sub(SAMPLE as u64 - 1));
        let items = self.collection.added(Some(first), SAMPLE, now)?.items;
        let words: u64 = items.iter().map(|(_, item)| resolved.words(&item.text)).sum();
        Ok(words / items.len().max(1) as u64)
    }

    /// Waits for the turn to write, as long as an answer may take.
    pub(crate) async fn turn(&self) -> Result<Turn> {
        self.call.turn(self.collection.name()).await
    }

    pub(crate) fn follow(
        &self,
        Matching { resolved, how }: &Matching,
        items: Vec<Item>,
        work: &JobContext,
    ) -> Result<Vec<Matched>, call::MatchRefusal> {
        let Call { app, caller, .. } = &self.call;
        let follow = || {
            let engine = SharedEngine::share(Arc::clone(&resolved.model));
            let now = cognate_collections::now();
            if how.add != AddPolicy::None {
                app.collections.of(caller)?.check_room(&*self.collection, &items, now)?;
            }
            let counts = engine.counts(items.iter().map(|item| &*item.text));
            let cancel = Cancellation::when(work);
            let (matched, pending) = self.collection.follow(engine, how, items, now, cancel)?;
            app.metrics.read(counts);
            self.pending().push(pending);
            Ok(matched)
        };
        let matched = follow().inspect_err(|refusal| {
            if let call::MatchRefusal::Other(error) = refusal {
                app.metrics.write_refused(self.collection.name(), error);
            }
        })?;
        let expired = matched.iter().filter(|one| one.expired).count();
        let begun = matched.iter().filter(|one| one.new && one.added && !one.repeated).count();
        app.metrics.matched(self.collection.name(), matched.len(), begun, expired);
        Ok(matched)
    }

    /// Adds items, which are durable after [`wait_durable`](Self::wait_durable).
    pub(crate) fn put(&self, items: Vec<Item>) -> Result<Applied> {
        self.write(Write::Put(items), "/items")
    }

    fn write(&self, wanted: Write, items: &'static str) -> Result<Applied> {
        let never = Cancellation::NEVER;
        let written = self.call.begin_write(&*self.collection, wanted, items, never);
        let (applied, pending) = written.inspect_err(|error| self.refused(error))?;
        self.pending().push(pending);
        Ok(applied)
    }

    pub(crate) fn patch(
        &self,
        patches: Vec<(Box<str>, ItemPatch)>,
    ) -> Result<(Applied, Vec<Option<ApiError>>)> {
        let ids: Vec<&str> = patches.iter().map(|(id, _)| &**id).collect();
        let found = self.collection.find(&ids, cognate_collections::now())?;
        let mut patched = Patched::default();
        let check = |((id, patch), item): (&(Box<str>, ItemPatch), Option<Arc<Item>>)| match patched
            .apply(id, patch, || item)
        {
            Ok(true) => None,
            Ok(false) => Some(call::no_item()),
            Err(problem) => Some(call::of_item(&problem, "")),
        };
        let refused: Vec<Option<ApiError>> = patches.iter().zip(found).map(check).collect();
        let sound = patches.into_iter().zip(&refused).filter(|(_, refused)| refused.is_none());
        let wanted = Write::Patch(sound.map(|(patch, _)| patch).collect());
        Ok((self.write(wanted, "")?, refused))
    }

    /// Waits until all writes so far are durable.
    pub(crate) async fn wait_durable(&self) -> Result<()> {
        let pending = std::mem::take(&mut *self.pending());
        let collection = Arc::clone(&self.collection);
        let settled = self.call.again().settle(move || {
            let mut each = pending.into_iter().map(|pending| collection.wait_durable(pending));
            each.try_for_each(|settled| settled.map_err(|error| call::of(&error, "/items")))
        });
        settled.await.inspect_err(|error| self.refused(error))
    }

    fn refused(&self, error: &ApiError) {
        self.call.app.metrics.write_refused(self.collection.name(), error);
    }

    fn pending(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
