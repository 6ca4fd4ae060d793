//! The settings of a collection, and the limits of all collections together.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{CollectionError, Item, Result};

pub const NAME_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Most items: of more the oldest leave. Without it as many as all collections may have, and then
    /// nothing more is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<usize>,
    /// Items older than this many milliseconds are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// How many milliseconds the collection's clock is behind the server's: the smallest delay of any item,
    /// from its time to its addition. So a replay of old texts has the clock of those days, a live stream
    /// the server's, and no item stays longer than `ttl_ms` after its addition. A collection without items
    /// has none. No caller sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<i64>,
}

/// A caller's change of a collection's settings; fields that are left out stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SettingsChange {
    pub max_items: Option<Option<usize>>,
    pub ttl_ms: Option<Option<i64>>,
    /// Whether items beyond the new settings may be deleted.
    pub drop: bool,
}

impl From<Settings> for SettingsChange {
    /// Exactly these settings, whatever they delete.
    fn from(Settings { max_items, ttl_ms, .. }: Settings) -> Self {
        Self { max_items: Some(max_items), ttl_ms: Some(ttl_ms), drop: true }
    }
}

impl SettingsChange {
    /// The changed settings of a collection that has these. `count` returns how many items would
    /// stay by given settings.
    pub(super) fn apply<E: From<CollectionError>>(
        self,
        own: Settings,
        mut count: impl FnMut(Settings) -> Result<usize, E>,
    ) -> Result<Settings, E> {
        let (max_items, ttl_ms) =
            (self.max_items.unwrap_or(own.max_items), self.ttl_ms.unwrap_or(own.ttl_ms));
        let after = Settings { max_items, ttl_ms, ..own };
        if !self.drop && after != own {
            let stay = count(after)?.min(max_items.unwrap_or(usize::MAX));
            let items = count(own)?.saturating_sub(stay);
            if items > 0 {
                return Err(CollectionError::WouldDrop { items }.into());
            }
        }
        Ok(after)
    }
}

impl Settings {
    /// The settings after an item of this time is added to a collection, which has no clock while
    /// it is empty.
    pub(super) fn with_item(self, is_empty: bool, time: i64, now: i64) -> Self {
        let lag = now.saturating_sub(time).max(0);
        let before = self.lag_ms.filter(|_| !is_empty).unwrap_or(lag);
        Self { lag_ms: Some(lag.min(before)), ..self }
    }

    /// The settings after items of these times are added in turn.
    pub(super) fn with_items(
        self,
        is_empty: bool,
        mut times: impl Iterator<Item = i64>,
        now: i64,
    ) -> Self {
        let Some(first) = times.next() else { return self };
        let first = self.with_item(is_empty, first, now);
        times.fold(first, |settings, time| settings.with_item(false, time, now))
    }

    pub(super) fn oldest(self, now: i64) -> Option<i64> {
        self.ttl_ms.map(|ttl| self.clock(now).saturating_sub(ttl))
    }

    /// The time before which `within` excludes items.
    pub(super) fn oldest_within(self, within: Option<i64>, now: i64) -> Option<i64> {
        let wanted = within.map(|within| self.clock(now).saturating_sub(within));
        self.oldest(now).max(wanted)
    }

    pub fn clock(self, now: i64) -> i64 {
        now.saturating_sub(self.lag_ms.unwrap_or(0))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub collections: usize,
    /// Most items of a collection.
    pub items: usize,
    /// Most bytes of memory of all items, and of the windows that texts are matched against.
    pub bytes: usize,
    pub text_bytes: usize,
}

impl Limits {
    /// Refuses if no collection accepts one of these items.
    pub(super) fn check(&self, items: &[Item]) -> Result<()> {
        items.iter().enumerate().try_for_each(|(index, item)| {
            let checked = item.check(self.text_bytes);
            checked.map_err(|problem| CollectionError::Item { index, problem })
        })
    }

    pub(super) fn check_kept(&self, change: SettingsChange) -> Result<()> {
        let limit = self.items;
        match change.max_items.flatten().filter(|most| *most > limit) {
            Some(wanted) => Err(CollectionError::TooManyItems { wanted, limit }),
            None => Ok(()),
        }
    }

    pub const DEFAULT: Self =
        Self { collections: 100, items: 1_000_000, bytes: 1 << 30, text_bytes: 32 << 10 };
}

/// A holder of memory for data that can be computed again.
pub(super) trait GivesWay: Debug + Send + Sync {
    fn give_way(&self);
}

#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    limit: usize,
    /// Caches of all collections that give up memory when items need it.
    holders: Mutex<Vec<Weak<dyn GivesWay>>>,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit, holders: Mutex::default() }
    }

    pub(super) fn register<H: GivesWay + 'static>(&self, holder: &Arc<H>) {
        let holder: Weak<H> = Arc::downgrade(holder);
        let mut holders = self.holders.lock();
        holders.retain(|one| one.strong_count() > 0);
        holders.push(holder);
    }

    pub(super) fn make_room(&self) {
        // Outside the lock: dropping the last pointer to a collection ends it.
        let holders: Vec<Arc<dyn GivesWay>> =
            self.holders.lock().iter().filter_map(Weak::upgrade).collect();
        holders.iter().for_each(|holder| holder.give_way());
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub fn take(&self, bytes: usize) -> Result<()> {
        // Even over budget, a change that takes nothing is allowed: it may free memory.
        if bytes == 0 {
            return Ok(());
        }
        self.take_up_to(self.limit, bytes)
    }

    /// Takes bytes; if memory is short, calls `own` in turn to free some, then the holders of all
    /// collections.
    pub(super) fn take_with(&self, bytes: usize, own: &[&dyn Fn()]) -> Result<()> {
        for give_way in own.iter().copied().chain([&(|| self.make_room()) as &dyn Fn()]) {
            if self.take(bytes).is_ok() {
                return Ok(());
            }
            give_way();
        }
        self.take(bytes)
    }

    /// Takes bytes for data that can be computed again, if a quarter of the budget stays free.
    pub(super) fn take_spare(self: &Arc<Self>, bytes: usize) -> Result<Paid> {
        self.take_up_to(self.limit - self.limit / 4, bytes)?;
        Ok(Paid { budget: Arc::clone(self), bytes })
    }

    fn take_up_to(&self, most: usize, bytes: usize) -> Result<()> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(CollectionError::NoMemory { limit: self.limit }),
        }
    }

    /// Takes bytes without a limit, for items that were stored before.
    pub(super) fn charge_unchecked(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn give_back(&self, bytes: usize) {
        let less = |used: usize| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Memory that is returned to the budget on drop.
#[derive(Debug)]
pub(super) struct Paid {
    pub(super) budget: Arc<Budget>,
    pub(super) bytes: usize,
}

impl Paid {
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        self.budget.give_back(self.bytes.saturating_sub(bytes));
        self.bytes = self.bytes.min(bytes);
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

/// Checks the name of a collection, which is also the name of its folder.
pub fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = name.bytes().next().is_some_and(plain);
    let rest = name.bytes().all(|byte| plain(byte) || b"._-".contains(&byte));
    if first && rest && name.len() <= NAME_BYTES { Ok(()) } else { Err(CollectionError::BadName) }
}

/// Bytes that an allocator takes for an allocation: glibc and musl store a word beside it, allocate
/// in steps of 16 bytes and at least 32; others are similar.
pub(super) fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => bytes.saturating_add(8).next_multiple_of(16).max(32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_by_what_is_named() {
        let own = Settings { max_items: Some(9), ttl_ms: Some(50), lag_ms: Some(3) };
        let change = |max_items, ttl_ms, drop| SettingsChange { max_items, ttl_ms, drop };
        // Of ten items a `ttl` of 50 ms leaves eight, one of 20 ms five.
        let count = |by: Settings| Ok(by.ttl_ms.map_or(10, |ttl| if ttl < 50 { 5 } else { 8 }));
        let apply = |change: SettingsChange| change.apply::<CollectionError>(own, count);
        assert_eq!(apply(SettingsChange::default()).unwrap(), own);
        let free = apply(change(Some(None), None, false)).unwrap();
        assert_eq!(free, Settings { max_items: None, ..own });
        for (refused, gone) in
            [(change(Some(Some(7)), None, false), 1), (change(None, Some(Some(20)), false), 3)]
        {
            let told = apply(refused);
            assert!(matches!(told, Err(CollectionError::WouldDrop { items }) if items == gone));
            apply(SettingsChange { drop: true, ..refused }).unwrap();
        }
    }
}
