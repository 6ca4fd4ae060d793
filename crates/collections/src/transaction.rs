//! What a write does, in a turn in which nobody else writes: decided here, and carried out by a log
//! or a database.

use std::collections::{HashMap, HashSet};

use cognate::window::stream::AddPolicy;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::events::Move;
use crate::matcher::Followed;
use crate::windows::Following;
use crate::{
    Applied, Attributes, Cancellation, ChooseError, CollectionError, EventChange, Item,
    ItemSelector, Limits, MatchOptions, Patched, Result, Settings, SharedEngine, Write, matcher,
};

/// A change of a collection, as a log has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change<I = Box<Item>> {
    /// The shape of the file.
    Format(Box<str>),
    Set(Settings),
    /// An item is added, in the place of another of its name.
    Put(I),
    Remove(Box<str>),
    /// An item that is there has these fields from now on, and keeps the others and its place.
    Patch {
        id: Box<str>,
        time: i64,
        #[serde(default, skip_serializing_if = "Attributes::is_empty")]
        attributes: Attributes,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Box<RawValue>>,
    },
    /// An item that is there moves to another event, and keeps its place.
    Move(Move),
    /// Removes items from before this time.
    Expire(i64),
    /// The collection's clock is so far behind the server's from now on.
    Lag(i64),
}

impl Change {
    pub(super) fn put(item: Item) -> Self {
        Self::Put(Box::new(item))
    }

    fn timed(&self) -> Option<(&str, i64)> {
        match self {
            Self::Put(item) => Some((&item.id, item.time)),
            Self::Patch { id, time, .. } => Some((id, *time)),
            _ => None,
        }
    }
}

/// An exclusive turn to write to a collection. Expired items exist until they are removed.
pub(super) trait Transaction: Following {
    fn limits(&self) -> &Limits;

    /// Refuses items that other homes can store and this home cannot.
    fn check(&self, _items: &[Item]) -> Result<()> {
        Ok(())
    }

    fn known(&mut self, ids: &[&str]) -> Result<Vec<bool>>;

    /// Time of the last merge that moved items of the collection.
    fn last_move(&mut self) -> Result<i64>;

    /// The moves of items by a change of events at this moment.
    fn moves(&mut self, wanted: &EventChange, at: i64, now: i64) -> Result<Vec<Move>>;

    /// Removes the selected items; a database removes them without sending them here.
    fn remove_selected(&mut self, which: &ItemSelector<'_>, now: i64) -> Result<Applied>;

    /// Makes changes: all of them or none. Without changes, reports whether any would be accepted.
    fn commit(&mut self, changes: Vec<Change>) -> Result<Applied>;

    /// Increments the [revision](Following::revision).
    fn revise(&mut self);
}

pub(super) fn write(turn: &mut dyn Transaction, wanted: Write, now: i64) -> Result<Applied> {
    let mut revises = false;
    let changes = match wanted {
        Write::Put(items) => {
            turn.limits().check(&items)?;
            turn.check(&items)?;
            items.into_iter().map(Change::put).collect()
        }
        Write::Patch(patches) => {
            let oldest = turn.settings().oldest(now);
            let ids: Vec<&str> = patches.iter().map(|(id, _)| &**id).collect();
            let mut there = turn.there(&ids)?;
            there.retain(|_, item| oldest.is_none_or(|oldest| item.time >= oldest));
            let mut patched = Patched::default();
            for (index, (id, patch)) in patches.iter().enumerate() {
                let applied = patched.apply(id, patch, || there.get(id).cloned());
                applied.map_err(|problem| CollectionError::Item { index, problem })?;
            }
            let items: Vec<Item> = patched.into_items().collect();
            turn.check(&items)?;
            // Matching depends on nothing else that a patch changes.
            let is_moved =
                |item: &Item| there.get(&item.id).is_some_and(|before| before.time != item.time);
            revises = items.iter().any(is_moved);
            let change = |Item { id, time, attributes, data, .. }| Change::Patch {
                id,
                time,
                attributes,
                data,
            };
            items.into_iter().map(change).collect()
        }
        Write::Remove(mut ids) => {
            let names: Vec<&str> = ids.iter().map(|id| &**id).collect();
            let mut known = turn.known(&names)?.into_iter();
            ids.retain(|_| known.next().unwrap_or(false));
            ids.into_iter().map(Change::Remove).collect()
        }
        Write::RemoveSelected(which) => return turn.remove_selected(&which, now),
        Write::Move(wanted, room) => {
            let at = now.max(turn.last_move()?.saturating_add(1));
            let moves = turn.moves(&wanted, at, now)?;
            let more = moves.iter().map(Move::growth).sum();
            if more > room {
                return Err(CollectionError::NoRoom { more, room });
            }
            revises = !moves.is_empty();
            moves.into_iter().map(Change::Move).collect()
        }
        // Settings that are already in force are waited for until they are durable, like any other
        // change.
        Write::Set(change) => {
            let own = turn.settings();
            let settings = change.apply(own, |settings| turn.live(settings.oldest(now)))?;
            revises = settings != own;
            Vec::from_iter(revises.then_some(Change::Set(settings)))
        }
    };
    change(turn, changes, revises, now)
}

/// Matches items of different names against those of the collection, and adds them; returns how
/// many others left.
pub(super) fn follow(
    turn: &mut dyn Transaction,
    engine: SharedEngine,
    how: &MatchOptions,
    (items, now): (Vec<Item>, i64),
    cancel: Cancellation<'_>,
) -> Result<(Followed, usize), ChooseError> {
    let mut followed = matcher::follow(turn, engine, how, (items, now), cancel)?;
    if how.add == AddPolicy::None {
        return Ok((followed, 0));
    }
    let items = std::mem::take(&mut followed.items).into_iter();
    let applied = change(turn, items.map(Change::put).collect(), false, now)?;
    Ok((followed, applied.left))
}

/// Makes changes, all of them or none, if there is room for them. Expired items are removed before.
pub(super) fn change(
    turn: &mut dyn Transaction,
    mut changes: Vec<Change>,
    revises: bool,
    now: i64,
) -> Result<Applied> {
    let own = turn.settings();
    let oldest = own.oldest(now);
    let (all, live) = (turn.live(None)?, turn.live(oldest)?);
    let put = changes.iter().filter_map(|change| match change {
        Change::Put(item) => Some(&*item.id),
        _ => None,
    });
    let put: Vec<&str> = put.collect();
    if own.max_items.is_none() && !put.is_empty() {
        let known = turn.known(&put)?;
        let fresh = put.iter().zip(known).filter(|(_, is_known)| !is_known);
        let fresh: HashSet<&str> = fresh.map(|(id, _)| *id).collect();
        let (wanted, limit) = (live + fresh.len(), turn.limits().items);
        if !fresh.is_empty() && wanted > limit {
            return Err(CollectionError::TooManyItems { wanted, limit });
        }
    }
    let times: Vec<i64> = changes.iter().filter_map(Change::timed).map(|(_, time)| time).collect();
    let settings = own.with_items(live == 0, times.iter().copied(), now);
    let after = settings.oldest(now);
    // Of several changes of one item the last counts.
    let last: HashMap<&str, i64> = changes.iter().filter_map(Change::timed).collect();
    let expired = last.values().filter(|&&time| after.is_some_and(|oldest| time < oldest)).count();
    // When the last items leave, so does their clock.
    let begins_anew = live == 0 && !times.is_empty();
    if settings != own || begins_anew {
        changes.extend(settings.lag_ms.map(Change::Lag));
    }
    if let Some(oldest) = oldest.filter(|_| live < all) {
        changes.insert(0, Change::Expire(oldest));
    }
    let applied = turn.commit(changes)?;
    // By a clock that begins anew, items that had expired by the earlier clock may be young enough
    // again.
    if revises || begins_anew || applied.replaced + applied.removed > 0 {
        turn.revise();
    }
    // A clock that moved on makes other items expire.
    let oldest = turn.settings().oldest(now);
    let hidden = turn.live(None)?.saturating_sub(turn.live(oldest)?);
    Ok(Applied { expired, left: applied.left + hidden.saturating_sub(expired), ..applied })
}
