//! Texts matched against a collection: for each in turn its nearest among the last items, its event,
//! and then it is added.
//!
//! What is found is what `cognate events` finds: both follow a [`Stream`]. A matcher keeps the vectors
//! of the last items. It makes them anew from the collection where items came or went in any other way,
//! another model came into use, or other settings are asked for.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use crate::collection::Budget;
use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::Event;
use crate::collection::Item;
use crate::collection::ItemProblem;
use crate::collection::log::Change;
use crate::engine::Engine;
use crate::engine::QueryError;
use crate::window::BATCH;
use crate::window::Limits;
use crate::window::Near;
use crate::window::stream;
use crate::window::stream::Settings;
use crate::window::stream::Stream;

/// Bytes of a number of a vector in a window: four, and one of the same as a byte.
const NUMBER_BYTES: usize = 5;
/// Bytes of an item of a window beside its vector: text, name and event, roughly.
const TEXT_BYTES: usize = 256;

/// Why texts cannot be matched.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// The collection cannot do what is asked.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// A method cannot do what is asked.
    #[error(transparent)]
    Query(#[from] QueryError),
}

/// How texts are matched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct How {
    /// How the stream is followed.
    pub stream: Settings,
    /// The least score at which a text is a duplicate of its nearest.
    pub duplicate: f32,
}

/// What was found of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// Its nearest items whose scores are not below the least, the best first.
    pub nearest: Vec<(Arc<str>, f32)>,
    /// The item that its event began with: itself where it begins one.
    pub event: Arc<str>,
    /// Whether it begins one.
    pub new: bool,
    /// The score of its event, or of the best of those that it did not join.
    pub score: Option<f32>,
    /// The nearest item of its event, or of any where it joined none.
    pub nearest_of_event: Option<Arc<str>>,
    /// The item that it is a duplicate of.
    pub duplicate_of: Option<Arc<str>>,
}

/// An engine that outlives a request.
#[derive(Clone)]
pub struct SharedEngine(Arc<dyn AsRef<Engine> + Send + Sync>);

impl SharedEngine {
    /// An engine in whatever holds it.
    pub fn of(holder: Arc<impl AsRef<Engine> + Send + Sync + 'static>) -> Self {
        Self(holder)
    }
}

impl Deref for SharedEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.0.as_ref().as_ref()
    }
}

/// The last items of a collection, kept to be matched against.
pub(super) struct Matcher {
    stream: Stream<SharedEngine>,
    how: How,
    fingerprint: String,
    /// The revision of the collection that this holds.
    revision: u64,
    names: Names,
    budget: Arc<Budget>,
    /// Bytes of memory that were taken for it.
    bytes: usize,
}

/// What the numbers of the stream are called.
#[derive(Default)]
struct Names {
    /// Of the items of the window, from number `first` on.
    ids: VecDeque<Arc<str>>,
    first: u64,
    /// Of the items that events began with, and how many items each had, by the events' numbers.
    events: HashMap<u64, (Arc<str>, u64)>,
}

impl Names {
    fn of(&self, number: u64) -> Option<&Arc<str>> {
        self.ids.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Adds the next item to an event, which this one begins if none is known; the event's name, and
    /// how many items it has by now.
    fn join(&mut self, id: &Arc<str>, event: u64) -> (Arc<str>, u64) {
        self.ids.push_back(Arc::clone(id));
        let known = self.events.entry(event).or_insert_with(|| (Arc::clone(id), 0));
        known.1 += 1;
        (Arc::clone(&known.0), known.1)
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matcher({} items)", self.names.ids.len())
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl Collection {
    /// Matches items of different names against those that are there and adds them, in order: all of
    /// them or none. When this returns they outlive a crash, unless the collection lives in memory alone.
    pub fn follow(
        &self,
        engine: SharedEngine,
        how: &How,
        items: Vec<Item>,
        now: i64,
    ) -> Result<Vec<Matched>, MatchError> {
        let mut again = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let mut checked = item.check(self.limits().text_bytes);
            if !again.insert(item.id.clone()) {
                let what = "another item of the request has this name".to_owned();
                checked = Err(ItemProblem { field: "/id", what, too_long: false });
            }
            checked.map_err(|problem| CollectionError::Item { index, problem })?;
        }
        let how = within_limits(*how, self);
        let mut kept = self.matcher();
        let mut turn = self.turn();
        // One that is there already is matched again: what it was is left out.
        again.retain(|id| self.get(id, i64::MIN).is_some());
        let before = kept.take().filter(|before| {
            let same = before.how.stream == how.stream && before.revision == turn.revision();
            same && again.is_empty() && before.fingerprint == engine.model().fingerprint()
        });
        let mut matcher = match before {
            Some(before) => before,
            None => Matcher::of(self, engine, how, (turn.revision(), now), &again)?,
        };
        matcher.how = how;
        let mut all = Vec::with_capacity(items.len());
        let mut changes = Vec::with_capacity(items.len());
        let mut items = items.into_iter();
        loop {
            let batch: Vec<Item> = items.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            matcher.decide(batch, &mut all, &mut changes)?;
        }
        // Where this fails the matcher is ahead of the collection, and is dropped.
        let (_, pending) = turn.write(changes, now)?;
        matcher.revision = turn.revision();
        *kept = Some(matcher);
        drop((turn, kept));
        self.settle(pending)?;
        Ok(all)
    }
}

impl Matcher {
    /// A matcher that holds the last items of a collection, except those of some names.
    fn of(
        collection: &Collection,
        engine: SharedEngine,
        how: How,
        (revision, now): (u64, i64),
        except: &HashSet<Box<str>>,
    ) -> Result<Self, MatchError> {
        let fingerprint = engine.model().fingerprint().to_owned();
        let dims = engine.embedding_dims(how.stream.method)?;
        let last = how.stream.limits.last;
        let bytes = last.saturating_add(2 * BATCH).saturating_mul(dims * NUMBER_BYTES + TEXT_BYTES);
        let budget = Arc::clone(collection.budget());
        budget.take(bytes)?;
        let matcher = Stream::new(engine, how.stream).map(|stream| Self {
            stream,
            how,
            fingerprint,
            revision,
            names: Names::default(),
            budget: Arc::clone(&budget),
            bytes,
        });
        let mut matcher = matcher.inspect_err(|_| budget.give_back(bytes))?;
        let view = collection.view(now);
        let items = view.iter().rev().filter(|item| !except.contains(&item.id)).take(last);
        let mut items: Vec<&Arc<Item>> = items.collect();
        items.reverse();
        matcher.remember(&items)?;
        Ok(matcher)
    }

    /// Takes in items whose events are known.
    fn remember(&mut self, items: &[&Arc<Item>]) -> Result<(), MatchError> {
        // Events that began before these items have the numbers below theirs.
        let (first, mut outside) = (items.len() as u64, 0);
        self.stream.begin_at(first);
        self.names.first = first;
        let mut numbers: HashMap<&str, u64> = HashMap::new();
        for (number, item) in (first..).zip(items) {
            let begun = item.event.as_ref().map_or(&*item.id, |event| &*event.id);
            let event = *numbers.entry(begun).or_insert_with(|| match begun == &*item.id {
                true => number,
                false => {
                    outside += 1;
                    outside - 1
                }
            });
            let size = item.event.as_ref().map_or(1, |event| event.size);
            let known = self.names.events.entry(event).or_insert_with(|| (begun.into(), 0));
            // What was loaded after it has no say in how large it was.
            let size = size.max(known.1);
            known.1 = size - 1;
            self.names.join(&Arc::from(&*item.id), event);
            let text = stream::Item { time: item.time, text: &item.text };
            self.stream.remember(text, event)?;
            self.stream.events_mut().restore(event, size, Vec::new());
        }
        Ok(())
    }

    /// Decides some items, and what is to be written of them.
    fn decide(
        &mut self,
        batch: Vec<Item>,
        all: &mut Vec<Matched>,
        changes: &mut Vec<Change>,
    ) -> Result<(), MatchError> {
        let texts = batch.iter().map(|item| stream::Item { time: item.time, text: &item.text });
        let texts: Vec<stream::Item<'_>> = texts.collect();
        let mut decisions = Vec::with_capacity(batch.len());
        self.stream
            .follow_with(&texts, |decision, near| decisions.push((decision, near.to_vec())))?;
        for (mut item, (decision, near)) in batch.into_iter().zip(decisions) {
            let id: Arc<str> = (&*item.id).into();
            let (event, size) = self.names.join(&id, decision.event);
            item.event = Some(Event { id: (&*event).into(), size });
            let name = |near: &Near| Some((Arc::clone(self.names.of(near.number)?), near.score));
            let least = self.how.stream.rule.threshold;
            let reached = near.iter().filter(|near| near.score >= least);
            let duplicate = near.first().filter(|near| near.score >= self.how.duplicate);
            all.push(Matched {
                nearest: reached.filter_map(name).collect(),
                event,
                new: decision.new,
                score: decision.score,
                nearest_of_event: decision.nearest.and_then(|near| Some(name(&near)?.0)),
                duplicate_of: duplicate.and_then(|near| Some(name(near)?.0)),
            });
            changes.push(Change::Put(Box::new(item)));
        }
        self.sweep();
        Ok(())
    }

    /// Forgets names that the window needs no more.
    fn sweep(&mut self) {
        let last = self.stream.settings().limits.last as u64;
        let kept = self.stream.next().saturating_sub(last);
        while self.names.first < kept && self.names.ids.pop_front().is_some() {
            self.names.first += 1;
        }
        if self.names.events.len() > 2 * self.stream.events().len() + BATCH {
            let events = self.stream.events();
            self.names.events.retain(|&event, _| events.size(event) > 0);
        }
    }
}

/// How texts are matched against a collection that may keep less than is asked for.
fn within_limits(how: How, collection: &Collection) -> How {
    let settings = collection.settings();
    let Limits { last, within } = how.stream.limits;
    let last = last.min(settings.max_items.unwrap_or(usize::MAX)).max(1);
    let within = match (within, settings.ttl_ms) {
        (Some(within), Some(ttl)) => Some(within.min(ttl)),
        (within, ttl) => within.or(ttl),
    };
    let stream = Settings { limits: Limits { last, within }, ..how.stream };
    How { stream, ..how }
}
