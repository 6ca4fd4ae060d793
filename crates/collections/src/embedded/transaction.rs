//! The turn to write to a collection: one at a time, in the log first and then in memory.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::embedded::EmbeddedCollection;
use crate::embedded::durable::{DurableItems, Snapshot};
use crate::embedded::items::Items;
use crate::embedded::log::{Change, Lasting, Log, LogCopy};
use crate::settings::tell_outlived;
use crate::windows::{Following, Numbered, Windows};
use crate::{Applied, Budget, CollectionError, Item, Pending, Settings};

pub(super) struct Writer {
    /// Nothing where the collection lives in memory alone, or another process writes it.
    kept: Option<DurableItems>,
    gone: bool,
    /// Counts changes in any other way than by items that were added or became too old or too many.
    revision: u64,
}

impl Writer {
    pub(super) fn of(kept: Option<DurableItems>) -> Self {
        Self { kept, gone: false, revision: 0 }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({})", self.revision)
    }
}

/// The turn to write to a collection; it ends when this is dropped.
pub(super) struct WriteTransaction<'c> {
    pub(super) collection: &'c EmbeddedCollection,
    pub(super) writer: MutexGuard<'c, Writer>,
}

impl WriteTransaction<'_> {
    pub(super) fn takes_more(&self) -> bool {
        !self.writer.gone
            && self.collection.status.lock().unread_bytes.is_none()
            && !self.writer.kept.as_ref().is_some_and(|kept| kept.log.has_ended())
    }

    pub(super) fn is_gone(&self) -> bool {
        self.writer.gone
    }

    pub(super) fn end(&mut self) {
        self.writer.gone = true;
    }

    /// What is kept of the collection; nothing where there is no log, or nothing is written to it any more.
    pub(super) fn kept(&self) -> Option<&DurableItems> {
        self.writer.kept.as_ref().filter(|_| !self.writer.gone)
    }

    pub(super) fn log_bytes(&self) -> Option<u64> {
        self.kept().map(|kept| kept.log.length)
    }

    /// Does something with the log, where there is one, and notes what is told of it.
    pub(super) fn with_log(
        &mut self,
        act: impl FnOnce(&mut Log) -> Result<(), CollectionError>,
    ) -> Result<(), CollectionError> {
        let Writer { kept: Some(kept), gone: false, .. } = &mut *self.writer else { return Ok(()) };
        let done = act(&mut kept.log);
        self.note();
        done
    }

    /// Makes changes: in the log first, then in memory; all of them or none. What is too old by now is
    /// taken out before.
    pub(super) fn write(
        &mut self,
        mut changes: Vec<Change>,
        now: i64,
    ) -> Result<(Applied, Pending), CollectionError> {
        let collection = self.collection;
        if self.writer.gone {
            return Err(CollectionError::Unknown);
        }
        // Not even of what is as it should be is anybody told that it lasts.
        self.writer.kept.as_ref().map_or(Ok(()), |kept| kept.log.check())?;
        let own = collection.settings();
        let oldest = own.oldest(now);
        let more = collection.room(&changes, oldest)?;
        let was_empty = collection.held.read().count(oldest) == 0;
        let settings = own.with_items(was_empty, times(&changes), now);
        let after = settings.oldest(now);
        let too_old = times(&changes).filter(|time| after.is_some_and(|oldest| *time < oldest));
        let expired = too_old.count();
        // Items that were the last to leave took their clock with them.
        let begins_anew = was_empty && times(&changes).next().is_some();
        if settings != own || begins_anew {
            changes.extend(settings.lag_ms.map(Change::Lag));
        }
        if let Some(oldest) = oldest.filter(|oldest| collection.held.read().has_older(*oldest)) {
            changes.insert(0, Change::Expire(oldest));
        }
        if changes.is_empty() {
            // What is as it should be may have been written by another who still waits.
            return Ok((Applied::default(), self.pending()));
        }
        collection.take_memory(more)?;
        let kept = self.writer.kept.as_mut();
        let written = kept.map(|kept| kept.append(&changes, &collection.held.read())).transpose();
        if let Err(error) = written {
            collection.budget.give_back(more);
            self.note();
            return Err(error);
        }
        let mut held = collection.held.write();
        let (before, mut applied) = (held.bytes, Applied { expired, ..Applied::default() });
        let is_other = |change: &Change| match change {
            Change::Set(_) | Change::Move(_) => true,
            // Nothing else that a patch changes is looked at by whoever matches.
            Change::Patch { id, time, .. } => held.item(id).is_some_and(|own| own.time != *time),
            _ => false,
        };
        let sets = changes.iter().any(is_other);
        let mut outlived = 0;
        for change in changes {
            let (is_of_age, items) = (matches!(change, Change::Expire(_)), held.table.len());
            held.apply(change, &mut applied);
            let gone = if is_of_age { items - held.table.len() } else { 0 };
            tell_outlived(&collection.name, gone, items);
            outlived += gone;
        }
        let mut status = collection.status.lock();
        status.activity.evicted += applied.left as u64;
        status.activity.outlived += outlived as u64;
        drop(status);
        let hidden = held.table.len() - held.count(held.settings.oldest(now));
        applied.left += hidden.saturating_sub(expired);
        // Of what was taken all that replaced or removed items had is free again.
        collection.budget.give_back((before + more).saturating_sub(held.bytes));
        // By a clock that begins anew, what left by the one before may be young enough again.
        let is_changed = sets || begins_anew || applied.replaced + applied.removed > 0;
        self.writer.revision += u64::from(is_changed);
        self.writer.kept.iter_mut().for_each(|kept| kept.note(&held));
        drop(held);
        self.note();
        Ok((applied, self.pending()))
    }

    /// Takes back what a log could not be made to keep; whether it was this collection's.
    pub(super) fn take_back(&mut self, failed: &Arc<Lasting>) -> bool {
        let Some(kept) = &mut self.writer.kept else { return false };
        let Some((table, settings)) = kept.certain(failed) else { return false };
        self.collection.take_over(|held| held.restore(table, settings));
        // The disk may take as long as it likes: nobody who reads waits for it.
        kept.log.take_back();
        self.writer.revision += 1;
        self.note();
        true
    }

    pub(super) fn snapshot(&self) -> Result<Option<Snapshot>, CollectionError> {
        self.kept().map(|kept| kept.snapshot(&self.collection.held.read())).transpose()
    }

    pub(super) fn replace_log(&mut self, copy: LogCopy) -> Result<(), CollectionError> {
        if self.writer.gone {
            return Err(CollectionError::Unknown);
        }
        let Some(kept) = &mut self.writer.kept else { return Ok(()) };
        let replaced = kept.replace(copy, &self.collection.held.read());
        self.note();
        replaced
    }

    /// What was written so far, by whomever.
    pub(super) fn pending(&self) -> Pending {
        Pending(self.writer.kept.as_ref().map(|kept| kept.log.written()))
    }

    fn note(&self) {
        let kept = self.writer.kept.iter();
        kept.for_each(|kept| self.collection.note(&kept.log));
    }
}

fn times(changes: &[Change]) -> impl Iterator<Item = i64> {
    changes.iter().filter_map(|change| match change {
        Change::Put(item) => Some(item.time),
        Change::Patch { time, .. } => Some(*time),
        _ => None,
    })
}

impl Following for WriteTransaction<'_> {
    fn settings(&self) -> Settings {
        self.collection.settings()
    }

    fn revision(&self) -> u64 {
        self.writer.revision
    }

    fn is_empty(&mut self, now: i64) -> Result<bool, CollectionError> {
        Ok(self.collection.count(now) == 0)
    }

    fn next_number(&self) -> u64 {
        self.collection.held.read().next_number()
    }

    fn there(&mut self, items: &[Item]) -> Result<HashMap<Box<str>, Arc<Item>>, CollectionError> {
        let held = self.collection.held.read();
        let there =
            items.iter().filter_map(|item| Some((item.id.clone(), held.item(&item.id)?.clone())));
        Ok(there.collect())
    }

    fn last(
        &mut self,
        most: usize,
        except: &HashSet<Box<str>>,
        now: i64,
    ) -> Result<Numbered, CollectionError> {
        let view = self.collection.view(now);
        let items = view.numbered().rev().filter(|(_, item)| !except.contains(&item.id));
        Ok(last_of(items, most))
    }

    fn since(&mut self, number: u64, most: usize) -> Result<Numbered, CollectionError> {
        let view = self.collection.view(i64::MIN);
        Ok(last_of(view.since(number), most))
    }

    fn windows(&self) -> &Windows {
        &self.collection.windows
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.collection.budget
    }

    fn take_memory(&self, bytes: usize) -> Result<(), CollectionError> {
        self.collection.take_memory(bytes)
    }
}

impl EmbeddedCollection {
    /// Changes the items without a look at limits: as another process did, or as they were before.
    pub(super) fn take_over(&self, change: impl FnOnce(&mut Items)) {
        let mut held = self.held.write();
        let before = held.bytes;
        change(&mut held);
        self.budget.give_back(before.saturating_sub(held.bytes));
        self.budget.charge_unchecked(held.bytes.saturating_sub(before));
    }

    /// Bytes that changes add at most, or the refusal of more items than there may be.
    fn room(&self, changes: &[Change], oldest: Option<i64>) -> Result<usize, CollectionError> {
        let held = self.held.read();
        let mut fresh = HashSet::new();
        for change in changes {
            if let Change::Put(item) = change
                && held.number(&item.id).is_none()
            {
                fresh.insert(&*item.id);
            }
        }
        let (wanted, limit) = (held.count(oldest) + fresh.len(), self.limits.items);
        match held.settings.max_items.is_none() && !fresh.is_empty() && wanted > limit {
            true => Err(CollectionError::TooManyItems { wanted, limit }),
            false => Ok(held.bytes_of(changes)),
        }
    }
}

/// The first of these, which come in reverse, in order.
fn last_of<'i>(items: impl Iterator<Item = (u64, &'i Arc<Item>)>, most: usize) -> Numbered {
    let items = items.take(most).map(|(number, item)| (number, Arc::clone(item)));
    let mut items: Numbered = items.collect();
    items.reverse();
    items
}
