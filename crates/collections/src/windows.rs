//! The windows that texts are matched against: the last items of a collection, stored from one
//! request to the next, and what a home provides in the turn in which it matches and adds.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use cognate::engine::Engine;
use cognate::window::events::Considered;
use cognate::window::stream::{AddPolicy, Reasons, Settings as StreamSettings, Stream};
use cognate::window::{BATCH, Near, stream};
use parking_lot::Mutex;

use crate::settings::{GivesWay, Paid};
use crate::{
    Budget, Cancellation, ChooseError, ConsideredEvent, Event, Filter, Item, ItemSelector,
    MatchOptions, MatchReasons, Matched, Result, Settings, SharedEngine,
};

pub(super) type Numbered = Vec<(u64, Arc<Item>)>;

const MAX_WINDOWS: usize = 4;
/// Most words that are returned as reasons for one text.
const MAX_WORDS: usize = 16;

/// A turn to match texts against a collection.
pub(super) trait Following {
    fn settings(&self) -> Settings;

    /// Counts all changes but items that were added or left by age or number; also items that were
    /// added to an empty collection.
    fn revision(&self) -> u64;

    /// Number of items not older than this.
    fn live(&mut self, oldest: Option<i64>) -> Result<usize>;

    fn next_number(&self) -> u64;

    /// The items of these names, expired items included.
    fn there(&mut self, ids: &[&str]) -> Result<HashMap<Box<str>, Arc<Item>>>;

    /// At most `most` of the last selected items, in order; before the item of this number, if
    /// given.
    fn last(
        &mut self,
        most: usize,
        which: &ItemSelector<'_>,
        at: (Option<u64>, i64),
        cancel: Cancellation<'_>,
    ) -> Result<Numbered, ChooseError>;

    /// At most `most` of the last items in order, from this number on.
    fn since(&mut self, number: u64, most: usize) -> Result<Numbered>;

    fn windows(&self) -> &Windows;

    fn budget(&self) -> &Arc<Budget>;

    /// Takes memory; if it is short, windows are dropped, the collection's own first.
    fn take_memory(&self, bytes: usize) -> Result<()> {
        self.budget().take_with(bytes, &[&|| self.windows().clear()])
    }
}

#[derive(Debug, Default)]
pub(super) struct Windows(Mutex<Vec<HeldWindow>>);

impl Windows {
    /// Takes out the window of these settings, if it can be continued. Others that cannot are
    /// dropped.
    pub(super) fn take(
        &self,
        asked: (&StreamSettings, &Filter),
        engine: &Engine,
        revision: u64,
    ) -> Option<HeldWindow> {
        let mut windows = self.0.lock();
        windows.retain(|window| window.can_go_on(engine, revision));
        let place =
            windows.iter().position(|window| (window.settings(), &window.filter) == asked)?;
        Some(windows.remove(place))
    }

    /// Stores a window in place of the least recently used.
    pub(super) fn keep(&self, window: HeldWindow) {
        let mut windows = self.0.lock();
        windows.push(window);
        let many = windows.len().saturating_sub(MAX_WINDOWS);
        windows.drain(..many);
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl GivesWay for Windows {
    fn give_way(&self) {
        self.clear();
    }
}

/// Bytes of an id of an item or an event besides its text, with its entries in the lists.
const NAME_BYTES: usize = 64;

/// Bytes of an item besides its text and id, and of an event of its own.
const ENTRY_BYTES: usize = 3 * NAME_BYTES + 128;

pub(super) struct HeldWindow {
    stream: Stream<SharedEngine>,
    filter: Filter,
    fingerprint: String,
    revision: u64,
    /// The number in the collection of the next item to take in.
    next: u64,
    names: EventIds,
    /// Whether an item has the name of an earlier item that began an event of this window. Names
    /// then do not tell which of the two events an item belongs to, so the next request rebuilds
    /// the window.
    is_ambiguous: bool,
    paid: Paid,
}

impl Paid {
    /// Pays for `bytes` in all; if memory is short, other windows are dropped.
    fn pay(&mut self, bytes: usize, turn: &dyn Following) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => turn.take_memory(more)?,
            None => self.budget.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// Ids of the items and events that the stream numbers.
#[derive(Default)]
struct EventIds {
    /// Ids and times of the window's items, from number `first` on.
    ids: VecDeque<(Arc<str>, i64)>,
    first: u64,
    /// The latest time of the items before them that may still be in the collection.
    latest_before: Option<i64>,
    bytes: usize,
    /// Ids of the items that events began with, and the sizes of the events, by the events'
    /// numbers.
    events: HashMap<u64, (Arc<str>, u64)>,
    /// Numbers of events by name: of two events of one name, the later one's.
    numbers: HashMap<Arc<str>, u64>,
    /// Number of events that began before the window did. Their numbers are the highest.
    outside: u64,
}

impl EventIds {
    fn of(&self, number: u64) -> Option<&Arc<str>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ids.get(place).map(|(id, _)| id)
    }

    /// The number of the event that began with this item.
    fn number(&mut self, begun: &str) -> u64 {
        if let Some(known) = self.numbers.get(begun) {
            return *known;
        }
        self.outside += 1;
        u64::MAX - self.outside
    }

    /// The known event, or a new event of this id.
    fn event(&mut self, event: u64, begun: &Arc<str>) -> &mut (Arc<str>, u64) {
        self.events.entry(event).or_insert_with(|| {
            self.numbers.insert(Arc::clone(begun), event);
            (Arc::clone(begun), 0)
        })
    }

    /// The name of an event, or the id of this item if the event is unknown.
    fn called(&self, event: u64, id: &Arc<str>) -> Arc<str> {
        Arc::clone(self.events.get(&event).map_or(id, |(begun, _)| begun))
    }

    /// Adds the next item to an event, which it begins if the event is unknown; returns the event's
    /// name and size.
    fn join(&mut self, id: &Arc<str>, time: i64, event: u64) -> (Arc<str>, u64) {
        self.ids.push_back((Arc::clone(id), time));
        self.bytes += id.len();
        let known = self.event(event, id);
        known.1 = known.1.saturating_add(1);
        (Arc::clone(&known.0), known.1)
    }

    fn forget_before(&mut self, number: u64) {
        while self.first < number
            && let Some((id, time)) = self.ids.pop_front()
        {
            self.latest_before = self.latest_before.max(Some(time));
            self.bytes -= id.len();
            self.first += 1;
        }
    }

    /// Drops events without an item in the window.
    fn forget_events(&mut self, is_known: impl Fn(u64) -> bool) {
        self.events.retain(|&event, _| is_known(event));
        self.numbers.retain(|_, event| is_known(*event));
    }

    /// Approximate bytes of memory. An event's name is usually that of an item in the window.
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
    pub(super) fn new(
        turn: &dyn Following,
        engine: SharedEngine,
        MatchOptions { stream: settings, filter, .. }: &MatchOptions,
    ) -> Result<Self, ChooseError> {
        let (settings, filter) = (*settings, filter.clone());
        let fingerprint = engine.model().fingerprint().to_owned();
        let dims = engine.embedding_dims(settings.method)?;
        let budget = Arc::clone(turn.budget());
        let mut paid = Paid { budget, bytes: 0 };
        // Pays before the window allocates.
        paid.pay(stream::least_bytes(dims, &settings), turn)?;
        let stream = Stream::new(engine, settings)?;
        let (revision, next, names) = (turn.revision(), 0, EventIds::default());
        Ok(Self { stream, filter, fingerprint, revision, next, names, is_ambiguous: false, paid })
    }

    pub(super) fn settings(&self) -> &StreamSettings {
        self.stream.settings()
    }

    /// Whether the window can be continued at this revision, if it takes in all items that were
    /// added since.
    pub(super) fn can_go_on(&self, engine: &Engine, revision: u64) -> bool {
        self.revision == revision
            && !self.is_ambiguous
            && self.fingerprint == engine.model().fingerprint()
    }

    /// Records that the window is complete for this revision and this number of the next item.
    pub(super) fn is_of(&mut self, revision: u64, next: u64) {
        (self.revision, self.next) = (revision, next);
    }

    /// Items from before this time are no neighbours.
    pub(super) fn leave_out_before(&mut self, oldest: i64) {
        self.stream.leave_out_before(oldest);
    }

    /// The time before which items are no neighbours.
    pub(super) fn oldest(&self) -> i64 {
        self.stream.window().oldest()
    }

    /// Whether an item from before this time came after a younger one, whose place in the window it
    /// has or will take.
    fn has_gap(&self, oldest: i64) -> bool {
        let times = self.names.ids.iter().map(|(_, time)| *time);
        let times = self.names.latest_before.into_iter().chain(times);
        times.skip_while(|time| *time < oldest).any(|time| time < oldest)
    }

    /// Takes in the last items of a collection, before a number if given, without those of some
    /// names. A cancelled call keeps the items taken in so far.
    pub(super) fn fill(
        &mut self,
        turn: &mut dyn Following,
        without: HashSet<Cow<'_, str>>,
        at: (Option<u64>, i64),
        cancel: Cancellation<'_>,
    ) -> Result<(), ChooseError> {
        let items = self.read(turn, without, at, cancel)?;
        self.remember(&items, cancel)?;
        self.next = turn.next_number();
        Ok(self.pay(turn)?)
    }

    /// Returns the items that [`fill`](Self::fill) adds to the window, which are paid for.
    pub(super) fn read(
        &mut self,
        turn: &mut dyn Following,
        without: HashSet<Cow<'_, str>>,
        at: (Option<u64>, i64),
        cancel: Cancellation<'_>,
    ) -> Result<Numbered, ChooseError> {
        let which = ItemSelector { filter: self.filter.clone(), without, ..Default::default() };
        let items = turn.last(self.settings().limits.last, &which, at, cancel)?;
        self.pay_for(&items, turn)?;
        Ok(items)
    }

    /// Adds to the window the items that the collection got meanwhile. Returns whether the window then
    /// equals a rebuilt window; items from before `oldest` have expired.
    pub(super) fn catch_up(
        &mut self,
        turn: &mut dyn Following,
        oldest: Option<i64>,
        cancel: Cancellation<'_>,
    ) -> Result<bool, ChooseError> {
        let (next, most) = (turn.next_number(), self.settings().limits.last);
        if self.next < next {
            let mut added = turn.since(self.next, most)?;
            // Some expired and are gone: nothing tells which earlier items they evicted.
            if added.len() < most && (added.len() as u64) < next - self.next {
                return Ok(false);
            }
            // More items before these may belong in the window.
            if !self.filter.is_empty() && added.len() == most {
                return Ok(false);
            }
            added.retain(|(_, item)| self.filter.admits(&item.attributes, item.time));
            self.pay_for(&added, turn)?;
            self.remember(&added, cancel)?;
            self.pay(turn)?;
            self.next = next;
        }
        // Late items expire before earlier ones, and a rebuilt window would have others instead of
        // them.
        Ok(!oldest.is_some_and(|oldest| self.has_gap(oldest)))
    }

    pub(super) fn pay(&mut self, turn: &dyn Following) -> Result<()> {
        self.pay_for(&[], turn)
    }

    /// Pays for all that the window has and at most for items that it will remember, of which it copies the
    /// texts and the names.
    fn pay_for(&mut self, items: &[(u64, Arc<Item>)], turn: &dyn Following) -> Result<()> {
        let copied = |(_, item): &(u64, Arc<Item>)| item.text.len() + item.id.len() + ENTRY_BYTES;
        let copies: usize = items.iter().map(copied).sum();
        self.paid.pay(self.stream.bytes() + self.names.memory() + copies, turn)
    }

    pub(super) fn remember(
        &mut self,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<(), ChooseError> {
        if items.len() == self.settings().limits.last {
            // Before a full window there may be other items of any time.
            self.names.latest_before = Some(i64::MAX);
        }
        for (at, item) in items {
            cancel.check()?;
            let (number, id) = (self.stream.next(), Arc::from(&*item.id));
            let begun = item.event.as_ref().map_or(&*item.id, |event| &*event.id);
            let begins = item.event.as_ref().is_none_or(Event::is_new);
            let known = self.names.numbers.get(begun);
            let is_left = |event: &u64| self.stream.events().size(*event) == 0;
            self.is_ambiguous |= known.is_some_and(|event| begins || is_left(event));
            let event = if begins { number } else { self.names.number(begun) };
            let size = item.event.as_ref().map_or(1, |event| event.size);
            let known = self.names.event(event, &Arc::from(begun));
            // The size that the last item records: a rebuilt window has no other.
            known.1 = size.saturating_sub(1);
            self.names.join(&id, item.time, event);
            let text = stream::Item { time: item.time, text: &item.text };
            self.stream.remember(text, event)?;
            self.stream.events_mut().set_size(event, size);
            self.next = at + 1;
            self.sweep();
        }
        Ok(())
    }

    /// Decides items; the caller then writes those that are added. A window whose request was cancelled
    /// is incomplete and must be dropped. Each item has the time before which items are gone when it comes:
    /// those that are decided together share the neighbours of the first, but each has its own past.
    pub(super) fn decide(
        &mut self,
        batch: Vec<(Item, i64)>,
        (add, explain, cancel): (AddPolicy, bool, Cancellation<'_>),
        all: &mut Vec<Matched>,
        decided: &mut Vec<Item>,
    ) -> Result<(), ChooseError> {
        let texts = batch.iter();
        let texts = texts.map(|(item, _)| stream::Item { time: item.time, text: &item.text });
        let texts: Vec<stream::Item<'_>> = texts.collect();
        let mut decisions = Vec::with_capacity(batch.len());
        let tell = |decision, reasons: Reasons<'_>| {
            let asked = |near: &Near| Some((*near, reasons.event_of(near.number)?));
            let asked = || reasons.nearest.iter().filter_map(asked).collect::<Vec<_>>();
            let told = explain.then(|| (asked(), reasons.considered.to_vec()));
            let mut words = reasons.words();
            words.truncate(if explain { MAX_WORDS } else { 1 });
            let oldest = batch.get(decisions.len()).map_or(i64::MIN, |(_, oldest)| *oldest);
            let bursts = reasons.begins_to_burst(oldest);
            decisions.push((decision, reasons.nearest.to_vec(), told, words, bursts));
        };
        self.stream.follow_with(&texts, add, || cancel.check().is_ok(), tell)?;
        if decisions.len() < batch.len() {
            return Err(ChooseError::Stopped);
        }
        for ((mut item, oldest), decision) in batch.into_iter().zip(decisions) {
            let (decision, near, told, words, bursts) = decision;
            let id: Arc<str> = (&*item.id).into();
            let reasons = told.map(|told| self.reasons(told, words.clone(), &id));
            let added = add.adds(&decision);
            // An item is matched again, or has the name of an earlier item.
            self.is_ambiguous |= added && self.names.numbers.contains_key(&id);
            let (event, size) = match added {
                true => self.names.join(&id, item.time, decision.event),
                false => (self.names.called(decision.event, &id), 0),
            };
            let name = |near: &Near| Some((Arc::clone(self.names.of(near.number)?), near.score));
            let least = self.settings().rule.threshold;
            let reached = near.iter().filter(|near| near.score >= least);
            let duplicate = decision.nearest.filter(|_| decision.duplicate);
            let duplicate_of = duplicate.and_then(|near| Some(name(&near)?.0));
            item.event = Some(Event {
                id: (&*event).into(),
                size,
                score: decision.score,
                duplicate_of: duplicate_of.as_deref().map(Box::from),
                moved_from: None,
                moved_at: None,
                bursts,
            });
            all.push(Matched {
                nearest: reached.filter_map(name).collect(),
                event,
                new: decision.new,
                score: decision.score,
                word: words.into_iter().next(),
                duplicate_of,
                repeated: false,
                added,
                expired: item.time < oldest,
                left: 0,
                reasons: reasons.map(Box::new),
            });
            decided.extend(added.then_some(item));
        }
        self.sweep();
        Ok(())
    }

    fn reasons(
        &self,
        (asked, considered): (Vec<(Near, u64)>, Vec<Considered>),
        words: Vec<Box<str>>,
        id: &Arc<str>,
    ) -> MatchReasons {
        let called = |event| self.names.called(event, id);
        let named = |(near, event): &(Near, u64)| {
            Some((Arc::clone(self.names.of(near.number)?), near.score, called(*event)))
        };
        let considered = considered.into_iter();
        let considered = considered.map(|one| ConsideredEvent::new(called(one.event), one));
        let (nearest, considered) =
            (asked.iter().filter_map(named).collect(), considered.collect());
        MatchReasons { nearest, considered, words }
    }

    /// Drops names that the window no longer needs.
    fn sweep(&mut self) {
        let last = self.settings().limits.last as u64;
        self.names.forget_before(self.stream.next().saturating_sub(last));
        let events = self.stream.events();
        if self.names.events.len() > 2 * events.len() + BATCH {
            self.names.forget_events(|event| events.size(event) > 0);
        }
    }
}
