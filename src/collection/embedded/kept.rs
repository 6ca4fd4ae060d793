//! The log of a collection that is kept, and what the collection held when its bytes were certain to
//! last: what cannot be made to last is taken back.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::collection::CollectionError;
use crate::collection::Settings;
use crate::collection::embedded::Table;
use crate::collection::embedded::held::Held;
use crate::collection::embedded::log::Change;
use crate::collection::embedded::log::Lasting;
use crate::collection::embedded::log::Log;
use crate::collection::embedded::storage::Storage;

/// The log of a collection that is kept.
pub(super) struct Kept {
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

impl Kept {
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

    /// Writes changes.
    pub(super) fn append(&mut self, changes: &[Change]) -> Result<(), CollectionError> {
        self.log.append(changes)
    }

    /// Says in the log that all of it lasts, if that is so.
    pub(super) fn seal(&mut self) -> Result<(), CollectionError> {
        self.log.seal()
    }

    /// Notes what is held now that changes were written.
    pub(super) fn note(&mut self, held: &Held) {
        let certain = self.log.lasting().synced();
        while self.states.get(1).is_some_and(|next| next.end <= certain) {
            self.states.pop_front();
        }
        let (table, settings) = (Arc::clone(&held.table), held.settings);
        self.states.push_back(State { end: self.log.length(), table, settings });
    }

    /// Brings what is held back to what is certain to last, where the log that failed is this one: if
    /// another took its place, that one has all of it.
    pub(super) fn take_back(&mut self, failed: &Arc<Lasting>, held: &mut Held) -> bool {
        if !Arc::ptr_eq(self.log.lasting(), failed) {
            return false;
        }
        let certain = failed.synced();
        while self.states.get(1).is_some_and(|next| next.end <= certain) {
            self.states.pop_front();
        }
        self.states.truncate(1);
        if let Some(State { table, settings, .. }) = self.states.front() {
            held.restore(Arc::clone(table), *settings);
        }
        self.log.take_back();
        true
    }

    /// Writes the log anew with what is held.
    pub(super) fn rewrite(&mut self, held: &Held) -> Result<(), CollectionError> {
        self.check()?;
        let items = held.table.iter().map(|(_, item)| item.as_ref());
        let fresh = Log::create(&*self.storage, self.log.path(), held.settings, items);
        self.log = fresh.inspect_err(|error| {
            if matches!(error, CollectionError::Unsynced { .. }) {
                self.log.end();
            }
        })?;
        self.states.clear();
        self.note(held);
        Ok(())
    }
}
