//! What every home of collections can do: this process with a folder, or a database. A contract test
//! holds each home to the same answers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use cognate::engine::{Engine, QueryError};
use cognate::methods::Method;

use crate::embedded::{Pending, Vectors};
use crate::{
    CollectionError, Filter, Item, Limits, MatchError, MatchOptions, Matched, Settings,
    SharedEngine,
};

/// All collections of one home.
pub trait Home: Debug + Send + Sync {
    /// What they may take.
    fn limits(&self) -> &Limits;

    /// Whether every question waits for another machine, so that no thread that computes may ask one.
    fn is_remote(&self) -> bool {
        false
    }

    /// The collection of this name. A remote home answers without a look, and each question to what it
    /// answered says whether there is such a collection.
    fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError>;

    /// Every collection, by name.
    fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError>;

    /// Makes a collection, or gives the one of this name other settings; whether it is new.
    fn set(
        &self,
        name: &str,
        settings: Settings,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError>;

    fn delete(&self, name: &str) -> Result<(), CollectionError>;

    /// How much there is, as last known, without waiting.
    fn totals(&self, now: i64) -> Totals;

    /// Looks whether what it keeps is where it was. To be called every few seconds; what is wrong is told
    /// once.
    fn look_after(&self) -> Result<(), CollectionError> {
        Ok(())
    }

    /// How many collections take no changes any more until the process starts again, without waiting.
    fn unwritable(&self) -> usize {
        0
    }
}

pub trait Collection: Debug + Send + Sync {
    fn name(&self) -> &str;

    /// What collections may take.
    fn limits(&self) -> &Limits;

    /// What is told of it.
    fn told(&self, now: i64) -> Result<CollectionInfo, CollectionError>;

    /// The items of these names, where they are there.
    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError>;

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

    /// Writes what is wanted, of which nobody may be told before it was [settled](Self::settle).
    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError>;

    /// Waits until what was written outlives a crash. What cannot be made to last is taken back, with all
    /// that was written after it.
    fn settle(&self, pending: Pending) -> Result<(), CollectionError>;

    /// Matches items of different names against those that are there and adds them, in order: all of
    /// them or none. Nobody may be told of it before it was [settled](Self::settle).
    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
    ) -> Result<(Vec<Matched>, Pending), MatchError>;

    /// Takes out what is too old and puts in order what was written. To be called every few seconds.
    fn tidy(&self, now: i64) -> Result<(), CollectionError>;
}

/// Which items are meant.
#[derive(Debug, Clone, Default)]
pub struct ItemSelector<'w> {
    /// Those that this admits.
    pub filter: Filter,
    /// None whose time is before this.
    pub oldest: Option<i64>,
    /// None of these names.
    pub without: HashSet<Cow<'w, str>>,
}

/// Questions of a filter that are asked between two looks at whether the answer is still wanted.
const QUESTIONS: usize = 4096;

impl ItemSelector<'_> {
    /// Tells each of some items that is meant.
    pub(super) fn each<'i>(
        &self,
        items: impl Iterator<Item = (u64, &'i Arc<Item>)>,
        cancel: Cancellation<'_>,
        mut tell: impl FnMut(u64, &'i Arc<Item>),
    ) -> Result<(), ChooseError> {
        let every = (QUESTIONS / (1 + self.filter.questions())).max(1);
        for (place, (number, item)) in items.enumerate() {
            if place % every == 0 {
                cancel.check()?;
            }
            if self.admits(item) {
                tell(number, item);
            }
        }
        Ok(())
    }

    /// Whether an item is meant.
    pub fn admits(&self, item: &Item) -> bool {
        self.oldest.is_none_or(|oldest| item.time >= oldest)
            && (self.filter.is_empty() || self.filter.admits(&item.attributes))
            && (self.without.is_empty() || !self.without.contains(&*item.id))
    }
}

/// The method whose vectors find the items of a shortlist.
pub const SHORTLIST_METHOD: Method = Method::AvgCos;

/// Some of the items that are meant.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// How many are passed over.
    pub offset: usize,
    pub limit: usize,
}

/// Which of the items that are meant are wanted.
pub enum Choice<'c> {
    All,
    /// Those of a shortlist.
    Shortlist(Shortlist<'c>),
    /// Those that may be among the best of a ranking; all where that is not known.
    TopQuery(TopQuery<'c>),
}

/// The first of two stages where size asks for it: of each text that is asked about so many items, the
/// nearest by the cosine of their vectors.
pub struct Shortlist<'s> {
    /// What makes the vectors.
    pub engine: &'s Engine,
    /// What is asked about.
    pub texts: Vec<&'s str>,
    /// How many items of each.
    pub length: usize,
}

/// Which items of a ranking by the cosine of the vectors of [`SHORTLIST_METHOD`] are wanted.
pub struct TopQuery<'b> {
    /// What makes the vectors.
    pub engine: &'b Engine,
    /// What is asked about, and what each counts.
    pub texts: Vec<(&'b str, f32)>,
    /// Whether the sum of what the texts say is asked for; else the best for each of them are wanted.
    pub summed: bool,
    /// How many, those of equal scores beside.
    pub length: usize,
}

/// Items that were chosen.
#[derive(Debug)]
pub struct Chosen {
    /// They, numbered and in order.
    pub items: Vec<(u64, Arc<Item>)>,
    /// How many items are meant, where these are the ones of them that may be among the best and those
    /// that have no vector; else how many these are.
    pub meant: usize,
}

impl Chosen {
    /// All that are meant.
    pub(super) fn all(items: Vec<(u64, Arc<Item>)>) -> Self {
        Self { meant: items.len(), items }
    }
}

/// Whether an answer is not wanted any more. Whatever takes long asks again and again.
#[derive(Clone, Copy)]
pub struct Cancellation<'c>(&'c dyn Fn() -> bool);

impl<'c> Cancellation<'c> {
    /// The answer is waited for.
    pub const NEVER: Cancellation<'static> = Cancellation(&|| false);

    /// An answer that is not wanted once this is so.
    pub fn when(is_cancelled: &'c dyn Fn() -> bool) -> Self {
        Self(is_cancelled)
    }

    /// Refuses to go on with what is not wanted any more.
    pub fn check(self) -> Result<(), ChooseError> {
        if (self.0)() { Err(ChooseError::Stopped) } else { Ok(()) }
    }
}

/// Why items cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// The collection cannot do what is asked.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// A method cannot do what is asked.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// They are not wanted any more.
    #[error("what was asked is not wanted any more")]
    Stopped,
}

/// What is to be written.
#[derive(Debug)]
pub enum Write {
    /// Items, each in the place of another of its name: all of them or none.
    Put(Vec<Item>),
    /// The items of these names that are there are taken out.
    Remove(Vec<Box<str>>),
    /// What is kept from now on.
    Set(Settings),
}

/// What came of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Items that are new.
    pub added: usize,
    /// Items that took the place of others of their names.
    pub replaced: usize,
    /// Items that were taken out.
    pub removed: usize,
    /// Items that left because there are newer ones.
    pub left: usize,
}

/// What is told of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionInfo {
    pub name: String,
    pub settings: Settings,
    /// How many items it has.
    pub items: usize,
    /// Bytes of memory that they take, roughly; in a database bytes of its tables.
    pub bytes: usize,
    /// Whether it outlives the process.
    pub durable: bool,
    /// Bytes of its log, where there is one.
    pub log_bytes: Option<u64>,
}

/// How much a home has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub collections: usize,
    pub items: usize,
    /// Bytes of memory that they take in this process.
    pub bytes: usize,
    /// How far a replica is behind; nothing where this is none.
    pub behind: Option<Behind>,
}

/// How far a replica is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behind {
    /// Bytes of logs that were not read, or of which it is not known that they last.
    pub bytes: u64,
    /// Logs that cannot be read on.
    pub unreadable: usize,
}
