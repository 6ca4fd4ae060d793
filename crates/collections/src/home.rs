//! What every home of collections can do: this process with a folder, or a database. A contract
//! test holds every home to the same answers.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use cognate::engine::{Engine, Query, QueryError};
use cognate::methods::Method;

use crate::embedded::Lasting;
use crate::{
    AskedAttribute, CollectionError, Cut, EventChange, Facets, Filter, Item, ItemPatch, Limits,
    MatchOptions, Matched, Merged, Result, Settings, SettingsChange, SharedEngine, TopQuery,
    Vectors,
};

/// A write that may not survive a crash yet. No caller may be answered before
/// [`Collection::wait_durable`]. Only the home that made it can read it.
#[derive(Debug, Default)]
#[must_use]
pub struct Pending(pub(crate) Option<(Arc<Lasting>, u64)>);

pub trait Home: Debug + Send + Sync {
    fn limits(&self) -> &Limits;

    /// Whether every call waits for another machine; computing threads must then make no call.
    fn is_remote(&self) -> bool {
        false
    }

    /// The collection of this name. A remote home answers without looking; then each call on the
    /// collection reports whether it exists.
    fn get(&self, name: &str) -> Result<Arc<dyn Collection>>;

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>>;

    /// Makes a collection, or changes its settings; returns whether it is new.
    fn set(
        &self,
        _name: &str,
        _change: SettingsChange,
        _now: i64,
    ) -> Result<(Arc<dyn Collection>, bool)> {
        Err(CollectionError::ReadOnly)
    }

    fn delete(&self, _name: &str) -> Result<()> {
        Err(CollectionError::ReadOnly)
    }

    /// Totals as last known, without waiting.
    fn totals(&self, now: i64) -> Totals;

    /// Checks that the stored data is still in place; reports a problem once. Call it every few
    /// seconds.
    fn look_after(&self) -> Result<()> {
        Ok(())
    }

    /// Number of collections that accept no changes until the process restarts, without waiting.
    fn unwritable(&self) -> usize {
        0
    }

    /// Number of collections whose last change found no room on the disk, without waiting.
    fn full(&self) -> usize {
        0
    }

    /// Names of the collections that are not served because their logs cannot be read, with the
    /// reasons.
    fn damaged(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Opens collections that were added to the folder since, and damaged ones that were mended:
    /// their names, and the unfinished ends that were cut off their logs.
    fn take_up(&self) -> Result<(Vec<String>, Vec<Cut>)> {
        Ok(Default::default())
    }

    fn is_awaited(&self) -> bool {
        false
    }

    /// Makes all writes durable and leaves the collections to another process. This process still
    /// serves reads, and refuses changes.
    fn hand_over(&self) {}

    /// Returns statistics of the calls to the database, if a database stores the collections.
    fn calls(&self) -> Option<CallCounts> {
        None
    }
}

/// An item and its number in the order in which items were added.
pub type Numbered = (u64, Arc<Item>);

pub trait Collection: Debug + Send + Sync {
    fn name(&self) -> &str;

    fn limits(&self) -> &Limits;

    fn told(&self, now: i64) -> Result<CollectionInfo>;

    fn activity(&self) -> Activity {
        Activity::default()
    }

    /// The items of these names with their numbers; `None` for a name without an item.
    fn numbered(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Numbered>>>;

    /// The items of these names; `None` for a name without an item.
    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>> {
        let found = self.numbered(ids, now)?.into_iter();
        Ok(found.map(|found| found.map(|(_, item)| item)).collect())
    }

    /// A page of the selected items, in the order in which they were added, and the number of all
    /// selected items.
    fn page(
        &self,
        which: &ItemSelector<'_>,
        page: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError>;

    /// The selected items with their numbers, in the order in which they were added: all of them,
    /// or those of a choice.
    fn choose(
        &self,
        which: &ItemSelector<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError>;

    /// Those of these attributes that no item has; empty for a collection without items.
    fn lacking<'n>(
        &self,
        names: &BTreeSet<AskedAttribute<'n>>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<AskedAttribute<'n>>, ChooseError>;

    /// The counts of values of these attributes among the selected items, at most `most` values of
    /// each.
    fn facets(
        &self,
        which: &ItemSelector<'_>,
        asked: (&[&str], usize),
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Facets, ChooseError>;

    /// The vectors of these items, numbered and in order, by a method, if this home stores vectors;
    /// missing ones are made and stored. What was made before a cancellation stays.
    fn vectors(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        let _ = (engine, method, items, cancel);
        Ok(None)
    }

    /// At most `most` items from this number on, in order; without a number, the last item alone.
    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added>;

    /// The merges of events after this time, oldest first; only of events with items in the collection.
    fn merges(
        &self,
        after: i64,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<Merged>, ChooseError>;

    /// The number of items of the events that a change is about.
    fn count_of(
        &self,
        change: &EventChange,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<usize, ChooseError>;

    /// Writes changes. They must not be acknowledged before [`wait_durable`](Self::wait_durable).
    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending)>;

    fn change(&self, wanted: Write, now: i64) -> Result<Applied> {
        let (applied, pending) = self.write(wanted, now)?;
        self.wait_durable(pending)?;
        Ok(applied)
    }

    /// Waits until a write is durable. If it cannot be made durable, it is undone with all later
    /// writes.
    fn wait_durable(&self, pending: Pending) -> Result<()>;

    /// Matches items of different names against those of the collection and adds them, in order:
    /// all of them or none; none if cancelled. They must not be acknowledged before
    /// [`wait_durable`](Self::wait_durable).
    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), ChooseError>;

    /// Why the item of this name has its event, judged by the earlier items that remain; `None` if
    /// there is no such item.
    fn explain(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        id: &str,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Option<Matched>, ChooseError>;

    /// Removes expired items, which is a write like any other; `None` if the collection accepts no
    /// writes any more.
    fn expire(&self, now: i64) -> Result<Option<Pending>>;

    /// Compacts the log, while others write.
    fn compact_log(&self) -> Result<()>;

    /// Expires items and compacts the log. Call it every few seconds.
    fn tidy(&self, now: i64) -> Result<()> {
        let Some(pending) = self.expire(now)? else { return Ok(()) };
        self.wait_durable(pending)?;
        self.compact_log()
    }
}

#[derive(Debug, Clone, Default)]
pub struct ItemSelector<'w> {
    pub filter: Filter,
    pub event: Option<Cow<'w, str>>,
    /// Only items at most this many milliseconds old, by the collection's clock.
    pub within: Option<i64>,
    pub without: HashSet<Cow<'w, str>>,
}

/// The method whose vectors find the items of a shortlist.
pub const SHORTLIST_METHOD: Method = Method::AvgCos;

#[derive(Debug, Clone, Copy)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

pub enum Choice<'c> {
    All,
    /// For a collection above a certain size, the best items of this ranking, without those that
    /// have no vector.
    Shortlist(TopQuery<'c>),
    /// A shortlist for fused methods, which also has the best items by each method whose best an
    /// index can find.
    Fused(TopQuery<'c>, Vec<Query>),
    /// The items that may be among the best of a ranking; all if that cannot be computed.
    TopQuery(TopQuery<'c>),
    /// The items that may be among the best by a method that [counts tokens](Engine::counted).
    TopByTokens(TopQuery<'c>, Query),
}

#[derive(Debug)]
pub struct Chosen {
    pub items: Vec<(u64, Arc<Item>)>,
    /// Number of selected items, where `items` are only the ones that may be among the best or have
    /// no vector; else the length of `items`.
    pub meant: usize,
}

impl Chosen {
    pub(super) fn complete(items: Vec<(u64, Arc<Item>)>) -> Self {
        Self { meant: items.len(), items }
    }
}

/// The caller of a long computation.
pub trait Asker {
    /// Whether the caller no longer wants the answer.
    fn is_gone(&self) -> bool;
}

impl<F: Fn() -> bool> Asker for F {
    fn is_gone(&self) -> bool {
        self()
    }
}

/// Whether a request was cancelled. Long computations check it repeatedly.
#[derive(Clone, Copy)]
pub struct Cancellation<'c>(&'c dyn Asker);

impl<'c> Cancellation<'c> {
    /// Never cancelled.
    pub const NEVER: Cancellation<'static> = Cancellation(&|| false);

    pub fn when(asker: &'c dyn Asker) -> Self {
        Self(asker)
    }

    pub fn check(self) -> Result<(), ChooseError> {
        if self.0.is_gone() { Err(ChooseError::Stopped) } else { Ok(()) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    #[error(transparent)]
    Collection(#[from] CollectionError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The request was cancelled; nothing was changed.
    #[error("what was asked is not wanted any more")]
    Stopped,
}

#[derive(Debug)]
pub struct Added {
    pub items: Vec<(u64, Arc<Item>)>,
    /// Time of the last merge; before any merge if the collection has no item of a merge.
    pub last_move: i64,
}

#[derive(Debug, Clone)]
pub enum Write {
    /// Items, each replacing an item of the same name: all of them or none.
    Put(Vec<Item>),
    /// Changes of the attributes, data and time of existing items, in order.
    Patch(Vec<(Box<str>, ItemPatch)>),
    /// Removes the existing items of these names.
    Remove(Vec<Box<str>>),
    RemoveSelected(ItemSelector<'static>),
    /// Moves items between events, if they take at most this many bytes of memory more.
    Move(EventChange, usize),
    Set(SettingsChange),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    pub added: usize,
    /// Items that replaced others of the same name.
    pub replaced: usize,
    pub patched: usize,
    pub removed: usize,
    /// Number of items that were removed because newer items took their room, or because the collection's
    /// clock passed their time.
    pub left: usize,
    /// Number of added items that were already too old for the collection, and are not shown.
    pub expired: usize,
}

impl Applied {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            added: self.added + other.added,
            replaced: self.replaced + other.replaced,
            patched: self.patched + other.patched,
            removed: self.removed + other.removed,
            left: self.left + other.left,
            expired: self.expired + other.expired,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectionInfo {
    pub name: String,
    pub settings: Settings,
    pub items: usize,
    /// Approximate bytes of memory of the items; in a database, bytes of its tables.
    pub bytes: usize,
    /// Whether the collection survives the end of the process.
    pub durable: bool,
    pub log_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Items removed to make room for newer items.
    pub evicted: u64,
    /// Items removed because they were too old.
    pub outlived: u64,
    /// When a write was last made durable, in milliseconds since 1970.
    pub synced: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    pub all: u64,
    /// Calls that got no answer in time.
    pub failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub collections: usize,
    pub items: usize,
    /// Bytes of memory that the items take in this process.
    pub bytes: usize,
    /// How far a replica is behind; `None` if this home is no replica.
    pub behind: Option<Lag>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lag {
    /// Bytes of logs that were not read, or are not known to be durable.
    pub bytes: u64,
    pub unreadable: usize,
    /// When the replica last applied a change, in milliseconds since 1970.
    pub changed: Option<i64>,
    /// When the writer last touched its lock, in milliseconds since 1970.
    pub writer: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_add_up_field_by_field() {
        let of = |n: usize| Applied {
            added: n,
            replaced: 2 * n,
            patched: 3 * n,
            removed: 4 * n,
            left: 5 * n,
            expired: 6 * n,
        };
        assert_eq!(of(2).and(of(5)), of(7));
    }
}
