//! Who writes to a collection: one server at a time, which shows every few seconds that it is alive, and
//! lets go when it has not written for some time.
//!
//! No clocks are compared. Whoever finds another writer in the record looks again later: if for
//! [`SILENCE`] by its own clock the record did not change, the other one is taken for dead. If it was not, it
//! finds out with its next write, of which then nothing is seen.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use qdrant_client::qdrant::Filter;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;

use crate::collection::CollectionError;
use crate::collection::following::Windows;
use crate::collection::qdrant::asking::Asking;
use crate::collection::qdrant::home::Shared;
use crate::collection::qdrant::numbers::Numbers;
use crate::collection::qdrant::record;
use crate::collection::qdrant::record::Gap;
use crate::collection::qdrant::record::NOBODY;
use crate::collection::qdrant::record::Record;
use crate::collection::qdrant::snapshot::Snapshot;
use crate::collection::qdrant::snapshot::between;

/// How long a writer says nothing before it is taken for dead.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// How long before a writer shows that it is alive, or makes sure that it still is the writer.
const BEAT: Duration = Duration::from_secs(4);
/// How long a writer writes nothing before it lets go.
const IDLE: Duration = Duration::from_secs(10);
/// How far above the last number whoever takes over begins: more than one write adds items.
const STEP: u64 = 1 << 24;
/// Most gaps that are known.
const MOST_GAPS: usize = 64;

/// What a server that writes knows of a collection: nobody else changes it meanwhile.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) record: Record,
    /// What is gone, and since when.
    pub(super) pending: Vec<(Instant, Numbers)>,
    /// Since when nobody may read what lies below the first number, which may not be deleted yet.
    pub(super) low: Option<Instant>,
    /// When it last showed that it is alive, and when it last wrote.
    shown: Instant,
    used: Instant,
}

/// The turn to write to a collection.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) hold: Option<Hold>,
    /// The collection whose windows are kept.
    uid: String,
}

/// A collection's name as this server knows it.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) slot: Mutex<Slot>,
    pub(super) windows: Windows,
    seen: Mutex<Option<Seen>>,
}

/// Another writer, as it was first seen.
#[derive(Debug)]
struct Seen {
    writer: String,
    commit: String,
    beat: u64,
    since: Instant,
}

impl Line {
    /// Whether the writer of a record has said nothing for long.
    pub(super) fn is_silent(&self, record: &Record) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = &*seen {
            let is_same = (&seen.writer, &seen.commit, seen.beat)
                == (&record.writer, &record.commit, record.beat);
            if is_same {
                return seen.since.elapsed() >= SILENCE;
            }
        }
        *seen = Some(Seen {
            writer: record.writer.clone(),
            commit: record.commit.clone(),
            beat: record.beat,
            since: Instant::now(),
        });
        false
    }
}

impl Slot {
    /// Becomes the writer, if no other is.
    pub(super) fn take(
        &mut self,
        shared: &Shared,
        line: &Line,
        name: &str,
        now: i64,
    ) -> Result<&mut Hold, CollectionError> {
        let asking = &shared.asking;
        let was = record::find(asking, name)?;
        let is_free = was.writer == NOBODY;
        if !is_free && was.writer != shared.writer && !line.is_silent(&was) {
            return Err(record::other_writer());
        }
        let mut record = was.clone();
        record.writer.clone_from(&shared.writer);
        record.beat += 1;
        // Whoever let go left nothing behind. This server itself may have, if a write of it failed.
        if !is_free {
            record.next = was.next + STEP;
            // Of writers that wrote nothing there is one gap.
            let before = record.gaps.pop_if(|gap| gap.to == was.next);
            let from = before.map_or(was.next, |gap| gap.from);
            record.gaps.push(Gap { from, to: record.next, since: now });
            let many = record.gaps.len().saturating_sub(MOST_GAPS);
            for gap in record.gaps.drain(..many) {
                let points = Filter::must([between(gap.from, gap.to)]);
                record::delete(asking, &was.place(), PointsSelectorOneOf::Filter(points))?;
            }
            record.items = Snapshot { asking, record: &record }.count([])?;
        }
        record.name_commit(shared.next_commit());
        record::swap(asking, &was, &record)?;
        if self.uid != record.uid {
            line.windows.clear();
            self.uid.clone_from(&record.uid);
        }
        let at = Instant::now();
        let pending = match record.gone.is_empty() {
            true => Vec::new(),
            false => vec![(at, record.gone.clone())],
        };
        let hold = Hold { record, pending, low: Some(at), shown: at, used: at };
        Ok(self.hold.insert(hold))
    }

    /// Is the writer no more, and says so. Where that fails another has to wait.
    pub(super) fn let_go(
        &mut self,
        asking: &Asking,
        commit: String,
    ) -> Result<(), CollectionError> {
        let Some(hold) = self.hold.take() else { return Ok(()) };
        let mut record = hold.record.clone();
        NOBODY.clone_into(&mut record.writer);
        record.name_commit(commit);
        record::swap(asking, &hold.record, &record)
    }
}

impl Hold {
    /// A write was done.
    pub(super) fn wrote(&mut self, record: Record) {
        self.record = record;
        (self.shown, self.used) = (Instant::now(), Instant::now());
    }

    /// Makes sure that this still is the writer, if that was not seen for some time.
    pub(super) fn check(&mut self, shared: &Shared) -> Result<(), CollectionError> {
        if self.shown.elapsed() < BEAT {
            return Ok(());
        }
        let found = record::find(&shared.asking, &self.record.name)?;
        if found.uid != self.record.uid {
            return Err(CollectionError::Unknown);
        }
        match found.commit == self.record.commit {
            true => Ok(()),
            false => Err(record::other_writer()),
        }
    }

    /// Shows that this writer is alive, if that was not shown for some time.
    pub(super) fn show(&mut self, shared: &Shared) -> Result<(), CollectionError> {
        if self.shown.elapsed() >= BEAT {
            self.record.beat += 1;
            record::beat(&shared.asking, &self.record, self.record.beat)?;
            self.shown = Instant::now();
        }
        Ok(())
    }

    /// Whether it may let go: nothing was written for some time, and nothing is left to do.
    pub(super) fn is_idle(&self) -> bool {
        self.used.elapsed() >= IDLE && self.pending.is_empty() && self.low.is_none()
    }
}

#[cfg(test)]
mod time {
    use std::time::Instant;

    use crate::collection::qdrant::hold::Hold;
    use crate::collection::qdrant::hold::Line;
    use crate::collection::qdrant::hold::SILENCE;
    use crate::collection::qdrant::snapshot::GRACE;

    impl Line {
        /// Another writer, if it was seen, was seen so long ago that it is taken for dead.
        pub(in crate::collection::qdrant) fn let_time_pass(&self) {
            for seen in self.seen.lock().unwrap().iter_mut() {
                seen.since = Instant::now().checked_sub(SILENCE).unwrap();
            }
        }
    }

    impl Hold {
        /// What is gone was gone so long ago that it is deleted.
        pub(in crate::collection::qdrant) fn let_time_pass(&mut self) {
            let then = Instant::now().checked_sub(GRACE).unwrap();
            self.pending.iter_mut().for_each(|(since, _)| *since = then);
            self.low.iter_mut().for_each(|since| *since = then);
        }
    }
}
