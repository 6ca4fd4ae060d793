//! One collection: a writer at a time, and any number of readers, who see what was there when they
//! began.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::RwLockReadGuard;
use std::sync::RwLockWriteGuard;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::collection::Applied;
use crate::collection::Budget;
use crate::collection::CollectionError;
use crate::collection::Item;
use crate::collection::Limits;
use crate::collection::Settings;
use crate::collection::Table;
use crate::collection::Vectors;
use crate::collection::held::Held;
use crate::collection::log::Change;
use crate::collection::log::Lasting;
use crate::collection::log::Log;
use crate::collection::matcher::Matcher;

/// Bytes of a log below which it is never written anew.
const LEAST_LOG: u64 = 4 << 20;

/// One collection.
#[derive(Debug)]
pub struct Collection {
    name: Box<str>,
    limits: Limits,
    budget: Arc<Budget>,
    writer: Mutex<Writer>,
    held: RwLock<Held>,
    /// What texts are matched against, once that was asked.
    matcher: Mutex<Option<Matcher>>,
    /// The vectors of its items, once these were ranked by a method that has such.
    vectors: Mutex<Option<Arc<Vectors>>>,
    /// Bytes of the log; nothing where there is none. Beside the writer, so that nobody who looks waits
    /// for one.
    log_bytes: Option<AtomicU64>,
}

/// What only one at a time may use.
struct Writer {
    /// Nothing where the collection lives in memory alone.
    log: Option<Log>,
    /// Whether it was deleted.
    gone: bool,
    /// Counts what changed in any other way than by adding what was matched.
    revision: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({})", self.revision)
    }
}

/// What is told of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its name.
    pub name: String,
    /// What it keeps.
    pub settings: Settings,
    /// How many items it has.
    pub items: usize,
    /// Bytes of memory that they take, roughly.
    pub bytes: usize,
    /// Bytes of its log; nothing where it lives in memory alone.
    pub log_bytes: Option<u64>,
}

/// Items as they were at one moment.
#[derive(Debug, Clone)]
pub struct View {
    table: Arc<Table>,
    oldest: Option<i64>,
}

impl View {
    /// Each, in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Item>> + Clone {
        let stays = |item: &&Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.iter().map(|(_, item)| item).filter(stays)
    }

    /// Each with its number, in the order in which they were added.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        let stays = |item: &Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.iter().filter(move |(_, item)| stays(item))
    }
}

impl Collection {
    pub(super) fn new(
        name: &str,
        limits: Limits,
        budget: Arc<Budget>,
        held: Held,
        log: Option<Log>,
    ) -> Self {
        budget.take_anyhow(held.bytes);
        let log_bytes = log.as_ref().map(|log| AtomicU64::new(log.length()));
        Self {
            log_bytes,
            name: name.into(),
            limits,
            budget,
            writer: Mutex::new(Writer { log, gone: false, revision: 0 }),
            held: RwLock::new(held),
            matcher: Mutex::default(),
            vectors: Mutex::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it keeps.
    pub fn settings(&self) -> Settings {
        self.held().settings
    }

    /// What the collections may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The memory that the collections share.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What is told of it at this time.
    pub fn told(&self, now: i64) -> Told {
        let held = self.held();
        Told {
            name: self.name.to_string(),
            settings: held.settings,
            items: held.count(oldest(held.settings, now)),
            bytes: held.bytes,
            log_bytes: self.log_bytes.as_ref().map(|bytes| bytes.load(Ordering::Relaxed)),
        }
    }

    /// The items of this moment.
    pub fn view(&self, now: i64) -> View {
        let held = self.held();
        View { table: Arc::clone(&held.table), oldest: oldest(held.settings, now) }
    }

    /// The item of this name.
    pub fn get(&self, id: &str, now: i64) -> Option<Arc<Item>> {
        let held = self.held();
        let oldest = oldest(held.settings, now);
        let item = held.item(id).filter(|item| oldest.is_none_or(|oldest| item.time >= oldest));
        item.cloned()
    }

    /// Adds items, each in the place of another of its name: all of them or none. When this returns
    /// they outlive a crash, unless the collection lives in memory alone.
    pub fn put(&self, items: Vec<Item>, now: i64) -> Result<Applied, CollectionError> {
        for (index, item) in items.iter().enumerate() {
            let checked = item.check(self.limits.text_bytes);
            checked.map_err(|problem| CollectionError::Item { index, problem })?;
        }
        let changes = items.into_iter().map(|item| Change::Put(Box::new(item))).collect();
        self.change(changes, now)
    }

    /// Takes out the items of these names that are there.
    pub fn remove(&self, ids: &[&str], now: i64) -> Result<Applied, CollectionError> {
        let there = |id: &&&str| self.held().number(id).is_some();
        let changes = ids.iter().filter(there).map(|id| Change::Remove((*id).into())).collect();
        self.change(changes, now)
    }

    /// Keeps by other settings from now on.
    pub fn set(&self, settings: Settings, now: i64) -> Result<Applied, CollectionError> {
        self.change(vec![Change::Set(settings)], now)
    }

    fn change(&self, changes: Vec<Change>, now: i64) -> Result<Applied, CollectionError> {
        let mut turn = self.turn();
        turn.writer.revision += 1;
        let (applied, lasting) = turn.write(changes, now)?;
        drop(turn);
        lasting.wait()?;
        Ok(applied)
    }

    /// Waits for the turn to write.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn { collection: self, writer: self.writer() }
    }

    /// Takes out what is too old, and writes the log anew where most of it is of the past. To be called
    /// every few seconds.
    pub fn tidy(&self, now: i64) -> Result<(), CollectionError> {
        let mut turn = self.turn();
        if turn.writer.gone {
            return Ok(());
        }
        // Nobody was told of it, so nobody waits until it lasts.
        turn.write(Vec::new(), now).map(drop)?;
        let Some(length) = turn.writer.log.as_ref().map(Log::length) else { return Ok(()) };
        let live = 2 * self.held().bytes as u64;
        if length > LEAST_LOG.max(live) { self.rewrite(&mut turn.writer) } else { Ok(()) }
    }

    /// Writes the log anew with what is there.
    pub fn compact(&self, now: i64) -> Result<(), CollectionError> {
        let mut turn = self.turn();
        turn.write(Vec::new(), now).map(drop)?;
        self.rewrite(&mut turn.writer)
    }

    fn rewrite(&self, writer: &mut Writer) -> Result<(), CollectionError> {
        let Some(log) = &writer.log else { return Ok(()) };
        let (table, settings) = {
            let held = self.held();
            (Arc::clone(&held.table), held.settings)
        };
        let items = table.iter().map(|(_, item)| item.as_ref());
        let fresh = Log::create(log.path(), settings, items).inspect_err(|error| {
            if matches!(error, CollectionError::Unsynced { .. }) {
                log.end();
            }
        })?;
        self.note_length(&fresh);
        writer.log = Some(fresh);
        Ok(())
    }

    pub(super) fn kept_vectors(&self) -> MutexGuard<'_, Option<Arc<Vectors>>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the oldest item.
    pub(super) fn first_number(&self) -> Option<u64> {
        self.held().table.first()
    }

    pub(super) fn matcher(&self) -> MutexGuard<'_, Option<Matcher>> {
        self.matcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_length(&self, log: &Log) {
        if let Some(bytes) = &self.log_bytes {
            bytes.store(log.length(), Ordering::Relaxed);
        }
    }

    /// Nothing is written to it any more.
    pub(super) fn end(&self) {
        self.writer().gone = true;
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_mut(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        self.budget.give_back(self.held().bytes);
    }
}

/// The time before which items leave.
fn oldest(settings: Settings, now: i64) -> Option<i64> {
    settings.ttl_ms.map(|ttl| now.saturating_sub(ttl))
}

/// The turn to write to a collection; it ends when this is dropped.
pub(super) struct Turn<'c> {
    collection: &'c Collection,
    writer: MutexGuard<'c, Writer>,
}

/// What is waited for before anybody is told of a change.
#[must_use]
pub(super) struct Wait(Option<(Arc<Lasting>, u64)>);

impl Wait {
    /// Waits until what was written outlives a crash.
    pub(super) fn wait(self) -> Result<(), CollectionError> {
        self.0.map_or(Ok(()), |(lasting, bytes)| lasting.wait(bytes))
    }
}

impl Turn<'_> {
    /// Counts what changed in any other way than by adding what was matched.
    pub(super) fn revision(&self) -> u64 {
        self.writer.revision
    }

    /// Makes changes: in the log first, then in memory; all of them or none. What is too old by now is
    /// taken out before.
    pub(super) fn write(
        &mut self,
        mut changes: Vec<Change>,
        now: i64,
    ) -> Result<(Applied, Wait), CollectionError> {
        let collection = self.collection;
        if self.writer.gone {
            return Err(CollectionError::Unknown);
        }
        let oldest = oldest(collection.settings(), now);
        let more = collection.room(&changes, oldest)?;
        if let Some(oldest) = oldest.filter(|oldest| collection.held().has_older(*oldest)) {
            changes.insert(0, Change::Expire(oldest));
        }
        if changes.is_empty() {
            // What is as it should be may have been written by another who still waits.
            let written = self.writer.log.as_ref().map(Log::written);
            return Ok((Applied::default(), Wait(written)));
        }
        if collection.budget.take(more).is_err() {
            // Items come before vectors that can be made again.
            *collection.kept_vectors() = None;
            collection.budget.take(more)?;
        }
        let written = self.writer.log.as_mut().map(|log| log.append(&changes)).transpose();
        let lasting = match written {
            Ok(lasting) => lasting,
            Err(error) => {
                collection.budget.give_back(more);
                return Err(error);
            }
        };
        self.writer.log.iter().for_each(|log| collection.note_length(log));
        let mut held = collection.held_mut();
        let (before, mut applied) = (held.bytes, Applied::default());
        for change in changes {
            held.apply(change, &mut applied);
        }
        // Of what was taken all that replaced or removed items had is free again.
        collection.budget.give_back((before + more).saturating_sub(held.bytes));
        Ok((applied, Wait(lasting)))
    }
}

impl Collection {
    /// Bytes that changes add at most, or the refusal of more items than there may be.
    fn room(&self, changes: &[Change], oldest: Option<i64>) -> Result<usize, CollectionError> {
        let held = self.held();
        let (mut bytes, mut fresh) = (0, HashSet::new());
        for change in changes {
            if let Change::Put(item) = change {
                bytes += item.bytes();
                if held.number(&item.id).is_none() {
                    fresh.insert(&*item.id);
                }
            }
        }
        let (wanted, limit) = (held.count(oldest) + fresh.len(), self.limits.items);
        match held.settings.max_items.is_none() && !fresh.is_empty() && wanted > limit {
            true => Err(CollectionError::TooManyItems { wanted, limit }),
            false => Ok(bytes),
        }
    }
}
