//! The log of a collection that is kept, and what the collection held when its bytes were certain to
//! last: what cannot be made to last is taken back.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::embedded::Table;
use crate::embedded::items::Items;
use crate::embedded::log::{Lasting, Log, LogCopy};
use crate::embedded::reserve::Reserve;
use crate::embedded::storage::Storage;
use crate::transaction::Change;
use crate::{CollectionError, Item, Settings};

/// The items of a collection that has a log, as far as the log is durable.
pub(super) struct DurableItems {
    reserve: Arc<Reserve>,
    pub(super) log: Log,
    /// States of the items, oldest first; the first is durable.
    states: VecDeque<State>,
}

struct State {
    end: u64,
    table: Arc<Table>,
    settings: Settings,
}

impl DurableItems {
    /// Of a log; its items are to be [noted](Self::note).
    pub(super) fn new(reserve: Arc<Reserve>, log: Log) -> Self {
        Self { reserve, log, states: VecDeque::new() }
    }

    /// Writes changes of these items. What deletes some has the room that is set aside for it, where there is
    /// no other. If it deletes all, a log without items takes the place of this one, whose room is free then.
    pub(super) fn append(
        &mut self,
        changes: &[Change],
        held: &Items,
    ) -> Result<(), CollectionError> {
        let written = self.log.append(changes);
        if !self.log.is_full {
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
        let (path, settings, nothing) = (&self.log.path, held.settings, std::iter::empty());
        let copy = LogCopy::of(&self.log.storage, path, settings, nothing, self.log.length)?;
        self.replace(copy, held)
    }

    pub(super) fn note(&mut self, held: &Items) {
        let certain = self.log.last.synced();
        while self.states.get(1).is_some_and(|next| next.end <= certain) {
            self.states.pop_front();
        }
        let (table, settings) = (Arc::clone(&held.table), held.settings);
        self.states.push_back(State { end: self.log.length, table, settings });
    }

    /// What to go back to where the log that failed is this one: what is certain to last. If another took
    /// its place, that one has all of it.
    pub(super) fn certain(&mut self, failed: &Arc<Lasting>) -> Option<(Arc<Table>, Settings)> {
        if !Arc::ptr_eq(&self.log.last, failed) {
            return None;
        }
        let certain = failed.synced();
        while self.states.get(1).is_some_and(|next| next.end <= certain) {
            self.states.pop_front();
        }
        self.states.truncate(1);
        self.states.front().map(|State { table, settings, .. }| (Arc::clone(table), *settings))
    }

    pub(super) fn snapshot(&self, held: &Items) -> Result<Snapshot, CollectionError> {
        self.log.check()?;
        // A file that another process put in its place must not be replaced.
        self.log.last.look()?;
        Ok(Snapshot {
            storage: Arc::clone(&self.log.storage),
            path: self.log.path.clone(),
            table: Arc::clone(&held.table),
            settings: held.settings,
            end: self.log.length,
        })
    }

    /// Replaces the log by a copy, after adding to the copy what was written meanwhile.
    pub(super) fn replace(
        &mut self,
        mut copy: LogCopy,
        held: &Items,
    ) -> Result<(), CollectionError> {
        self.log.check()?;
        self.log.last.look()?;
        self.log.cut_torn_end()?;
        copy.catch_up(&*self.log.file, self.log.length)?;
        self.log.forget_record()?;
        self.log = copy.into_place().inspect_err(|error| {
            if matches!(error, CollectionError::Unsynced { .. }) {
                self.log.end();
            }
        })?;
        self.states.clear();
        self.note(held);
        // If this fails, the next chores try again.
        let _ = self.log.record();
        Ok(())
    }
}

pub(super) struct Snapshot {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    table: Arc<Table>,
    settings: Settings,
    end: u64,
}

impl Snapshot {
    pub(super) fn copy(self) -> Result<LogCopy, CollectionError> {
        let items = self.table.iter().map(|(_, item)| item.as_ref());
        LogCopy::of(&self.storage, &self.path, self.settings, items, self.end)
    }
}
