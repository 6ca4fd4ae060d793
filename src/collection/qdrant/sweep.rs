//! Points that are gone, deleted once nobody may still be reading them.

use std::time::Instant;

use qdrant_client::qdrant::Filter;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;

use crate::collection::CollectionError;
use crate::collection::qdrant::asking::Asking;
use crate::collection::qdrant::hold::Hold;
use crate::collection::qdrant::numbers::Numbers;
use crate::collection::qdrant::record;
use crate::collection::qdrant::record::Record;
use crate::collection::qdrant::snapshot::GRACE;
use crate::collection::qdrant::snapshot::any_of;
use crate::collection::qdrant::snapshot::between;

/// How long it takes at most until what another writer was about to add has come, in milliseconds.
const LATE: i64 = 3_600_000;

/// What was deleted, and is to be taken out of the record.
#[derive(Debug, Default)]
pub(super) struct Swept {
    gone: Numbers,
    /// How many of the pending lists were deleted.
    lists: usize,
    is_low: bool,
}

/// Deletes what is gone for long enough.
pub(super) fn sweep(asking: &Asking, hold: &Hold, now: i64) -> Result<Swept, CollectionError> {
    let mut swept = Swept::default();
    let is_due = |since: &Instant| since.elapsed() >= GRACE;
    for (_, gone) in hold.pending.iter().take_while(|(since, _)| is_due(since)) {
        swept.gone.add(gone);
        swept.lists += 1;
    }
    let mut conditions = any_of(&swept.gone);
    if hold.low.as_ref().is_some_and(is_due) {
        swept.is_low = true;
        conditions.push(between(0, hold.record.first));
        // What was left in a gap takes room, though nobody sees it.
        let gaps = hold.record.gaps.iter();
        conditions.extend(gaps.map(|gap| between(gap.from, gap.to)));
    }
    let late = hold.record.gaps.iter().filter(|gap| is_late(gap.since, now));
    conditions.extend(late.map(|gap| between(gap.from, gap.to)));
    if !conditions.is_empty() {
        let points = PointsSelectorOneOf::Filter(Filter::should(conditions));
        record::delete(asking, &hold.record.place(), points)?;
    }
    Ok(swept)
}

fn is_late(since: i64, now: i64) -> bool {
    now.saturating_sub(since) >= LATE
}

impl Swept {
    /// Takes what was deleted out of a record.
    pub(super) fn forget(&self, record: &mut Record, now: i64) {
        if !self.gone.is_empty() {
            record.gone.take_out(&self.gone);
            record.swept += 1;
        }
        record.gaps.retain(|gap| !is_late(gap.since, now));
    }

    /// That was written.
    pub(super) fn is_written(&self, hold: &mut Hold) {
        hold.pending.drain(..self.lists);
        if self.is_low {
            hold.low = None;
        }
    }
}
