//! What every home of collections can do: this process with a folder, or a database. A contract test
//! holds each home to the same answers.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use cognate::engine::{Engine, Query, QueryError};
use cognate::methods::Method;

use crate::embedded::Lasting;
use crate::{
    AskedAttribute, CollectionError, Cut, EventChange, Facets, Filter, Item, ItemPatch, Limits,
    MatchError, MatchOptions, Matched, Merged, Settings, SettingsChange, SharedEngine, TopQuery,
    Vectors,
};

/// A write that may not outlive a crash yet. Nobody may be told of it before
/// [`Collection::wait_durable`]. What it holds is known to the home alone that made it.
#[derive(Debug, Default)]
#[must_use]
pub struct Pending(pub(crate) Option<(Arc<Lasting>, u64)>);

pub trait Home: Debug + Send + Sync {
    fn limits(&self) -> &Limits;

    /// Whether every question waits for another machine, so that no thread that computes may ask one.
    fn is_remote(&self) -> bool {
        false
    }

    /// The collection of this name. A remote home answers without a look, and each question to what it
    /// answered says whether there is such a collection.
    fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError>;

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError>;

    /// Makes a collection, or changes the settings of the one of this name; whether it is new.
    fn set(
        &self,
        _name: &str,
        _change: SettingsChange,
        _now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError> {
        Err(CollectionError::ReadOnly)
    }

    fn delete(&self, _name: &str) -> Result<(), CollectionError> {
        Err(CollectionError::ReadOnly)
    }

    /// Totals as last known, without waiting.
    fn totals(&self, now: i64) -> Totals;

    /// Checks that the stored data is where it was; reports a problem once. To be called every few
    /// seconds.
    fn look_after(&self) -> Result<(), CollectionError> {
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

    /// The collections that are not served because their logs cannot be read, with the reason.
    fn damaged(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Opens collections that were put there since, and damaged ones that were mended: their names, and
    /// what a crash had left at the ends of their logs.
    fn take_up(&self) -> Result<(Vec<String>, Vec<Cut>), CollectionError> {
        Ok(Default::default())
    }

    fn is_awaited(&self) -> bool {
        false
    }

    /// Makes all that was written durable and leaves the collections to another process. They are shown on,
    /// and take no more changes.
    fn hand_over(&self) {}

    /// What was asked of another machine, if the collections are there.
    fn calls(&self) -> Option<Calls> {
        None
    }
}

/// An item and its number in the order in which they were added.
pub type Numbered = (u64, Arc<Item>);

pub trait Collection: Debug + Send + Sync {
    fn name(&self) -> &str;

    fn limits(&self) -> &Limits;

    fn told(&self, now: i64) -> Result<CollectionInfo, CollectionError>;

    /// What happened to it in this process, without waiting.
    fn activity(&self) -> Activity {
        Activity::default()
    }

    /// The items of these names with their numbers, where they are there.
    fn numbered(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Numbered>>, CollectionError>;

    /// The items of these names, where they are there.
    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError> {
        let found = self.numbered(ids, now)?.into_iter();
        Ok(found.map(|found| found.map(|(_, item)| item)).collect())
    }

    /// Some of the items that are meant, in the order in which they were added, and how many are meant.
    fn page(
        &self,
        which: &ItemSelector<'_>,
        page: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError>;

    /// The items that are meant with their numbers, in the order in which they were added: all of them,
    /// or those of a choice.
    fn choose(
        &self,
        which: &ItemSelector<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError>;

    /// Those of these attributes that no item has; none of a collection without items.
    fn lacking<'n>(
        &self,
        names: &BTreeSet<AskedAttribute<'n>>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<AskedAttribute<'n>>, ChooseError>;

    /// The items that are meant by the values of attributes of these names, at most `most` of each.
    fn facets(
        &self,
        which: &ItemSelector<'_>,
        asked: (&[&str], usize),
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Facets, ChooseError>;

    /// The vectors of these items, numbered and in order, by a method, if any are kept here: those
    /// that are, and those that are missing, which are made and kept. What was made when it is
    /// cancelled stays.
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

    /// At most `most` items of this number and higher ones in order; the last item alone where no number is
    /// given.
    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added, CollectionError>;

    /// The merges after this time of which the collection has items, in order.
    fn merges(
        &self,
        after: i64,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<Merged>, ChooseError>;

    /// Writes changes. They must not be acknowledged before [`wait_durable`](Self::wait_durable).
    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError>;

    /// Makes changes, and waits until they are durable.
    fn change(&self, wanted: Write, now: i64) -> Result<Applied, CollectionError> {
        let (applied, pending) = self.write(wanted, now)?;
        self.wait_durable(pending)?;
        Ok(applied)
    }

    /// Waits until a write is durable. If it cannot be made durable, it is undone with all later writes.
    fn wait_durable(&self, pending: Pending) -> Result<(), CollectionError>;

    /// Matches items of different names against those that are there and adds them, in order: all of
    /// them or none, and none once it is cancelled. Nobody may be told of it before it was
    /// [durable](Self::wait_durable).
    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), MatchError>;

    /// Why the item of this name has its event, by those before it that are there; nothing where it is not.
    fn explain(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        id: &str,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Option<Matched>, MatchError>;

    /// Removes expired items, which is a write like any other; nothing where none is taken any more.
    fn expire(&self, now: i64) -> Result<Option<Pending>, CollectionError>;

    /// Compacts what was written, while others write.
    fn compact_log(&self) -> Result<(), CollectionError>;

    /// Both. To be called every few seconds.
    fn tidy(&self, now: i64) -> Result<(), CollectionError> {
        let Some(pending) = self.expire(now)? else { return Ok(()) };
        self.wait_durable(pending)?;
        self.compact_log()
    }
}

#[derive(Debug, Clone, Default)]
pub struct ItemSelector<'w> {
    pub filter: Filter,
    pub event: Option<Cow<'w, str>>,
    /// None that is older than so many milliseconds, by the collection's clock.
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
    /// The first of two stages where size asks for it: the best of this ranking, those that have no vector
    /// left out.
    Shortlist(TopQuery<'c>),
    /// The same for rankings by these methods that are fused: with the best by each whose best an index can
    /// tell, be they near or not.
    Fused(TopQuery<'c>, Vec<Query>),
    /// The items that may be among the best of a ranking; all if that cannot be told.
    TopQuery(TopQuery<'c>),
    /// The same by a method that [counts tokens](Engine::counted).
    TopByTokens(TopQuery<'c>, Query),
}

#[derive(Debug)]
pub struct Chosen {
    /// The chosen items with their numbers, in order.
    pub items: Vec<(u64, Arc<Item>)>,
    /// How many items are meant, where these are the ones of them that may be among the best and those
    /// that have no vector; else how many these are.
    pub meant: usize,
}

impl Chosen {
    pub(super) fn all(items: Vec<(u64, Arc<Item>)>) -> Self {
        Self { meant: items.len(), items }
    }
}

/// What a long answer is computed for.
pub trait Asker {
    /// Whether the answer is wanted no more.
    fn is_gone(&self) -> bool;
}

impl<F: Fn() -> bool> Asker for F {
    fn is_gone(&self) -> bool {
        self()
    }
}

/// Tells whether a request was cancelled. Long work checks it again and again.
#[derive(Clone, Copy)]
pub struct Cancellation<'c>(&'c dyn Asker);

impl<'c> Cancellation<'c> {
    /// The answer is waited for.
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
    #[error("what was asked is not wanted any more")]
    Stopped,
}

#[derive(Debug)]
pub struct Added {
    pub items: Vec<(u64, Arc<Item>)>,
    /// When events were merged last; below that of any merge if it has no item of one.
    pub last_move: i64,
}

#[derive(Debug, Clone)]
pub enum Write {
    /// Items, each in the place of another of its name: all of them or none.
    Put(Vec<Item>),
    /// Attributes, data and time of the items of these names that are there change, one after the other.
    Patch(Vec<(Box<str>, ItemPatch)>),
    /// The items of these names that are there are taken out.
    Remove(Vec<Box<str>>),
    RemoveSelected(ItemSelector<'static>),
    Move(EventChange),
    Set(SettingsChange),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    pub added: usize,
    /// Items that took the place of others of their names.
    pub replaced: usize,
    pub patched: usize,
    pub removed: usize,
    /// Items that left: there are newer ones, or the collection's clock went on past the time that they stay.
    pub left: usize,
    /// Items that were too old for the collection when they were added, and are not shown.
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
    /// Bytes of memory that they take, roughly; in a database bytes of its tables.
    pub bytes: usize,
    /// Whether the collection outlives the process.
    pub durable: bool,
    pub log_bytes: Option<u64>,
}

/// What happened to a collection since the process opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Items that left because there are newer ones.
    pub evicted: u64,
    /// Items that left because they were too old.
    pub outlived: u64,
    /// When a write was last made durable, in milliseconds since 1970.
    pub synced: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    pub all: u64,
    /// Those without an answer in time.
    pub failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub collections: usize,
    pub items: usize,
    /// Bytes of memory that they take in this process.
    pub bytes: usize,
    /// How far a replica is behind; none if this home is no replica.
    pub behind: Option<Behind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behind {
    /// Bytes of logs that were not read, or of which it is not known that they last.
    pub bytes: u64,
    pub unreadable: usize,
    /// When the replica last took a change over, in milliseconds since 1970.
    pub changed: Option<i64>,
    /// When the writer last looked after its folder, in milliseconds since 1970.
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
