//! The log of a collection that is kept, and what the collection held when its bytes were certain to
//! last: what cannot be made to last is taken back.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crate::embedded::Table;
use crate::embedded::held::Items;
use crate::embedded::log::{Change, Lasting, Log};
use crate::embedded::storage::Storage;
use crate::{CollectionError, Settings};

/// The log of a collection that is kept.
pub(super) struct DurableItems {
    storage: Arc<dyn Storage>,
    log: Log,
    /// What was held, the oldest first; the first of them is certain to last.
    states: VecDeque<State>,
}

/// What was held after so many bytes of the log.
struct State {
    end: u64,
    table: Arc<Table>,
    settings: Settings,
}

impl DurableItems {
    /// A log; what it holds is to be [noted](Self::note).
    pub(super) fn of(storage: Arc<dyn Storage>, log: Log) -> Self {
        Self { storage, log, states: VecDeque::new() }
    }

    /// Bytes of the log.
    pub(super) fn length(&self) -> u64 {
        self.log.length()
    }

    /// Whether it takes nothing more.
    pub(super) fn has_ended(&self) -> bool {
        self.log.has_ended()
    }

    /// Refuses what is to be written where nothing more is taken.
    pub(super) fn check(&self) -> Result<(), CollectionError> {
        if self.log.has_ended() { Err(self.log.ended()) } else { Ok(()) }
    }

    /// What tells when all that was written so far outlives a crash.
    pub(super) fn written(&self) -> (Arc<Lasting>, u64) {
        self.log.written()
    }

    pub(super) fn append(&mut self, changes: &[Change]) -> Result<(), CollectionError> {
        self.log.append(changes)
    }

    /// Says in the log that all of it lasts, if that is so.
    pub(super) fn seal(&mut self) -> Result<(), CollectionError> {
        self.log.seal()
    }

    /// Notes what is held now that changes were written.
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

    /// Takes off the log what is not certain to last.
    pub(super) fn take_back(&mut self) {
        self.log.take_back();
    }

    /// Writes the log anew with what is held.
    pub(super) fn rewrite(
        &mut self,
        table: Arc<Table>,
        settings: Settings,
    ) -> Result<(), CollectionError> {
        self.check()?;
        // What is in its place now is not to be replaced.
        self.log.look()?;
        self.log.forget_record(&*self.storage)?;
        let items = table.iter().map(|(_, item)| item.as_ref());
        let fresh = Log::create(&*self.storage, self.log.path(), settings, items);
        self.log = fresh.inspect_err(|error| {
            if matches!(error, CollectionError::Unsynced { .. }) {
                self.log.end();
            }
        })?;
        self.states.clear();
        self.states.push_back(State { end: self.log.length(), table, settings });
        // What cannot be written now is with the next chores.
        let _ = self.log.record(&*self.storage);
        Ok(())
    }
}
