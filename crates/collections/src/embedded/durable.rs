//! A collection's log, and the states of the collection back to the last durable one: a write that
//! cannot be made durable is undone.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::embedded::Table;
use crate::embedded::items::Items;
use crate::embedded::log::{Lasting, Log, LogCopy};
use crate::embedded::reserve::Reserve;
use crate::embedded::storage::Storage;
use crate::transaction::Change;
use crate::{CollectionError, Item, Result, Settings};

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
    /// The items of the log are then to be [noted](Self::note).
    pub(super) fn new(reserve: Arc<Reserve>, log: Log) -> Self {
        Self { reserve, log, states: VecDeque::new() }
    }

    /// Writes changes to the log. If the disk is full, deletions use the room reserved for them. If
    /// they delete every item, an empty log replaces this one, which frees its room.
    pub(super) fn append(&mut self, changes: &[Change], held: &Items) -> Result<()> {
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
        let copy = LogCopy::new(&self.log.storage, path, settings, nothing, self.log.length)?;
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

    /// The durable state to go back to, if the failed log is the current one. If another log
    /// replaced it, that one has all changes.
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

    pub(super) fn snapshot(&self, held: &Items) -> Result<Snapshot> {
        self.log.check()?;
        // A file that another process put there must not be replaced.
        self.log.last.look()?;
        Ok(Snapshot {
            storage: Arc::clone(&self.log.storage),
            path: self.log.path.clone(),
            table: Arc::clone(&held.table),
            settings: held.settings,
            end: self.log.length,
        })
    }

    /// Appends to the copy what was written since the copy began, and replaces the log by it.
    pub(super) fn replace(&mut self, mut copy: LogCopy, held: &Items) -> Result<()> {
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
        // If this fails, the next maintenance tries again.
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
    pub(super) fn copy(self) -> Result<LogCopy> {
        let items = self.table.iter().map(|(_, item)| item.as_ref());
        LogCopy::new(&self.storage, &self.path, self.settings, items, self.end)
    }
}
