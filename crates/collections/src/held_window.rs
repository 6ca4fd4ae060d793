//! The last items of a collection, kept to be matched against.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use cognate::engine::Engine;
use cognate::window::stream::{Settings, Stream};
use cognate::window::{BATCH, Near, stream};

use crate::following::Following;
use crate::{Budget, CollectionError, Event, Item, MatchError, Matched, SharedEngine};

/// Bytes of the name of an item or an event beside its own, with its place in the lists.
const NAME_BYTES: usize = 64;

/// The last items of a collection.
pub(super) struct HeldWindow {
    stream: Stream<SharedEngine>,
    fingerprint: String,
    /// The revision of the collection that this holds.
    revision: u64,
    /// The number in the collection of the next item that this does not hold.
    next: u64,
    names: Names,
    /// Whether an item has the name of one that began an event of this window before it. Names then do
    /// not tell which of both events an item belongs to, so the next request makes the window anew.
    is_ambiguous: bool,
    /// Memory that was taken for it.
    paid: Paid,
}

/// Memory that is given back when this is dropped.
struct Paid {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl Paid {
    /// Pays so much in all, for which what can be made again gives way.
    fn pay(&mut self, bytes: usize, turn: &dyn Following) -> Result<(), CollectionError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => turn.take_memory(more)?,
            None => self.budget.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// What the numbers of the stream are called.
#[derive(Default)]
struct Names {
    /// Of the items of the window, from number `first` on.
    ids: VecDeque<Arc<str>>,
    first: u64,
    /// Bytes of these names.
    bytes: usize,
    /// Of the items that events began with, and how many items each had, by the events' numbers.
    events: HashMap<u64, (Arc<str>, u64)>,
    /// The numbers of events by these names: of two of one name, the later one's.
    numbers: HashMap<Arc<str>, u64>,
    /// How many events began before the window did. Their numbers are the highest.
    outside: u64,
}

impl Names {
    fn of(&self, number: u64) -> Option<&Arc<str>> {
        self.ids.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The number of an event that is called by the item that it began with.
    fn number(&mut self, begun: &str) -> u64 {
        if let Some(known) = self.numbers.get(begun) {
            return *known;
        }
        self.outside += 1;
        u64::MAX - self.outside
    }

    /// What is known of an event, which is called so if nothing was known.
    fn event(&mut self, event: u64, begun: &Arc<str>) -> &mut (Arc<str>, u64) {
        self.events.entry(event).or_insert_with(|| {
            self.numbers.insert(Arc::clone(begun), event);
            (Arc::clone(begun), 0)
        })
    }

    /// Adds the next item to an event, which this one begins if none is known; the event's name, and
    /// how many items it has by now.
    fn join(&mut self, id: &Arc<str>, event: u64) -> (Arc<str>, u64) {
        self.ids.push_back(Arc::clone(id));
        self.bytes += id.len();
        let known = self.event(event, id);
        known.1 += 1;
        (Arc::clone(&known.0), known.1)
    }

    /// Forgets the items before a number.
    fn forget_before(&mut self, number: u64) {
        while self.first < number
            && let Some(id) = self.ids.pop_front()
        {
            self.bytes -= id.len();
            self.first += 1;
        }
    }

    /// Forgets events of which the window has nothing more.
    fn forget_events(&mut self, is_known: impl Fn(u64) -> bool) {
        self.events.retain(|&event, _| is_known(event));
        self.numbers.retain(|_, event| is_known(*event));
    }

    /// Bytes of memory that they take, roughly. The names of events are those of items, as a rule of the
    /// window.
    fn memory(&self) -> usize {
        self.bytes + NAME_BYTES * (self.ids.len() + 2 * self.events.len())
    }
}

impl std::fmt::Debug for HeldWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeldWindow({} items)", self.names.ids.len())
    }
}

impl HeldWindow {
    /// An empty window of a collection, if there is memory for it.
    pub(super) fn new(
        turn: &dyn Following,
        engine: SharedEngine,
        settings: Settings,
    ) -> Result<Self, MatchError> {
        let fingerprint = engine.model().fingerprint().to_owned();
        let dims = engine.embedding_dims(settings.method)?;
        let budget = Arc::clone(turn.budget());
        let mut paid = Paid { budget, bytes: 0 };
        // Before the window itself takes the memory.
        paid.pay(stream::least_bytes(dims, &settings), turn)?;
        let stream = Stream::new(engine, settings)?;
        let (revision, next, names) = (turn.revision(), 0, Names::default());
        Ok(Self { stream, fingerprint, revision, next, names, is_ambiguous: false, paid })
    }

    /// How texts are matched against it.
    pub(super) fn settings(&self) -> &Settings {
        self.stream.settings()
    }

    /// Whether it holds what a collection of this revision has, but for items that were added.
    pub(super) fn can_go_on(&self, engine: &Engine, revision: u64) -> bool {
        self.revision == revision
            && !self.is_ambiguous
            && self.fingerprint == engine.model().fingerprint()
    }

    /// It holds all of a collection of this revision, the next item of which has this number.
    pub(super) fn is_of(&mut self, revision: u64, next: u64) {
        (self.revision, self.next) = (revision, next);
    }

    /// Items from before this time are near to none.
    pub(super) fn leave_out_before(&mut self, oldest: i64) {
        self.stream.leave_out_before(oldest);
    }

    /// Takes in the last items of a collection, except those of some names.
    pub(super) fn fill(
        &mut self,
        turn: &mut dyn Following,
        now: i64,
        except: &HashSet<Box<str>>,
    ) -> Result<(), MatchError> {
        let items = turn.last(self.settings().limits.last, except, now)?;
        self.next = turn.next_number();
        self.remember(&items)?;
        Ok(self.pay(turn)?)
    }

    /// Takes in what was added to a collection since.
    pub(super) fn catch_up(&mut self, turn: &mut dyn Following) -> Result<(), MatchError> {
        let next = turn.next_number();
        if self.next == next {
            return Ok(());
        }
        let added = turn.since(self.next, self.settings().limits.last)?;
        self.next = next;
        self.remember(&added)
    }

    /// Pays for the memory that it takes.
    pub(super) fn pay(&mut self, turn: &dyn Following) -> Result<(), CollectionError> {
        let bytes = self.stream.bytes() + self.names.memory();
        self.paid.pay(bytes, turn)
    }

    /// Takes in items whose events are known.
    fn remember(&mut self, items: &[Arc<Item>]) -> Result<(), MatchError> {
        for item in items {
            let (number, id) = (self.stream.next(), Arc::from(&*item.id));
            let begun = item.event.as_ref().map_or(&*item.id, |event| &*event.id);
            let begins = begun == &*item.id;
            let known = self.names.numbers.get(begun);
            let is_left = |event: &u64| self.stream.events().size(*event) == 0;
            self.is_ambiguous |= known.is_some_and(|event| begins || is_left(event));
            let event = if begins { number } else { self.names.number(begun) };
            let size = item.event.as_ref().map_or(1, |event| event.size);
            let known = self.names.event(event, &Arc::from(begun));
            // What was loaded after it has no say in how large it was.
            let size = size.max(known.1);
            known.1 = size - 1;
            self.names.join(&id, event);
            let text = stream::Item { time: item.time, text: &item.text };
            self.stream.remember(text, event)?;
            self.stream.events_mut().restore(event, size, Vec::new());
            self.sweep();
        }
        Ok(())
    }

    /// Decides some items, which are then to be written.
    pub(super) fn decide(
        &mut self,
        batch: Vec<Item>,
        duplicate: f32,
        all: &mut Vec<Matched>,
        decided: &mut Vec<Item>,
    ) -> Result<(), MatchError> {
        let texts = batch.iter().map(|item| stream::Item { time: item.time, text: &item.text });
        let texts: Vec<stream::Item<'_>> = texts.collect();
        let mut decisions = Vec::with_capacity(batch.len());
        self.stream
            .follow_with(&texts, |decision, near| decisions.push((decision, near.to_vec())))?;
        for (mut item, (decision, near)) in batch.into_iter().zip(decisions) {
            let id: Arc<str> = (&*item.id).into();
            // An item is matched again, or has the name that another had before.
            self.is_ambiguous |= self.names.numbers.contains_key(&id);
            let (event, size) = self.names.join(&id, decision.event);
            item.event = Some(Event { id: (&*event).into(), size });
            let name = |near: &Near| Some((Arc::clone(self.names.of(near.number)?), near.score));
            let least = self.settings().rule.threshold;
            let reached = near.iter().filter(|near| near.score >= least);
            let duplicate = near.first().filter(|near| near.score >= duplicate);
            all.push(Matched {
                nearest: reached.filter_map(name).collect(),
                event,
                new: decision.new,
                score: decision.score,
                nearest_of_event: decision.nearest.and_then(|near| Some(name(&near)?.0)),
                duplicate_of: duplicate.and_then(|near| Some(name(near)?.0)),
            });
            decided.push(item);
        }
        self.sweep();
        Ok(())
    }

    /// Forgets names that the window needs no more.
    fn sweep(&mut self) {
        let last = self.settings().limits.last as u64;
        self.names.forget_before(self.stream.next().saturating_sub(last));
        let events = self.stream.events();
        if self.names.events.len() > 2 * events.len() + BATCH {
            self.names.forget_events(|event| events.size(event) > 0);
        }
    }
}
