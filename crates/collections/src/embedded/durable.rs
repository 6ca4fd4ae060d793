//! The log of a collection that is kept, and what the collection held when its bytes were certain to
//! last: what cannot be made to last is taken back.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::embedded::Table;
use crate::embedded::items::Items;
use crate::embedded::log::{Change, Lasting, Log, LogCopy};
use crate::embedded::reserve::Reserve;
use crate::embedded::storage::{Storage, Stored};
use crate::{CollectionError, Item, Settings};

/// The items of a collection that has a log, as far as the log is durable.
pub(super) struct DurableItems {
    storage: Arc<dyn Storage>,
    reserve: Arc<Reserve>,
    log: Log,
    /// States of the items, oldest first; the first is durable.
    states: VecDeque<State>,
}

/// The items after this many bytes of the log.
struct State {
    end: u64,
    table: Arc<Table>,
    settings: Settings,
}

impl DurableItems {
    /// Of a log; its items are to be [noted](Self::note).
    pub(super) fn of(storage: Arc<dyn Storage>, reserve: Arc<Reserve>, log: Log) -> Self {
        Self { storage, reserve, log, states: VecDeque::new() }
    }

    /// Bytes of the log.
    pub(super) fn length(&self) -> u64 {
        self.log.length()
    }

    /// Whether the log accepts no more changes.
    pub(super) fn has_ended(&self) -> bool {
        self.log.has_ended()
    }

    /// Refuses a write if the log accepts no more changes.
    pub(super) fn check(&self) -> Result<(), CollectionError> {
        if self.log.has_ended() { Err(self.log.ended()) } else { Ok(()) }
    }

    /// A handle to wait until everything written so far is durable.
    pub(super) fn written(&self) -> (Arc<Lasting>, u64) {
        self.log.written()
    }

    /// Whether what was last to be written found no room.
    pub(super) fn is_full(&self) -> bool {
        self.log.is_full()
    }

    /// Writes changes of these items. What deletes some has the room that is set aside for it, where there is
    /// no other. If it deletes all, a log without items takes the place of this one, whose room is free then.
    pub(super) fn append(
        &mut self,
        changes: &[Change],
        held: &Items,
    ) -> Result<(), CollectionError> {
        let written = self.log.append(changes);
        if !self.is_full() {
            return written;
        }
        let (mut removed, mut oldest) = (HashSet::new(), i64::MIN);
        for change in changes {
            match change {
                Change::Remove(id) => _ = removed.insert(&**id),
                Change::Expire(time) => oldest = *time,
                _ => return written,
            }
        }
        if removed.is_empty() {
            return written;
        }
        self.reserve.give_up();
        let goes = |item: &Item| removed.contains(&*item.id) || item.time < oldest;
        if !held.table.iter().all(|(_, item)| goes(item)) {
            return self.log.append(changes);
        }
        let (path, settings, nothing) = (self.log.path(), held.settings, std::iter::empty());
        let copy = LogCopy::of(&self.storage, path, settings, nothing, self.log.length())?;
        self.replace(copy, held)
    }

    /// Says in the log that all of it lasts, if that is so.
    pub(super) fn seal(&mut self) -> Result<(), CollectionError> {
        self.log.seal()
    }

    /// Notes the items after changes were written.
    pub(super) fn note(&mut self, held: &Items) {
        let certain = self.log.lasting().synced();
        while self.states.get(1).is_some_and(|next| next.end <= certain) {
            self.states.pop_front();
        }
        let (table, settings) = (Arc::clone(&held.table), held.settings);
        self.states.push_back(State { end: self.log.length(), table, settings });
    }

    /// Ends the log if it is not where it was opened any more.
    pub(super) fn look(&self) -> Result<(), CollectionError> {
        self.log.look()
    }

    /// Takes nothing more: this file is not where it was opened.
    pub(super) fn end_away(&self, path: PathBuf) {
        self.log.end_away(path);
    }

    /// Makes the log last, and leaves it to another process.
    pub(super) fn hand_over(&mut self) {
        self.log.hand_over(&*self.storage);
    }

    /// Writes beside the log how much of it lasts.
    pub(super) fn record(&mut self) -> Result<(), CollectionError> {
        self.log.record(&*self.storage)
    }

    /// What to go back to where the log that failed is this one: what is certain to last. If another took
    /// its place, that one has all of it.
    pub(super) fn certain(&mut self, failed: &Arc<Lasting>) -> Option<(Arc<Table>, Settings)> {
        if !Arc::ptr_eq(self.log.lasting(), failed) {
            return None;
        }
        let certain = failed.synced();
        while self.states.get(1).is_some_and(|next| next.end <= certain) {
            self.states.pop_front();
        }
        self.states.truncate(1);
        self.states.front().map(|State { table, settings, .. }| (Arc::clone(table), *settings))
    }

    /// Removes from the log what is not durable.
    pub(super) fn take_back(&mut self) {
        self.log.take_back();
    }

    /// The state from which the log is written anew.
    pub(super) fn snapshot(&self, held: &Items) -> Result<Snapshot, CollectionError> {
        self.check()?;
        // A file that another process put in its place must not be replaced.
        self.log.look()?;
        Ok(Snapshot {
            storage: Arc::clone(&self.storage),
            path: self.log.path().to_owned(),
            table: Arc::clone(&held.table),
            settings: held.settings,
            end: self.log.length(),
        })
    }

    /// The file of the log, and how long it is.
    pub(super) fn file(&self) -> (Arc<dyn Stored>, u64) {
        (Arc::clone(self.log.file()), self.log.length())
    }

    /// Replaces the log by a copy, after adding to the copy what was written meanwhile.
    pub(super) fn replace(
        &mut self,
        mut copy: LogCopy,
        held: &Items,
    ) -> Result<(), CollectionError> {
        self.check()?;
        self.log.look()?;
        self.log.cut_torn_end()?;
        copy.catch_up(&**self.log.file(), self.log.length())?;
        self.log.forget_record(&*self.storage)?;
        self.log = copy.into_place().inspect_err(|error| {
            if matches!(error, CollectionError::Unsynced { .. }) {
                self.log.end();
            }
        })?;
        self.states.clear();
        self.note(held);
        // If this fails, the next chores try again.
        let _ = self.log.record(&*self.storage);
        Ok(())
    }
}

/// The items of a collection after this many bytes of its log.
pub(super) struct Snapshot {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    table: Arc<Table>,
    settings: Settings,
    end: u64,
}

impl Snapshot {
    /// Writes a log of it beside the one that is in use.
    pub(super) fn copy(self) -> Result<LogCopy, CollectionError> {
        let items = self.table.iter().map(|(_, item)| item.as_ref());
        LogCopy::of(&self.storage, &self.path, self.settings, items, self.end)
    }
}
