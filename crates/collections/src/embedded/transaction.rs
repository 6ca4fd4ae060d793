//! Writing to a collection: one caller at a time writes, to the log first and then to memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::embedded::EmbeddedCollection;
use crate::embedded::bits::numbers;
use crate::embedded::durable::{DurableItems, Snapshot};
use crate::embedded::items::Items;
use crate::embedded::log::{Lasting, Log, LogCopy};
use crate::events::Move;
use crate::transaction::{Change, Transaction};
use crate::windows::{Following, Numbered, Windows};
use crate::{
    Applied, Budget, Cancellation, ChooseError, CollectionError, EventChange, Item, ItemSelector,
    Limits, Pending, Result, Settings, transaction,
};

pub(super) struct Writer {
    /// `None` if the collection is in memory only, or if another process writes it.
    kept: Option<DurableItems>,
    gone: bool,
    /// Counts all changes but items that were added or left by age or number.
    revision: u64,
}

impl Writer {
    pub(super) fn new(kept: Option<DurableItems>) -> Self {
        Self { kept, gone: false, revision: 0 }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({})", self.revision)
    }
}

/// The turn to write to a collection; it ends on drop.
pub(super) struct WriteTransaction<'c> {
    pub(super) collection: &'c EmbeddedCollection,
    pub(super) writer: MutexGuard<'c, Writer>,
}

impl WriteTransaction<'_> {
    pub(super) fn takes_more(&self) -> bool {
        !self.writer.gone
            && self.collection.status.lock().unread_bytes.is_none()
            && !self.writer.kept.as_ref().is_some_and(|kept| kept.log.last.has_ended())
    }

    pub(super) fn is_gone(&self) -> bool {
        self.writer.gone
    }

    pub(super) fn end(&mut self) {
        self.writer.gone = true;
    }

    /// The log and durable states; `None` if there is no log, or if it accepts no writes any more.
    pub(super) fn kept(&self) -> Option<&DurableItems> {
        self.writer.kept.as_ref().filter(|_| !self.writer.gone)
    }

    pub(super) fn log_bytes(&self) -> Option<u64> {
        self.kept().map(|kept| kept.log.length)
    }

    /// Calls `action` with the log, if there is one, and updates the status.
    pub(super) fn with_log(&mut self, act: impl FnOnce(&mut Log) -> Result<()>) -> Result<()> {
        let Writer { kept: Some(kept), gone: false, .. } = &mut *self.writer else { return Ok(()) };
        let done = act(&mut kept.log);
        self.record_log_status();
        done
    }

    pub(super) fn expire(&mut self, now: i64) -> Result<Pending> {
        transaction::change(self, Vec::new(), false, now)?;
        Ok(self.pending())
    }

    /// Undoes what a failed log could not make durable; returns whether the log was this
    /// collection's.
    pub(super) fn take_back(&mut self, failed: &Arc<Lasting>) -> bool {
        let Some(kept) = &mut self.writer.kept else { return false };
        let Some((table, settings)) = kept.certain(failed) else { return false };
        self.collection.take_over(|held| held.restore(table, settings));
        // The disk may take as long as it likes: no reader waits for it.
        kept.log.take_back();
        self.writer.revision += 1;
        self.record_log_status();
        true
    }

    pub(super) fn snapshot(&self) -> Result<Option<Snapshot>> {
        self.kept().map(|kept| kept.snapshot(&self.collection.held.read())).transpose()
    }

    pub(super) fn replace_log(&mut self, copy: LogCopy) -> Result<()> {
        if self.writer.gone {
            return Err(CollectionError::Unknown);
        }
        let Some(kept) = &mut self.writer.kept else { return Ok(()) };
        let replaced = kept.replace(copy, &self.collection.held.read());
        self.record_log_status();
        replaced
    }

    /// All writes so far, by any thread.
    pub(super) fn pending(&self) -> Pending {
        Pending(self.writer.kept.as_ref().map(|kept| kept.log.written()))
    }

    fn record_log_status(&self) {
        let kept = self.writer.kept.iter();
        kept.for_each(|kept| self.collection.record_log_status(&kept.log));
    }
}

impl Following for WriteTransaction<'_> {
    fn settings(&self) -> Settings {
        self.collection.settings()
    }

    fn revision(&self) -> u64 {
        self.writer.revision
    }

    fn live(&mut self, oldest: Option<i64>) -> Result<usize> {
        Ok(self.collection.held.read().count(oldest))
    }

    fn next_number(&self) -> u64 {
        self.collection.held.read().next_number()
    }

    fn there(&mut self, ids: &[&str]) -> Result<HashMap<Box<str>, Arc<Item>>> {
        let held = self.collection.held.read();
        Ok(ids.iter().filter_map(|id| Some(((*id).into(), held.item(id)?.clone()))).collect())
    }

    fn last(
        &mut self,
        most: usize,
        which: &ItemSelector<'_>,
        (before, now): (Option<u64>, i64),
        cancel: Cancellation<'_>,
    ) -> Result<Numbered, ChooseError> {
        let (view, without) = self.collection.view_and_excluded(which, now);
        // Reading the times of a few items does not pay for a column.
        let budget = self.collection.columns_of(&which.filter.names());
        let budget = budget.filter(|_| !which.filter.is_empty());
        let is_meant = |number: &u64| {
            before.is_none_or(|before| *number < before) && !without.contains(number)
        };
        let mut items = Numbered::new();
        for chunk in view.table.chunks().rev() {
            if items.len() >= most {
                break;
            }
            cancel.check()?;
            let meant = [(chunk.block(), chunk.meant(which, view.oldest, budget))];
            let meant: Vec<u64> = numbers(&meant).filter(is_meant).collect();
            let item = |&number: &u64| Some((number, Arc::clone(view.item(number)?)));
            items.extend(meant.iter().rev().take(most - items.len()).filter_map(item));
        }
        items.reverse();
        Ok(items)
    }

    fn since(&mut self, number: u64, most: usize) -> Result<Numbered> {
        let view = self.collection.view(i64::MIN);
        Ok(last_of(view.since(number), most))
    }

    fn windows(&self) -> &Windows {
        &self.collection.windows
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.collection.budget
    }

    fn take_memory(&self, bytes: usize) -> Result<()> {
        self.collection.take_memory(bytes)
    }
}

impl Transaction for WriteTransaction<'_> {
    fn limits(&self) -> &Limits {
        &self.collection.limits
    }

    fn known(&mut self, ids: &[&str]) -> Result<Vec<bool>> {
        let held = self.collection.held.read();
        Ok(ids.iter().map(|id| held.number(id).is_some()).collect())
    }

    fn remove_selected(&mut self, which: &ItemSelector<'_>, now: i64) -> Result<Applied> {
        // The search is not cancelled, so it does not fail.
        let wanted = self.collection.wanted(which, now, Cancellation::NEVER);
        let Ok((view, wanted)) = wanted else { return Ok(Applied::default()) };
        let items = view.table.those(numbers(&wanted));
        let changes = items.map(|(_, item)| Change::Remove(item.id.clone())).collect();
        transaction::change(self, changes, false, now)
    }

    fn last_move(&mut self) -> Result<i64> {
        Ok(self.collection.held.read().last_move)
    }

    fn moves(&mut self, wanted: &EventChange, at: i64, now: i64) -> Result<Vec<Move>> {
        wanted.moves(&wanted.members(self.collection.view(now).iter()), at)
    }

    /// In the log first, then in memory.
    fn commit(&mut self, changes: Vec<Change>) -> Result<Applied> {
        let collection = self.collection;
        if self.writer.gone {
            return Err(CollectionError::Unknown);
        }
        // Even an empty change is acknowledged only if the log is sound.
        self.writer.kept.as_ref().map_or(Ok(()), |kept| kept.log.check())?;
        if changes.is_empty() {
            return Ok(Applied::default());
        }
        let more = collection.held.read().bytes_of(&changes);
        collection.take_memory(more)?;
        let kept = self.writer.kept.as_mut();
        let written = kept.map(|kept| kept.append(&changes, &collection.held.read())).transpose();
        if let Err(error) = written {
            collection.budget.give_back(more);
            self.record_log_status();
            return Err(error);
        }
        let mut held = collection.held.write();
        let (before, mut applied, mut outlived) = (held.bytes, Applied::default(), 0);
        for change in changes {
            let (is_of_age, items) = (matches!(change, Change::Expire(_)), held.table.len());
            held.apply(change, &mut applied);
            outlived += if is_of_age { items - held.table.len() } else { 0 };
        }
        let mut status = collection.status.lock();
        status.activity.evicted += applied.left as u64;
        status.activity.outlived += outlived as u64;
        drop(status);
        // Returns the memory of replaced or removed items.
        collection.budget.give_back((before + more).saturating_sub(held.bytes));
        self.writer.kept.iter_mut().for_each(|kept| kept.note(&held));
        drop(held);
        self.record_log_status();
        Ok(applied)
    }

    fn revise(&mut self) {
        self.writer.revision += 1;
    }
}

impl EmbeddedCollection {
    /// Changes the items without checking limits: as another process did, or back to an earlier
    /// state.
    pub(super) fn take_over(&self, change: impl FnOnce(&mut Items)) {
        let mut held = self.held.write();
        let before = held.bytes;
        change(&mut held);
        self.budget.give_back(before.saturating_sub(held.bytes));
        self.budget.charge_unchecked(held.bytes.saturating_sub(before));
    }
}

fn last_of<'i>(items: impl Iterator<Item = (u64, &'i Arc<Item>)>, most: usize) -> Numbered {
    let items = items.take(most).map(|(number, item)| (number, Arc::clone(item)));
    let mut items: Numbered = items.collect();
    items.reverse();
    items
}
