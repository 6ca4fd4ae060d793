//! What a collection holds in memory, and how changes apply to it. The same changes in the same
//! order give the same items, whether they are made or read back.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::embedded::Table;
use crate::settings::allocated;
use crate::transaction::Change;
use crate::{Applied, Item, Settings};

/// Bytes of an item's entry in the order of times: a tree that grows at its end is little more than
/// half full.
const TIME_BYTES: usize = 40;
/// Unused slots of a map, for each used one, above which it is shrunk.
const SPARE: usize = 4;
/// A map of at most this many slots is not shrunk.
const MIN_PLACES: usize = 256;

#[derive(Debug)]
struct ByName(Arc<Item>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ByName {}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) table: Arc<Table>,
    numbers: HashMap<ByName, u64>,
    next: u64,
    /// Items by time, if the collection expires items.
    times: BTreeSet<(i64, u64)>,
    pub(super) settings: Settings,
    /// Bytes of memory of all items, with their index entries.
    pub(super) bytes: usize,
    /// Time of the last merge that moved items of the collection.
    pub(super) last_move: i64,
}

impl Items {
    pub(super) fn keeping(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    pub(super) fn number(&self, id: &str) -> Option<u64> {
        self.numbers.get(id).copied()
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    pub(super) fn item(&self, id: &str) -> Option<&Arc<Item>> {
        self.table.get(self.number(id)?)
    }

    /// Applies a change and counts its bytes. Limits were checked before.
    pub(super) fn apply(&mut self, change: Change, applied: &mut Applied) {
        match change {
            Change::Format(_) => {}
            Change::Set(settings) => self.set(settings),
            Change::Put(item) => match self.put(Arc::new(*item)) {
                true => applied.replaced += 1,
                false => applied.added += 1,
            },
            Change::Patch { id, time, attributes, data } => {
                let patched = |item: &Item| Some(Item { time, attributes, data, ..item.clone() });
                applied.patched += usize::from(self.change(&id, patched));
            }
            Change::Move(to) => _ = self.change(&to.id.clone(), |item| item.moved(to)),
            Change::Expire(oldest) => self.expire(oldest),
            Change::Lag(lag) => self.settings.lag_ms = Some(lag),
            Change::Remove(id) => applied.removed += usize::from(self.remove(&id)),
        }
        applied.left += self.shrink();
        if self.table.is_empty() {
            self.settings.lag_ms = None;
        }
    }

    pub(super) fn apply_all(&mut self, changes: impl IntoIterator<Item = Change>) {
        let mut applied = Applied::default();
        changes.into_iter().for_each(|change| self.apply(change, &mut applied));
    }

    fn expire(&mut self, oldest: i64) {
        while let Some(&(time, number)) = self.times.first()
            && time < oldest
        {
            self.take(number);
            // Without this an entry of a removed item would be visited at every expiry.
            self.times.remove(&(time, number));
        }
    }

    pub(super) fn count(&self, oldest: Option<i64>) -> usize {
        let old = match oldest {
            None => 0,
            Some(oldest) if self.settings.ttl_ms.is_some() => {
                self.times.range(..(oldest, 0)).count()
            }
            // Without a `ttl` the order of times is not stored.
            Some(oldest) => self.table.iter().filter(|(_, item)| item.time < oldest).count(),
        };
        self.table.len().saturating_sub(old)
    }

    /// Turns these items into those of another log. Items of the same name and text that both have
    /// in the same order keep their numbers: vectors are stored by number, and readers of alerts
    /// continue by number.
    pub(super) fn turn_into(&mut self, other: &Self) {
        let (mut kept, mut last) = (HashMap::new(), None);
        // From the first unknown item on, all are added anew, so that they stay in order.
        let mut fresh = Vec::new();
        for (_, item) in other.table.iter() {
            let number = self.number(&item.id).filter(|number| {
                let own = self.table.get(*number);
                fresh.is_empty()
                    && Some(*number) > last
                    && own.is_some_and(|own| own.text == item.text)
            });
            match number {
                Some(number) => {
                    kept.insert(number, item);
                    last = Some(number);
                }
                None => fresh.push(item),
            }
        }
        let own: Vec<(u64, Arc<Item>)> =
            self.table.iter().map(|(number, item)| (number, Arc::clone(item))).collect();
        for (number, item) in own {
            match kept.get(&number) {
                None => _ = self.take(number),
                Some(other) if item.is(other) => {}
                Some(other) => _ = self.change(&item.id, |_| Some(Item::clone(other))),
            }
        }
        self.set(other.settings);
        for item in fresh {
            self.put(Arc::clone(item));
        }
    }

    /// Restores an earlier state. Numbers are not used again, since vectors are stored by number.
    pub(super) fn restore(&mut self, table: Arc<Table>, settings: Settings) {
        let named = |(number, item): (u64, &Arc<Item>)| (ByName(Arc::clone(item)), number);
        self.numbers = table.iter().map(named).collect();
        self.table = table;
        self.settings = settings;
        self.times.clear();
        self.order_by_time();
        let bytes: usize = self.table.iter().map(|(_, item)| item.bytes()).sum();
        self.bytes = bytes + self.table.len() * self.time_bytes();
    }

    /// The bytes that changes take; what they free is not subtracted.
    pub(super) fn bytes_of(&self, changes: &[Change]) -> usize {
        let (mut bytes, mut items, mut each) = (0, self.table.len(), self.time_bytes());
        for change in changes {
            match change {
                Change::Put(item) => {
                    bytes += item.bytes() + each;
                    items += 1;
                }
                // The replaced item's bytes are returned afterwards.
                Change::Move(to) => {
                    let own = self.item(&to.id).map_or(0, |item| item.bytes());
                    bytes += own + allocated(to.event.len());
                }
                Change::Patch { id, attributes, data, .. } => {
                    let own = self.item(id).map_or(0, |item| item.bytes());
                    let data = data.as_ref().map_or(0, |data| allocated(data.get().len()));
                    bytes += own + attributes.bytes() + data;
                }
                Change::Set(settings) if settings.ttl_ms.is_some() && each == 0 => {
                    each = TIME_BYTES;
                    bytes += items * each;
                }
                Change::Set(_)
                | Change::Format(_)
                | Change::Remove(_)
                | Change::Expire(_)
                | Change::Lag(_) => {}
            }
        }
        bytes
    }

    fn time_bytes(&self) -> usize {
        self.settings.ttl_ms.map_or(0, |_| TIME_BYTES)
    }

    fn set(&mut self, settings: Settings) {
        self.bytes = self.bytes.saturating_sub(self.table.len() * self.time_bytes());
        self.settings = settings;
        self.times.clear();
        self.order_by_time();
        self.bytes += self.table.len() * self.time_bytes();
    }

    fn order_by_time(&mut self) {
        if self.settings.ttl_ms.is_some() {
            self.times = self.table.iter().map(|(number, item)| (item.time, number)).collect();
        }
    }

    fn put(&mut self, item: Arc<Item>) -> bool {
        let replaces = self.remove(&item.id);
        let number = self.next;
        self.next += 1;
        self.note_move(&item);
        self.bytes += item.bytes() + self.time_bytes();
        self.numbers.insert(ByName(Arc::clone(&item)), number);
        if self.settings.ttl_ms.is_some() {
            self.times.insert((item.time, number));
        }
        Arc::make_mut(&mut self.table).push(number, item);
        replaces
    }

    fn remove(&mut self, id: &str) -> bool {
        let number = self.numbers.get(id).copied();
        number.is_some_and(|number| self.take(number))
    }

    fn note_move(&mut self, item: &Item) {
        let at = item.event.as_ref().and_then(|event| event.moved_at);
        self.last_move = at.map_or(self.last_move, |at| at.max(self.last_move));
    }

    /// Replaces an item by `changed`; returns whether the item exists and changes.
    fn change(&mut self, id: &str, changed: impl FnOnce(&Item) -> Option<Item>) -> bool {
        let Some(number) = self.number(id) else { return false };
        let Some(changed) = self.table.get(number).and_then(|item| changed(item)) else {
            return false;
        };
        let changed = Arc::new(changed);
        self.note_move(&changed);
        self.bytes += changed.bytes();
        // The key points into the item's own memory.
        self.numbers.remove(id);
        self.numbers.insert(ByName(Arc::clone(&changed)), number);
        let time = changed.time;
        let before = Arc::make_mut(&mut self.table).replace(number, changed);
        self.bytes = self.bytes.saturating_sub(before.as_ref().map_or(0, |item| item.bytes()));
        if before.is_some_and(|before| self.times.remove(&(before.time, number))) {
            self.times.insert((time, number));
        }
        true
    }

    fn take(&mut self, number: u64) -> bool {
        let Some(item) = Arc::make_mut(&mut self.table).remove(number) else { return false };
        self.numbers.remove(&*item.id);
        self.times.remove(&(item.time, number));
        self.bytes = self.bytes.saturating_sub(item.bytes() + self.time_bytes());
        if self.numbers.capacity() > SPARE * self.numbers.len().max(MIN_PLACES) {
            self.numbers.shrink_to(2 * self.numbers.len());
        }
        true
    }

    fn shrink(&mut self) -> usize {
        let most = self.settings.max_items.unwrap_or(usize::MAX);
        let mut left = 0;
        while self.table.len() > most {
            let Some(first) = self.table.first() else { break };
            left += usize::from(self.take(first));
        }
        left
    }
}
