//! One collection: a writer at a time, and any number of readers, who see what was there when they
//! began.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cognate::engine::{Engine, Query, Reason};
use cognate::methods::Method;
use cognate::window::stream::AddPolicy;

use crate::embedded::Table;
use crate::embedded::blocks::BlockStore;
use crate::embedded::durable::DurableItems;
use crate::embedded::items::Items;
use crate::embedded::log::{Change, Lasting, LogCopy};
use crate::embedded::quantised;
use crate::embedded::tokens::TokenBlock;
use crate::embedded::transaction::{WriteTransaction, Writer};
use crate::events::Move;
use crate::settings::GivesWay;
use crate::windows::{Following, Windows};
use crate::{
    Activity, Added, Applied, Budget, Cancellation, Choice, ChooseError, Chosen, Collection,
    CollectionError, CollectionInfo, Item, ItemSelector, Limits, MatchError, MatchOptions, Matched,
    Merged, Page, Pending, Settings, SharedEngine, Vectors, Write, alerts, matcher,
};

/// Items whose vectors are made, or that are looked at, between two checks for cancellation.
const PIECE: usize = 1024;
/// Bytes of a log below which it is never written anew.
const LEAST_LOG: u64 = 4 << 20;
/// Bytes that may be added to a copy of the log while writers wait.
pub(super) const LAST_PIECE: u64 = 256 << 10;
/// Most rounds of catching up without the writer's lock.
const MOST_ROUNDS: usize = 8;

#[derive(Debug)]
pub struct EmbeddedCollection {
    name: Box<str>,
    limits: Limits,
    budget: Arc<Budget>,
    writer: Mutex<Writer>,
    /// Held by the thread that writes the log anew; taken before the writer's lock.
    rewriting: Mutex<()>,
    held: RwLock<Items>,
    /// Windows that texts are matched against, the last used at the end.
    windows: Windows,
    /// The vectors of its items by the last method that ranked by stored vectors.
    vectors: Mutex<Option<Arc<Vectors>>>,
    /// The same vectors as signed bytes, for shortlists.
    shelves: BlockStore<quantised::Block>,
    /// Their tokens, for methods that count these.
    tokens: BlockStore<TokenBlock>,
    /// Bytes of the log, if there is one. Kept outside the writer's lock, so that readers of this number
    /// do not wait.
    log_bytes: Option<AtomicU64>,
    /// Whether the log takes nothing more.
    is_ended: AtomicBool,
    /// Whether what was last to be written found no room on the disk.
    is_full: AtomicBool,
    evicted: AtomicU64,
    outlived: AtomicU64,
    /// When a write was last made durable; 0 before the first.
    synced: AtomicI64,
}

/// Items as they were at one moment.
#[derive(Debug, Clone)]
pub struct View {
    table: Arc<Table>,
    oldest: Option<i64>,
}

impl View {
    /// The items, in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Item>> + Clone {
        let stays = |item: &&Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.iter().map(|(_, item)| item).filter(stays)
    }

    /// Those of this number and higher ones, the newest first.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        self.table.iter().rev().take_while(move |(at, _)| *at >= number)
    }

    /// The items of this number and higher ones, in order.
    fn numbered_from(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        let stays = |item: &Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.since(number).filter(move |(_, item)| stays(item))
    }

    /// The item of a number.
    pub(super) fn item(&self, number: u64) -> Option<&Arc<Item>> {
        self.table.get(number)
    }

    /// Each with its number, in the order in which they were added.
    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (u64, &Arc<Item>)> {
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
            is_full: AtomicBool::new(kept.as_ref().is_some_and(DurableItems::is_full)),
            evicted: AtomicU64::new(0),
            outlived: AtomicU64::new(0),
            synced: AtomicI64::new(0),
            name: name.into(),
            limits,
            budget,
            writer: Mutex::new(Writer::of(kept)),
            rewriting: Mutex::default(),
            held: RwLock::new(held),
            windows: Windows::default(),
            vectors: Mutex::default(),
            shelves: BlockStore::default(),
            tokens: BlockStore::default(),
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
        self.view_within(None, now)
    }

    /// Those that are not older than `within`.
    fn view_within(&self, within: Option<i64>, now: i64) -> View {
        let held = self.held();
        View { table: Arc::clone(&held.table), oldest: held.settings.oldest_within(within, now) }
    }

    /// The items of this moment that are not too old, and the numbers of those in it that are meant by no
    /// name.
    pub(super) fn view_with(&self, which: &ItemSelector<'_>, now: i64) -> (View, HashSet<u64>) {
        let held = self.held();
        let numbers = which.without.iter().filter_map(|name| held.number(name)).collect();
        let oldest = held.settings.oldest_within(which.within, now);
        (View { table: Arc::clone(&held.table), oldest }, numbers)
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
        self.wait_durable(pending)?;
        Ok(applied)
    }

    /// Writes what is wanted, of which nobody may be told before it was [durable](Self::wait_durable).
    pub fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError> {
        // What is decided by what is there is written before anybody else writes.
        let mut turn = self.turn();
        let changes = self.changes(wanted, now)?;
        turn.write(changes, now)
    }

    /// What is to be changed of what is there.
    fn changes(&self, wanted: Write, now: i64) -> Result<Vec<Change>, CollectionError> {
        Ok(match wanted {
            Write::Put(items) => {
                self.limits.check(&items)?;
                items.into_iter().map(Change::put).collect()
            }
            Write::Patch { id, patch } => {
                let patched = self.get(&id, now).map(|item| patch.apply(&item)).transpose();
                let patched =
                    patched.map_err(|problem| CollectionError::Item { index: 0, problem })?;
                let change = patched.map(|Item { id, time, attributes, data, .. }| Change::Patch {
                    id,
                    time,
                    attributes,
                    data,
                });
                change.into_iter().collect()
            }
            Write::RemoveSelected(which) => {
                let mut changes = Vec::new();
                let view = self.view_within(which.within, now);
                // It is not cancelled, so it does not fail.
                let _ = which.each(view.numbered(), Cancellation::NEVER, |_, item| {
                    changes.push(Change::Remove(item.id.clone()));
                });
                changes
            }
            Write::Remove(mut ids) => {
                ids.retain(|id| self.held().number(id).is_some());
                ids.into_iter().map(Change::Remove).collect()
            }
            Write::Move(wanted) => {
                let at = now.max(self.held().last_move.saturating_add(1));
                let moves = wanted.moves(&wanted.members(self.view(now).iter()), at)?;
                let changes = moves.into_iter();
                let changes = changes.map(|Move { id, event, size, at }| Change::Move {
                    id,
                    event,
                    size,
                    at,
                });
                changes.collect()
            }
            // What is as it should be is waited for until it lasts, like any other change.
            Write::Set(settings) => {
                let own = self.settings();
                let settings = settings.with_clock_of(own);
                if settings == own { Vec::new() } else { vec![Change::Set(settings)] }
            }
        })
    }

    /// Waits until what was written outlives a crash. What cannot be made to last is taken back, with all
    /// that was written after it.
    pub fn wait_durable(&self, pending: Pending) -> Result<(), CollectionError> {
        let Some((lasting, bytes)) = pending.0 else { return Ok(()) };
        let Ok(lasting) = lasting.downcast::<Lasting>() else { return Ok(()) };
        if let Err(error) = lasting.wait(bytes) {
            let mut turn = self.turn();
            // Who deletes a collection moves its log away. What was written before was written.
            let is_deleted = turn.is_gone() && matches!(error, CollectionError::Away { .. });
            return if !is_deleted && turn.take_back(&lasting) { Err(error) } else { Ok(()) };
        }
        self.synced.store(crate::now(), Ordering::Relaxed);
        // A replica shows what the log says was synced. Where others write, the last of them says it.
        if let Ok(writer) = self.writer.try_lock() {
            let _ = WriteTransaction { collection: self, writer }.seal();
        }
        Ok(())
    }

    /// Writes the log anew with what is there.
    pub fn compact(&self, now: i64) -> Result<(), CollectionError> {
        let (_, pending) = self.turn().write(Vec::new(), now)?;
        self.rewrite()?;
        self.wait_durable(pending)
    }

    /// Writes the log anew while others write to it: from a snapshot, then what was written meanwhile,
    /// the last of it in a turn.
    fn rewrite(&self) -> Result<(), CollectionError> {
        let _one = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(copy) = self.log_copy()? else { return Ok(()) };
        self.turn().replace_log(copy)
    }

    /// A copy of the log that lacks little of what was written meanwhile; nothing where there is no log.
    pub(super) fn log_copy(&self) -> Result<Option<LogCopy>, CollectionError> {
        let Some(snapshot) = self.turn().snapshot()? else { return Ok(None) };
        let mut copy = snapshot.copy()?;
        for _ in 0..MOST_ROUNDS {
            let Some((log, length)) = self.turn().log() else { break };
            if copy.missing(length) <= LAST_PIECE {
                break;
            }
            copy.catch_up(&*log, length)?;
        }
        Ok(Some(copy))
    }

    /// Waits for the turn to write.
    pub(super) fn turn(&self) -> WriteTransaction<'_> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        WriteTransaction { collection: self, writer }
    }

    pub(super) fn kept_vectors(&self) -> MutexGuard<'_, Option<Arc<Vectors>>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shelves(&self) -> &BlockStore<quantised::Block> {
        &self.shelves
    }

    pub(super) fn tokens(&self) -> &BlockStore<TokenBlock> {
        &self.tokens
    }

    /// The number of the oldest item.
    pub(super) fn first_number(&self) -> Option<u64> {
        self.held().table.first()
    }

    pub(super) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Takes memory, for which what can be made again gives way: vectors first, then windows, then those of
    /// other collections.
    pub(super) fn take_memory(&self, bytes: usize) -> Result<(), CollectionError> {
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        *self.kept_vectors() = None;
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        self.shelves.clear();
        self.tokens.clear();
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        self.windows.clear();
        if self.budget.take(bytes).is_ok() {
            return Ok(());
        }
        self.budget.make_room();
        self.budget.take(bytes)
    }

    /// The vectors of these items, numbered and in order, by a method: those that are kept, and those
    /// that are missing, which are made and kept. Nothing where there is no memory for them.
    pub(super) fn vectors_of(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        let fingerprint = engine.model().fingerprint();
        let dims = engine.embedding_dims(method)?;
        let mut kept = self.kept_vectors().clone().filter(|kept| kept.are_of(fingerprint, method));
        let known = |number| kept.as_ref().is_some_and(|kept| kept.of(number).is_some());
        let missing: Vec<&(u64, Arc<Item>)> =
            items.iter().filter(|(number, _)| !known(*number)).collect();
        for piece in missing.chunks(PIECE) {
            cancel.check()?;
            let texts: Vec<&str> = piece.iter().map(|(_, item)| &*item.text).collect();
            let made = engine.embed(&texts, &Query::new(method))?;
            let mut reasons = made.reasons.into_iter();
            let made = piece.iter().zip(made.vectors).map(|((number, _), vector)| {
                let unscored = || reasons.next().unwrap_or(Reason::Unknown);
                (*number, vector.ok_or_else(unscored))
            });
            let made = made.collect();
            let fresh = || Vectors::new(fingerprint.into(), method, dims);
            let mut more = kept.as_deref().cloned().unwrap_or_else(fresh);
            more.forget_before(self.first_number().unwrap_or(0));
            let added = more.add(made, self.budget());
            let more = Arc::new(more);
            *self.kept_vectors() = Some(Arc::clone(&more));
            if added.is_err() {
                return Ok(None);
            }
            kept = Some(more);
        }
        Ok(Some(kept.unwrap_or_else(|| Arc::new(Vectors::new(fingerprint.into(), method, dims)))))
    }

    /// Whether the log takes nothing more.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Whether what was last to be written found no room on the disk.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, kept: &DurableItems) {
        if let Some(bytes) = &self.log_bytes {
            bytes.store(kept.length(), Ordering::Relaxed);
        }
        self.is_ended.store(kept.has_ended(), Ordering::Relaxed);
        self.is_full.store(kept.is_full(), Ordering::Relaxed);
    }

    /// Counts items that left, because there are newer ones or because they were too old.
    pub(super) fn count_left(&self, evicted: usize, outlived: usize) {
        self.evicted.fetch_add(evicted as u64, Ordering::Relaxed);
        self.outlived.fetch_add(outlived as u64, Ordering::Relaxed);
    }

    pub(super) fn held(&self) -> RwLockReadGuard<'_, Items> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn held_mut(&self) -> RwLockWriteGuard<'_, Items> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivesWay for EmbeddedCollection {
    fn give_way(&self) {
        *self.kept_vectors() = None;
        self.shelves.clear();
        self.tokens.clear();
        self.windows.clear();
    }
}

impl Drop for EmbeddedCollection {
    fn drop(&mut self) {
        // An orderly end records the length; after a kill the record of the last chores counts.
        let _ = self.turn().record();
        self.budget.give_back(self.held().bytes);
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

    fn activity(&self) -> Activity {
        let synced = self.synced.load(Ordering::Relaxed);
        Activity {
            evicted: self.evicted.load(Ordering::Relaxed),
            outlived: self.outlived.load(Ordering::Relaxed),
            synced: (synced > 0).then_some(synced),
        }
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
        let view = self.view_within(which.within, now);
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
            Choice::TopByTokens(best, by) => self.counted(which, best, by, now, cancel),
            Choice::All => {
                let (view, mut items) = (self.view_within(which.within, now), Vec::new());
                which.each(view.numbered(), cancel, |number, item| {
                    items.push((number, Arc::clone(item)));
                })?;
                Ok(Chosen::all(items))
            }
        }
    }

    fn lacking<'n>(
        &self,
        names: &BTreeSet<&'n str>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<&'n str>, ChooseError> {
        let (view, mut missing) = (self.view(now), Vec::from_iter(names.iter().copied()));
        let mut items = view.iter().enumerate().peekable();
        if items.peek().is_none() {
            return Ok(Vec::new());
        }
        // Mostly the first items have all of them.
        for (place, item) in items {
            if missing.is_empty() {
                break;
            }
            if place % PIECE == 0 {
                cancel.check()?;
            }
            missing.retain(|name| item.attributes.get(name).is_none());
        }
        Ok(missing)
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

    fn wait_durable(&self, pending: Pending) -> Result<(), CollectionError> {
        self.wait_durable(pending)
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        matcher::check(&items, self.limits())?;
        let mut turn = self.turn();
        if how.add == AddPolicy::None {
            // Who only looks holds up no writer while the nearest are scored.
            let prepared = matcher::prepare(&mut turn, engine, how, (items, now), cancel)?;
            let (state, pending) = ((turn.revision(), turn.next_number()), turn.pending());
            drop(turn);
            return Ok((prepared.decide(cancel)?.written(state, self.windows()), pending));
        }
        let mut followed = matcher::follow(&mut turn, engine, how, (items, now), cancel)?;
        let changes = std::mem::take(&mut followed.items).into_iter().map(Change::put);
        let pending = turn.write(changes.collect(), now)?.1;
        let state = (turn.revision(), turn.next_number());
        Ok((followed.written(state, turn.windows()), pending))
    }

    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added, CollectionError> {
        let (view, last_move) = (self.view(now), self.held().last_move);
        let numbered = |(number, item): (u64, &Arc<Item>)| (number, Arc::clone(item));
        let items = match from {
            Some(from) => view.numbered_from(from).take(most).map(numbered).collect(),
            None => view.numbered().next_back().map(numbered).into_iter().collect(),
        };
        Ok(Added { items, last_move })
    }

    fn number(&self, id: &str, now: i64) -> Result<Option<(u64, Arc<Item>)>, CollectionError> {
        let number = self.held().number(id);
        let item = self.get(id, now);
        Ok(number.zip(item))
    }

    fn merges(
        &self,
        after: i64,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<Merged>, ChooseError> {
        let view = self.view(now);
        alerts::merges(view.iter(), after, cancel)
    }

    fn expire(&self, now: i64) -> Result<Option<Pending>, CollectionError> {
        let mut turn = self.turn();
        if !turn.takes_more() {
            return Ok(None);
        }
        let (_, pending) = turn.write(Vec::new(), now)?;
        Ok(Some(pending))
    }

    /// Writes the log anew where most of it is of the past. Looks whether the log is where it was, and
    /// notes beside it how long it is.
    fn compact_log(&self) -> Result<(), CollectionError> {
        {
            let turn = self.turn();
            let Some(length) = turn.log_bytes() else { return Ok(()) };
            turn.look()?;
            drop(turn);
            let live = 2 * self.held().bytes as u64;
            if length > LEAST_LOG.max(live) {
                match self.rewrite() {
                    // It was deleted meanwhile.
                    Err(CollectionError::Unknown) => return Ok(()),
                    rewritten => rewritten?,
                }
            }
        }
        let mut turn = self.turn();
        turn.seal()?;
        turn.record()
    }
}
