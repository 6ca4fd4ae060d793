//! One collection: a writer at a time, and any number of readers, who see what was there when they
//! began.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cognate::engine::Engine;
use cognate::methods::Method;

use crate::embedded::held::Items;
use crate::embedded::kept::DurableItems;
use crate::embedded::log::Change;
use crate::embedded::shelves::QuantisedVectors;
use crate::embedded::turn::{Pending, WriteTransaction, Writer};
use crate::embedded::{EmbeddedHome, Table, Vectors};
use crate::following::{Following, Windows};
use crate::{
    Applied, Budget, Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError,
    CollectionInfo, Home, Item, ItemSelector, Limits, MatchError, MatchOptions, Matched, Page,
    Settings, SharedEngine, Totals, Write, matcher,
};

/// Bytes of a log below which it is never written anew.
const LEAST_LOG: u64 = 4 << 20;

#[derive(Debug)]
pub struct EmbeddedCollection {
    name: Box<str>,
    limits: Limits,
    budget: Arc<Budget>,
    writer: Mutex<Writer>,
    held: RwLock<Items>,
    /// What texts are matched against, the one that was asked for last at the end.
    windows: Windows,
    /// The vectors of its items, once these were ranked by a method that has such.
    vectors: Mutex<Option<Arc<Vectors>>>,
    /// The same as signed bytes, once a shortlist of its items was asked for.
    shelves: Mutex<Option<Arc<QuantisedVectors>>>,
    /// Bytes of the log; nothing where there is none. Beside the writer, so that nobody who looks waits
    /// for one.
    log_bytes: Option<AtomicU64>,
    /// Whether the log takes nothing more.
    is_ended: AtomicBool,
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

    /// Those of this number and higher ones, the newest first.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = &Arc<Item>> {
        self.table.iter().rev().take_while(move |(at, _)| *at >= number).map(|(_, item)| item)
    }

    /// The item of a number.
    pub(super) fn item(&self, number: u64) -> Option<&Arc<Item>> {
        self.table.get(number)
    }

    /// Each with its number, in the order in which they were added.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        let stays = |item: &Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.iter().filter(move |(_, item)| stays(item))
    }
}

impl EmbeddedCollection {
    pub(super) fn new(
        name: &str,
        limits: Limits,
        budget: Arc<Budget>,
        held: Items,
        mut kept: Option<DurableItems>,
    ) -> Self {
        budget.charge_unchecked(held.bytes);
        kept.iter_mut().for_each(|kept| kept.note(&held));
        let log_bytes = kept.as_ref().map(|kept| AtomicU64::new(kept.length()));
        Self {
            log_bytes,
            is_ended: AtomicBool::new(false),
            name: name.into(),
            limits,
            budget,
            writer: Mutex::new(Writer::of(kept)),
            held: RwLock::new(held),
            windows: Windows::default(),
            vectors: Mutex::default(),
            shelves: Mutex::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

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
    pub fn told(&self, now: i64) -> CollectionInfo {
        let held = self.held();
        CollectionInfo {
            name: self.name.to_string(),
            settings: held.settings,
            items: held.count(held.settings.oldest(now)),
            bytes: held.bytes,
            durable: self.log_bytes.is_some(),
            log_bytes: self.log_bytes.as_ref().map(|bytes| bytes.load(Ordering::Relaxed)),
        }
    }

    /// The items of this moment.
    pub fn view(&self, now: i64) -> View {
        let held = self.held();
        View { table: Arc::clone(&held.table), oldest: held.settings.oldest(now) }
    }

    /// The items of this moment, and the numbers that those of these names have in it.
    pub(super) fn view_with<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        now: i64,
    ) -> (View, HashSet<u64>) {
        let held = self.held();
        let numbers = names.filter_map(|name| held.number(name)).collect();
        (View { table: Arc::clone(&held.table), oldest: held.settings.oldest(now) }, numbers)
    }

    /// The item of this name.
    pub fn get(&self, id: &str, now: i64) -> Option<Arc<Item>> {
        let held = self.held();
        let oldest = held.settings.oldest(now);
        let item = held.item(id).filter(|item| oldest.is_none_or(|oldest| item.time >= oldest));
        item.cloned()
    }

    /// Adds items, each in the place of another of its name: all of them or none. When this returns
    /// they outlive a crash, unless the collection lives in memory alone.
    pub fn put(&self, items: Vec<Item>, now: i64) -> Result<Applied, CollectionError> {
        self.change(Write::Put(items), now)
    }

    /// Takes out the items of these names that are there.
    pub fn remove(&self, ids: &[&str], now: i64) -> Result<Applied, CollectionError> {
        self.change(Write::Remove(ids.iter().map(|id| (*id).into()).collect()), now)
    }

    /// Keeps by other settings from now on.
    pub fn set(&self, settings: Settings, now: i64) -> Result<Applied, CollectionError> {
        self.change(Write::Set(settings), now)
    }

    fn change(&self, wanted: Write, now: i64) -> Result<Applied, CollectionError> {
        let (applied, pending) = self.write(wanted, now)?;
        self.settle(pending)?;
        Ok(applied)
    }

    /// Writes what is wanted, of which nobody may be told before it was [settled](Self::settle).
    pub fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError> {
        let changes = match wanted {
            Write::Put(items) => {
                self.limits.check(&items)?;
                items.into_iter().map(Change::put).collect()
            }
            Write::Remove(mut ids) => {
                ids.retain(|id| self.held().number(id).is_some());
                ids.into_iter().map(Change::Remove).collect()
            }
            // What is as it should be is waited for until it lasts, like any other change.
            Write::Set(settings) if settings == self.settings() => Vec::new(),
            Write::Set(settings) => vec![Change::Set(settings)],
        };
        self.turn().write(changes, now)
    }

    /// Waits until what was written outlives a crash. What cannot be made to last is taken back, with all
    /// that was written after it.
    pub fn settle(&self, pending: Pending) -> Result<(), CollectionError> {
        let Some((lasting, bytes)) = pending.0 else { return Ok(()) };
        if let Err(error) = lasting.wait(bytes) {
            let mut turn = self.turn();
            // Who deletes a collection moves its log away. What was written before was written.
            let is_deleted = turn.is_gone() && matches!(error, CollectionError::Away { .. });
            return if !is_deleted && turn.take_back(&lasting) { Err(error) } else { Ok(()) };
        }
        // A replica shows what the log says was synced. Where others write, the last of them says it.
        if let Ok(writer) = self.writer.try_lock() {
            let _ = WriteTransaction { collection: self, writer }.seal();
        }
        Ok(())
    }

    /// Takes out what is too old, and writes the log anew where most of it is of the past. Looks whether
    /// the log is where it was, and notes beside it how long it is. To be called every few seconds.
    pub fn tidy(&self, now: i64) -> Result<(), CollectionError> {
        let (_, pending) = {
            let mut turn = self.turn();
            if !turn.takes_more() {
                return Ok(());
            }
            turn.write(Vec::new(), now)?
        };
        self.settle(pending)?;
        let mut turn = self.turn();
        let Some(length) = turn.log_bytes() else { return Ok(()) };
        turn.look()?;
        let live = 2 * self.held().bytes as u64;
        if length > LEAST_LOG.max(live) { turn.rewrite() } else { turn.seal() }?;
        turn.record()
    }

    /// Writes the log anew with what is there.
    pub fn compact(&self, now: i64) -> Result<(), CollectionError> {
        let mut turn = self.turn();
        let (_, pending) = turn.write(Vec::new(), now)?;
        turn.rewrite()?;
        drop(turn);
        self.settle(pending)
    }

    /// Waits for the turn to write.
    pub(super) fn turn(&self) -> WriteTransaction<'_> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        WriteTransaction { collection: self, writer }
    }

    pub(super) fn kept_vectors(&self) -> MutexGuard<'_, Option<Arc<Vectors>>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shelves(&self) -> MutexGuard<'_, Option<Arc<QuantisedVectors>>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the oldest item.
    pub(super) fn first_number(&self) -> Option<u64> {
        self.held().table.first()
    }

    pub(super) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Takes memory, for which what can be made again gives way: vectors first, then windows.
    pub(super) fn take_memory(&self, bytes: usize) -> Result<(), CollectionError> {
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        *self.kept_vectors() = None;
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        *self.shelves() = None;
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        self.windows.clear();
        self.budget.take(bytes)
    }

    /// Whether the log takes nothing more.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, length: u64, is_ended: bool) {
        if let Some(bytes) = &self.log_bytes {
            bytes.store(length, Ordering::Relaxed);
        }
        self.is_ended.store(is_ended, Ordering::Relaxed);
    }

    pub(super) fn held(&self) -> RwLockReadGuard<'_, Items> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn held_mut(&self) -> RwLockWriteGuard<'_, Items> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EmbeddedCollection {
    fn drop(&mut self) {
        // With an orderly end. A process that is killed has it from its last chores.
        let _ = self.turn().record();
        self.budget.give_back(self.held().bytes);
    }
}

impl Home for EmbeddedHome {
    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError> {
        Ok(self.named(name)?)
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError> {
        Ok(self.each().into_iter().map(|one| one as Arc<dyn Collection>).collect())
    }

    fn set(
        &self,
        name: &str,
        settings: Settings,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError> {
        let (collection, is_new) = self.make(name, settings, now)?;
        Ok((collection, is_new))
    }

    fn delete(&self, name: &str) -> Result<(), CollectionError> {
        self.remove(name)
    }

    fn totals(&self, now: i64) -> Totals {
        let all = self.each();
        let items = all.iter().map(|one| one.told(now).items).sum();
        Totals { collections: all.len(), items, bytes: self.bytes(), behind: None }
    }

    fn look_after(&self) -> Result<(), CollectionError> {
        self.look_after()
    }

    fn unwritable(&self) -> usize {
        self.unwritable()
    }
}

impl Collection for EmbeddedCollection {
    fn name(&self) -> &str {
        self.name()
    }

    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn told(&self, now: i64) -> Result<CollectionInfo, CollectionError> {
        Ok(self.told(now))
    }

    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError> {
        Ok(ids.iter().map(|id| self.get(id, now)).collect())
    }

    fn page(
        &self,
        which: &ItemSelector<'_>,
        Page { offset, limit }: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        let view = self.view(now);
        let (mut items, mut total) = (Vec::new(), 0);
        which.each(view.numbered(), cancel, |_, item| {
            if total >= offset && items.len() < limit {
                items.push(Arc::clone(item));
            }
            total += 1;
        })?;
        Ok((items, total))
    }

    fn choose(
        &self,
        which: &ItemSelector<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        match choice {
            Choice::Shortlist(shortlist) => self.nearest(which, shortlist, now, cancel),
            Choice::TopQuery(best) => self.narrowed(which, best, now, cancel),
            Choice::All => {
                let (view, mut items) = (self.view(now), Vec::new());
                which.each(view.numbered(), cancel, |number, item| {
                    items.push((number, Arc::clone(item)));
                })?;
                Ok(Chosen::all(items))
            }
        }
    }

    fn vectors(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        self.vectors_of(engine, method, items, cancel)
    }

    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError> {
        self.write(wanted, now)
    }

    fn settle(&self, pending: Pending) -> Result<(), CollectionError> {
        self.settle(pending)
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        matcher::check(&items, self.limits())?;
        let mut turn = self.turn();
        let mut followed = matcher::follow(&mut turn, engine, how, items, now)?;
        let changes = std::mem::take(&mut followed.items).into_iter().map(Change::put);
        let (_, pending) = turn.write(changes.collect(), now)?;
        let state = (turn.revision(), turn.next_number());
        Ok((followed.written(state, turn.windows()), pending))
    }

    fn tidy(&self, now: i64) -> Result<(), CollectionError> {
        self.tidy(now)
    }
}
