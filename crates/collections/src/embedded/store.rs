//! One collection: a writer at a time, and any number of readers, who see the items of the moment
//! when they began.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use cognate::engine::{Engine, Query, Reason};
use cognate::methods::Method;
use cognate::window::stream::AddPolicy;
use parking_lot::{Mutex, RwLock};

use crate::embedded::bits::{TILES, and, count, numbers};
use crate::embedded::blocks::{BlockStore, items_of};
use crate::embedded::durable::DurableItems;
use crate::embedded::home::Registry;
use crate::embedded::items::Items;
use crate::embedded::log::{Log, LogCopy};
use crate::embedded::tokens::TokenBlock;
use crate::embedded::transaction::{WriteTransaction, Writer};
use crate::embedded::{Table, quantised};
use crate::matcher::Explaining;
use crate::settings::GivesWay;
use crate::windows::{Following, Windows};
use crate::{
    Activity, Added, Applied, AskedAttribute, Budget, Cancellation, Choice, ChooseError, Chosen,
    Collection, CollectionError, CollectionInfo, EventChange, Facets, Item, ItemSelector, Limits,
    MatchOptions, Matched, Merged, Page, Pending, Result, Settings, SettingsChange, SharedEngine,
    Vectors, Write, alerts, matcher, transaction,
};

/// Items that are counted, or whose vectors are made, between two checks for cancellation.
const PIECE: usize = 1024;
/// Size of a log, in bytes, below which it is never rewritten.
const MIN_LOG: u64 = 4 << 20;
/// Bytes that may be added to a copy of the log while writers wait.
pub(super) const LAST_PIECE: u64 = 256 << 10;
/// Most rounds of catching up without the writer's lock.
const MAX_ROUNDS: usize = 8;

#[derive(Debug)]
pub struct EmbeddedCollection {
    pub(super) name: Box<str>,
    pub(super) limits: Limits,
    pub(super) budget: Arc<Budget>,
    writer: Mutex<Writer>,
    /// Held by the thread that rewrites the log; taken before the writer's lock.
    rewriting: Mutex<()>,
    pub(super) held: RwLock<Items>,
    /// Windows that texts are matched against, the most recently used last.
    pub(super) windows: Windows,
    /// The vectors of its items by the last method that ranked by stored vectors.
    pub(super) vectors: Mutex<Option<Arc<Vectors>>>,
    /// The same vectors as signed bytes, for shortlists.
    pub(super) shelves: BlockStore<quantised::Block>,
    pub(super) tokens: BlockStore<TokenBlock>,
    /// Outside the writer's lock, so that readers do not wait for the disk.
    pub(super) status: Mutex<Status>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Status {
    /// Bytes of the log, if there is one; of another process's log, the bytes that were read.
    log_bytes: Option<u64>,
    pub(super) unread_bytes: Option<u64>,
    pub(super) is_ended: bool,
    pub(super) is_full: bool,
    pub(super) activity: Activity,
}

#[derive(Debug, Clone)]
pub struct View {
    pub(super) table: Arc<Table>,
    pub(super) oldest: Option<i64>,
}

impl View {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Item>> + Clone {
        self.numbered().map(|(_, item)| item)
    }

    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        self.table.iter().rev().take_while(move |(at, _)| *at >= number)
    }

    fn numbered_from(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        let stays = |item: &Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.since(number).filter(move |(_, item)| stays(item))
    }

    pub(super) fn item(&self, number: u64) -> Option<&Arc<Item>> {
        self.table.get(number)
    }

    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (u64, &Arc<Item>)> + Clone {
        let stays = |item: &Arc<Item>| self.oldest.is_none_or(|oldest| item.time >= oldest);
        self.table.iter().filter(move |(_, item)| stays(item))
    }
}

impl EmbeddedCollection {
    pub(super) fn new(
        name: &str,
        Registry { limits, budget, .. }: &Registry,
        held: Items,
        mut kept: Option<DurableItems>,
    ) -> Self {
        budget.charge_unchecked(held.bytes);
        kept.iter_mut().for_each(|kept| kept.note(&held));
        let status = Status {
            log_bytes: kept.as_ref().map(|kept| kept.log.length),
            is_full: kept.as_ref().is_some_and(|kept| kept.log.is_full),
            ..Status::default()
        };
        Self {
            status: Mutex::new(status),
            name: name.into(),
            limits: *limits,
            budget: Arc::clone(budget),
            writer: Mutex::new(Writer::new(kept)),
            rewriting: Mutex::default(),
            held: RwLock::new(held),
            windows: Windows::default(),
            vectors: Mutex::default(),
            shelves: BlockStore::default(),
            tokens: BlockStore::default(),
        }
    }

    pub(super) fn replica(name: &str, registry: &Registry) -> Self {
        let replica = Self::new(name, registry, Items::default(), None);
        replica.note_read(0, 0);
        replica
    }

    pub(super) fn note_read(&self, bytes: u64, length: u64) {
        let mut status = self.status.lock();
        status.log_bytes = Some(bytes);
        status.unread_bytes = Some(length.saturating_sub(bytes));
    }

    pub fn settings(&self) -> Settings {
        self.held.read().settings
    }

    pub(super) fn count(&self, now: i64) -> usize {
        let held = self.held.read();
        held.count(held.settings.oldest(now))
    }

    pub fn view(&self, now: i64) -> View {
        self.view_within(None, now)
    }

    pub(super) fn view_within(&self, within: Option<i64>, now: i64) -> View {
        let held = self.held.read();
        View { table: Arc::clone(&held.table), oldest: held.settings.oldest_within(within, now) }
    }

    /// Returns a view of the unexpired items, and the numbers of the items that `which` excludes by name.
    pub(super) fn view_and_excluded(
        &self,
        which: &ItemSelector<'_>,
        now: i64,
    ) -> (View, HashSet<u64>) {
        let held = self.held.read();
        let numbers = which.without.iter().filter_map(|name| held.number(name)).collect();
        let oldest = held.settings.oldest_within(which.within, now);
        (View { table: Arc::clone(&held.table), oldest }, numbers)
    }

    pub fn get(&self, id: &str, now: i64) -> Option<Arc<Item>> {
        let held = self.held.read();
        let oldest = held.settings.oldest(now);
        let item = held.item(id).filter(|item| oldest.is_none_or(|oldest| item.time >= oldest));
        item.cloned()
    }

    /// Adds items, each replacing an item of the same name: all of them or none. On return they are
    /// durable, unless the collection is in memory only.
    pub fn put(&self, items: Vec<Item>, now: i64) -> Result<Applied> {
        self.change(Write::Put(items), now)
    }

    pub fn remove(&self, ids: &[&str], now: i64) -> Result<Applied> {
        self.change(Write::Remove(ids.iter().map(|id| (*id).into()).collect()), now)
    }

    pub fn set(&self, change: impl Into<SettingsChange>, now: i64) -> Result<Applied> {
        self.change(Write::Set(change.into()), now)
    }

    fn check_writer(&self) -> Result<()> {
        match self.status.lock().unread_bytes {
            Some(_) => Err(CollectionError::ReadOnly),
            None => Ok(()),
        }
    }

    pub fn compact(&self, now: i64) -> Result<()> {
        let pending = self.turn().expire(now)?;
        self.rewrite()?;
        self.wait_durable(pending)
    }

    /// Rewrites the log while others write to it: first a snapshot, then the later changes, the
    /// last of them in a turn.
    fn rewrite(&self) -> Result<()> {
        let _one = self.rewriting.lock();
        let Some(copy) = self.log_copy()? else { return Ok(()) };
        self.turn().replace_log(copy)
    }

    /// A copy of the log that lacks few of the later changes; `None` if there is no log.
    pub(super) fn log_copy(&self) -> Result<Option<LogCopy>> {
        let Some(snapshot) = self.turn().snapshot()? else { return Ok(None) };
        let mut copy = snapshot.copy()?;
        for _ in 0..MAX_ROUNDS {
            let log = |kept: &DurableItems| (Arc::clone(&kept.log.file), kept.log.length);
            let Some((file, length)) = self.turn().kept().map(log) else { break };
            if copy.missing(length) <= LAST_PIECE {
                break;
            }
            copy.catch_up(&*file, length)?;
        }
        Ok(Some(copy))
    }

    pub(super) fn turn(&self) -> WriteTransaction<'_> {
        let writer = self.writer.lock();
        WriteTransaction { collection: self, writer }
    }

    pub(super) fn first_number(&self) -> Option<u64> {
        self.held.read().table.first()
    }

    /// Takes memory; if it is short, vectors are dropped first, then windows, then those of other
    /// collections.
    pub(super) fn take_memory(&self, bytes: usize) -> Result<()> {
        let drop_blocks = || {
            self.shelves.clear();
            self.tokens.clear();
            self.clear_columns();
        };
        let drop_vectors = || *self.vectors.lock() = None;
        self.budget.take_with(bytes, &[&drop_vectors, &drop_blocks, &|| self.windows.clear()])
    }

    fn clear_columns(&self) {
        let table = Arc::clone(&self.held.read().table);
        table.chunks().for_each(|chunk| chunk.columns.clear());
    }

    pub(super) fn record_log_status(&self, log: &Log) {
        let mut status = self.status.lock();
        status.log_bytes = Some(log.length);
        (status.is_ended, status.is_full) = (log.last.has_ended(), log.is_full);
    }
}

impl GivesWay for EmbeddedCollection {
    fn give_way(&self) {
        *self.vectors.lock() = None;
        self.shelves.clear();
        self.tokens.clear();
        self.clear_columns();
        self.windows.clear();
    }
}

impl Drop for EmbeddedCollection {
    fn drop(&mut self) {
        // An orderly end records the length; after a kill the record of the last maintenance
        // counts.
        let _ = self.turn().with_log(Log::record);
        self.budget.give_back(self.held.read().bytes);
    }
}

impl Collection for EmbeddedCollection {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn told(&self, now: i64) -> Result<CollectionInfo> {
        let log_bytes = self.status.lock().log_bytes;
        let held = self.held.read();
        Ok(CollectionInfo {
            name: self.name.to_string(),
            settings: held.settings,
            items: held.count(held.settings.oldest(now)),
            bytes: held.bytes,
            durable: log_bytes.is_some(),
            log_bytes,
        })
    }

    fn activity(&self) -> Activity {
        self.status.lock().activity
    }

    fn numbered(&self, ids: &[&str], now: i64) -> Result<Vec<Option<(u64, Arc<Item>)>>> {
        let held = self.held.read();
        let oldest = held.settings.oldest(now).unwrap_or(i64::MIN);
        let stays = |(_, item): &(u64, Arc<Item>)| item.time >= oldest;
        let numbered = |id: &&str| Some((held.number(id)?, Arc::clone(held.item(id)?)));
        Ok(ids.iter().map(|id| numbered(id).filter(stays)).collect())
    }

    fn page(
        &self,
        which: &ItemSelector<'_>,
        Page { offset, limit }: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        let (view, wanted) = self.wanted(which, now, cancel)?;
        let items = view.table.those(numbers(&wanted).skip(offset).take(limit));
        Ok((items.map(|(_, item)| Arc::clone(item)).collect(), count(&wanted)))
    }

    fn choose(
        &self,
        which: &ItemSelector<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        let meant = self.wanted(which, now, cancel)?;
        match choice {
            Choice::All => Ok(Chosen::complete(items_of(&meant))),
            Choice::Shortlist(shortlist) => self.nearest(&meant, shortlist, cancel),
            Choice::Fused(shortlist, by) => self.fused(&meant, shortlist, by, cancel),
            Choice::TopQuery(best) => self.narrowed(&meant, best, cancel),
            Choice::TopByTokens(best, by) => self.counted(&meant, best, by, cancel),
        }
    }

    fn lacking<'n>(
        &self,
        names: &BTreeSet<AskedAttribute<'n>>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<AskedAttribute<'n>>, ChooseError> {
        let (view, mut missing) = (self.view(now), Vec::from_iter(names.iter().copied()));
        if view.iter().next().is_none() {
            return Ok(Vec::new());
        }
        let budget = self.columns_of(names);
        // Mostly the first items have all of them.
        for chunk in view.table.chunks() {
            if missing.is_empty() {
                break;
            }
            cancel.check()?;
            let young = chunk.young(view.oldest, budget);
            missing.retain(|asked| and(&young, &chunk.having(asked, budget)) == [0; TILES]);
        }
        Ok(missing)
    }

    fn count_of(
        &self,
        change: &EventChange,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<usize, ChooseError> {
        let (view, events, mut count) = (self.view(now), change.events(), 0);
        for (place, item) in view.iter().enumerate() {
            if place.is_multiple_of(PIECE) {
                cancel.check()?;
            }
            let event = item.event.as_ref();
            count += usize::from(event.is_some_and(|event| events.contains(&*event.id)));
        }
        Ok(count)
    }

    fn facets(
        &self,
        which: &ItemSelector<'_>,
        asked: (&[&str], usize),
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Facets, ChooseError> {
        let (view, wanted) = self.wanted(which, now, cancel)?;
        Facets::count(view.table.those(numbers(&wanted)), asked, cancel)
    }

    fn vectors(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        let fingerprint = engine.model().fingerprint();
        let dims = engine.embedding_dims(method)?;
        let mut kept = self.vectors.lock().clone().filter(|kept| kept.are_of(fingerprint, method));
        let known = |number| kept.as_ref().is_some_and(|kept| kept.of(number).is_some());
        let missing: Vec<&(u64, Arc<Item>)> =
            items.iter().filter(|(number, _)| !known(*number)).collect();
        for piece in missing.chunks(PIECE) {
            cancel.check()?;
            let texts: Vec<&str> = piece.iter().map(|(_, item)| &*item.text).collect();
            let made = engine.embed(&texts, &Query::new(method))?;
            let mut reasons = made.reasons.iter().copied();
            let made = piece.iter().zip(made.iter()).map(|((number, _), vector)| {
                let unscored = || reasons.next().unwrap_or(Reason::Unknown);
                (*number, vector.ok_or_else(unscored))
            });
            let made = made.collect();
            let fresh = || Vectors::new(fingerprint.into(), method, dims);
            let mut more = kept.as_deref().cloned().unwrap_or_else(fresh);
            more.forget_before(self.first_number().unwrap_or(0));
            let added = more.add(made, &self.budget);
            let more = Arc::new(more);
            *self.vectors.lock() = Some(Arc::clone(&more));
            if added.is_err() {
                return Ok(None);
            }
            kept = Some(more);
        }
        Ok(Some(kept.unwrap_or_else(|| Arc::new(Vectors::new(fingerprint.into(), method, dims)))))
    }

    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending)> {
        self.check_writer()?;
        // The lock is held from reading to writing.
        let mut turn = self.turn();
        let applied = transaction::write(&mut turn, wanted, now)?;
        Ok((applied, turn.pending()))
    }

    fn wait_durable(&self, pending: Pending) -> Result<()> {
        let Some((lasting, bytes)) = pending.0 else { return Ok(()) };
        if let Err(error) = lasting.wait(bytes) {
            let mut turn = self.turn();
            let is_deleted = turn.is_gone() && matches!(error, CollectionError::Away { .. });
            return if !is_deleted && turn.take_back(&lasting) { Err(error) } else { Ok(()) };
        }
        self.status.lock().activity.synced = Some(crate::now());
        // A replica shows what the log records as synced. The last of several writers records it.
        if let Some(writer) = self.writer.try_lock() {
            let _ = WriteTransaction { collection: self, writer }.with_log(Log::seal);
        }
        Ok(())
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), ChooseError> {
        self.check_writer()?;
        matcher::check(&items, how, &self.limits)?;
        let mut turn = self.turn();
        if how.add == AddPolicy::None {
            // The lock is released before scoring, so that a read-only call does not hold up writers.
            let prepared = matcher::prepare(&mut turn, engine, how, (items, now), cancel)?;
            let (state, pending) = ((turn.revision(), turn.next_number()), turn.pending());
            drop(turn);
            return Ok((prepared.decide(cancel)?.written(state, &self.windows, 0), pending));
        }
        let (followed, left) = transaction::follow(&mut turn, engine, how, (items, now), cancel)?;
        let state = (turn.revision(), turn.next_number());
        Ok((followed.written(state, &self.windows, left), turn.pending()))
    }

    fn explain(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        id: &str,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Option<Matched>, ChooseError> {
        let Some(item) = self.numbered(&[id], now)?.pop().flatten() else { return Ok(None) };
        // No writer is blocked while the texts are read and scored.
        let asked = Explaining::read(&mut self.turn(), engine, how, (item, now), cancel)?;
        asked.tell(cancel).map(Some)
    }

    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added> {
        let (view, last_move) = (self.view(now), self.held.read().last_move);
        let numbered = |(number, item): (u64, &Arc<Item>)| (number, Arc::clone(item));
        let items = match from {
            Some(from) => view.numbered_from(from).take(most).map(numbered).collect(),
            None => view.numbered().next_back().map(numbered).into_iter().collect(),
        };
        Ok(Added { items, last_move })
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

    fn expire(&self, now: i64) -> Result<Option<Pending>> {
        let mut turn = self.turn();
        if turn.takes_more() { turn.expire(now).map(Some) } else { Ok(None) }
    }

    /// Rewrites the log if most of it is outdated. Checks that the log is in place, and records its
    /// length beside it.
    fn compact_log(&self) -> Result<()> {
        {
            let mut turn = self.turn();
            let Some(length) = turn.log_bytes() else { return Ok(()) };
            turn.with_log(|log| log.last.look())?;
            drop(turn);
            let live = 2 * self.held.read().bytes as u64;
            if length > MIN_LOG.max(live) {
                match self.rewrite() {
                    // The collection was deleted meanwhile.
                    Err(CollectionError::Unknown) => return Ok(()),
                    rewritten => rewritten?,
                }
            }
        }
        let mut turn = self.turn();
        turn.with_log(Log::seal)?;
        turn.with_log(Log::record)
    }
}
