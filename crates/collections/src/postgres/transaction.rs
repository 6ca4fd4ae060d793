//! The turn to write to a collection: whoever has the lock of its row, on whatever server.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use postgres::Row;
use postgres::types::{Json, ToSql};

use crate::events::Member;
use crate::outcome::Outcome;
use crate::postgres::condition::Sql;
use crate::postgres::pool::Failed;
use crate::postgres::rows;
use crate::postgres::rows::{COLUMNS, signed, unsigned};
use crate::postgres::session::Session;
use crate::settings::tell_outlived;
use crate::windows::{Following, Numbered, Windows};
use crate::{
    Applied, Budget, CollectionError, EventChange, Item, ItemPatch, ItemSelector, Limits, Patched,
    Settings, SettingsChange,
};

pub(super) const ENTRY: &str = "c.id, c.max_items, c.ttl_ms, c.next, c.revision, c.items, c.lag_ms";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) settings: Settings,
    pub(super) next: i64,
    pub(super) revision: i64,
    /// Number of items, expired ones included.
    pub(super) items: usize,
}

impl Entry {
    /// The first columns of a row are those of [`ENTRY`].
    pub(super) fn of(row: &Row) -> Result<Self, Failed> {
        let max_items: Option<i64> = row.try_get(1)?;
        Ok(Self {
            id: row.try_get(0)?,
            settings: Settings {
                max_items: max_items.map(count),
                ttl_ms: row.try_get(2)?,
                lag_ms: row.try_get(6)?,
            },
            next: row.try_get(3)?,
            revision: row.try_get(4)?,
            items: count(row.try_get(5)?),
        })
    }

    pub(super) fn read(session: &mut Session<'_>, name: &str) -> Result<Self, Failed> {
        Ok(Self::select(session, name, "")?.ok_or(CollectionError::Unknown)?)
    }

    /// Reads the entry with a locking clause, if it is there.
    fn select(
        session: &mut Session<'_>,
        name: &str,
        locking: &str,
    ) -> Result<Option<Self>, Failed> {
        let text = format!("SELECT {ENTRY} FROM cognate.collections c WHERE c.name = $1 {locking}");
        session.query(&text, &[&name])?.first().map(Self::of).transpose()
    }

    /// The table of its items.
    pub(super) fn table(&self) -> String {
        format!("cognate.items_{}", self.id)
    }

    /// The items `i` that a condition with these values admits.
    pub(super) fn read_items(
        &self,
        session: &mut Session<'_>,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Numbered, Failed> {
        let text = format!("SELECT {COLUMNS} FROM {} i WHERE {condition}", self.table());
        rows::items(&session.query(&text, values)?)
    }

    /// Number of items that are not expired.
    pub(super) fn live(&self, session: &mut Session<'_>, now: i64) -> Result<usize, Failed> {
        let Some(oldest) = self.settings.oldest(now) else { return Ok(self.items) };
        let text = format!("SELECT count(*) FROM {} WHERE time < $1", self.table());
        let rows = session.query(&text, &[&oldest])?;
        let old: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(self.items.saturating_sub(count(old)))
    }

    /// When events were merged last, as far as the collection has items of that.
    pub(super) fn last_move(&self, session: &mut Session<'_>) -> Result<i64, Failed> {
        let text = format!("SELECT max(moved_at) FROM {} WHERE moved_at IS NOT NULL", self.table());
        let rows = session.query(&text, &[])?;
        let last: Option<i64> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
        Ok(last.unwrap_or(0).max(0))
    }
}

fn member(row: &Row) -> Result<Member<'_>, Failed> {
    let size: Option<i64> = row.try_get(2)?;
    Ok((row.try_get(0)?, row.try_get(1)?, size.map_or(1, unsigned)))
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The turn to write to a collection, which ends with its transaction.
pub(super) struct WriteTransaction<'s, 'c> {
    session: &'s mut Session<'c>,
    /// The row as it will be written by [`end`](Self::end).
    pub(super) entry: Entry,
    was: Entry,
    windows: &'s Windows,
    budget: &'s Arc<Budget>,
}

impl<'s, 'c> WriteTransaction<'s, 'c> {
    /// The turn of the collection whose row was locked.
    pub(super) fn of(
        session: &'s mut Session<'c>,
        entry: Entry,
        (windows, budget): (&'s Windows, &'s Arc<Budget>),
    ) -> Self {
        Self { session, entry, was: entry, windows, budget }
    }

    /// Waits for the lock of a collection's row.
    pub(super) fn lock(session: &mut Session<'_>, name: &str) -> Result<Entry, Failed> {
        Ok(Entry::select(session, name, "FOR UPDATE")?.ok_or(CollectionError::Unknown)?)
    }

    /// The entry, locked; none if another transaction holds the lock.
    pub(super) fn lock_if_free(
        session: &mut Session<'_>,
        name: &str,
    ) -> Result<Option<Entry>, Failed> {
        Entry::select(session, name, "FOR UPDATE SKIP LOCKED")
    }

    /// Adds items, each in the place of another of its name, if there is room for them.
    pub(super) fn put(
        &mut self,
        items: &[Item],
        limits: &Limits,
        now: i64,
    ) -> Result<Applied, Failed> {
        let names: Vec<&str> = items.iter().map(|item| &*item.id).collect();
        let mut known = self.numbers(&names)?;
        let distinct: HashSet<&str> = names.iter().copied().collect();
        let fresh = distinct.iter().filter(|name| !known.contains_key(**name)).count();
        let (wanted, limit) = (self.entry.live(self.session, now)? + fresh, limits.items);
        if self.entry.settings.max_items.is_none() && fresh > 0 && wanted > limit {
            return Err(CollectionError::TooManyItems { wanted, limit }.into());
        }
        if self.expire(now)? > 0 {
            known = self.numbers(&names)?;
        }
        let begins_anew = self.entry.items == 0 && !items.is_empty();
        let times = items.iter().map(|item| item.time);
        self.entry.settings = self.entry.settings.with_items(begins_anew, times, now);
        let after = self.entry.settings.oldest(now);
        let too_old = items.iter().filter(|item| after.is_some_and(|oldest| item.time < oldest));
        let expired = too_old.count();
        let most = self.entry.settings.max_items;
        let oldest = match most {
            Some(_) => self.oldest(items.len())?,
            None => BTreeSet::new(),
        };
        let outcome = Outcome::of(&names, self.entry.next, (known, oldest), self.entry.items, most);
        self.delete(&outcome.gone)?;
        let stays = outcome.stays.iter().filter_map(|place| {
            let number = self.entry.next + signed(*place as u64);
            items.get(*place).map(|item| (number, item))
        });
        rows::copy(self.session, self.entry.id, stays)?;
        self.entry.next += signed(items.len() as u64);
        self.entry.items = outcome.items;
        // By a clock that begins anew, what left by the one before may be young enough again.
        self.entry.revision += i64::from(begins_anew || outcome.applied.replaced > 0);
        let left = outcome.applied.left + self.hidden(now)?.saturating_sub(expired);
        Ok(Applied { expired, left, ..outcome.applied })
    }

    pub(super) fn patch(
        &mut self,
        patches: &[(Box<str>, ItemPatch)],
        now: i64,
    ) -> Result<Applied, Failed> {
        self.expire(now)?;
        let ids = patches.iter().map(|(id, _)| &**id).filter(|id| !id.contains('\0'));
        let ids: Vec<&str> = ids.collect();
        let there = self.entry.read_items(self.session, "i.id = ANY ($1)", &[&ids])?;
        let there: HashMap<&str, &(u64, Arc<Item>)> =
            there.iter().map(|one| (&*one.1.id, one)).collect();
        let mut patched = Patched::default();
        for (index, (id, patch)) in patches.iter().enumerate() {
            let item = || Some(Arc::clone(&there.get(&**id)?.1));
            let applied = patched.apply(id, patch, item);
            applied.map_err(|problem| CollectionError::Item { index, problem })?;
        }
        let items: Vec<Item> = patched.into_items().collect();
        rows::check(&items)?;
        let table = self.entry.table();
        let text =
            format!("UPDATE {table} SET time = $2, attributes = $3, data = $4 WHERE number = $1");
        let mut is_moved = false;
        for item in &items {
            let Some((number, before)) = there.get(&*item.id) else { continue };
            let (attributes, data) = (Json(&item.attributes), item.data.as_deref().map(Json));
            self.session.execute(&text, &[&signed(*number), &item.time, &attributes, &data])?;
            is_moved |= item.time != before.time;
        }
        let times = items.iter().map(|item| item.time);
        self.entry.settings = self.entry.settings.with_items(false, times.clone(), now);
        self.entry.revision += i64::from(is_moved);
        let after = self.entry.settings.oldest(now);
        let expired = times.filter(|time| after.is_some_and(|oldest| *time < oldest)).count();
        let left = self.hidden(now)?.saturating_sub(expired);
        Ok(Applied { patched: items.len(), expired, left, ..Applied::default() })
    }

    pub(super) fn remove_selected(
        &mut self,
        which: &ItemSelector<'_>,
        now: i64,
    ) -> Result<Applied, Failed> {
        self.expire(now)?;
        let sql = Sql::of(which, self.entry.settings.oldest_within(which.within, now));
        let text = format!("DELETE FROM {} i WHERE {}", self.entry.table(), sql.text);
        let removed = self.session.execute(&text, &sql.values())? as usize;
        Ok(self.removed(removed))
    }

    pub(super) fn remove(&mut self, names: &[&str], now: i64) -> Result<Applied, Failed> {
        self.expire(now)?;
        let text = format!("DELETE FROM {} WHERE id = ANY ($1)", self.entry.table());
        let removed = self.session.execute(&text, &[&names])? as usize;
        Ok(self.removed(removed))
    }

    fn removed(&mut self, removed: usize) -> Applied {
        self.entry.items = self.entry.items.saturating_sub(removed);
        self.entry.revision += i64::from(removed > 0);
        Applied { removed, ..Applied::default() }
    }

    pub(super) fn move_items(&mut self, wanted: &EventChange, now: i64) -> Result<Applied, Failed> {
        self.expire(now)?;
        let events = wanted.events().into_iter().filter(|name| !name.contains('\0'));
        let events: Vec<&str> = events.collect();
        let table = self.entry.table();
        let text = format!(
            "SELECT id, event, event_size FROM {table} WHERE event = ANY ($1) ORDER BY number"
        );
        let rows = self.session.query(&text, &[&events])?;
        let last = self.entry.last_move(self.session)?;
        let members: Vec<Member<'_>> = rows.iter().map(member).collect::<Result<_, _>>()?;
        let moves = wanted.moves(&members, now.max(last.saturating_add(1)))?;
        let ids: Vec<&str> = moves.iter().map(|one| &*one.id).collect();
        let events: Vec<&str> = moves.iter().map(|one| &*one.event).collect();
        let sizes: Vec<i64> = moves.iter().map(|one| signed(one.size)).collect();
        let times: Vec<Option<i64>> = moves.iter().map(|one| one.at).collect();
        // One that stays in its event is counted anew, as `Item::moved` has it.
        let text = format!(
            "UPDATE {table} i SET event = m.event, event_size = m.size, \
             moved_from = CASE WHEN i.event = m.event THEN coalesce(i.moved_from, i.event) ELSE i.event END, \
             moved_at = CASE WHEN i.event = m.event THEN i.moved_at ELSE m.at END \
             FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS m (id, event, size, at) \
             WHERE i.id = m.id"
        );
        self.session.execute(&text, &[&ids, &events, &sizes, &times])?;
        self.entry.revision += i64::from(!moves.is_empty());
        Ok(Applied::default())
    }

    pub(super) fn set(&mut self, change: SettingsChange, now: i64) -> Result<Applied, Failed> {
        self.expire(now)?;
        let (session, entry) = (&mut *self.session, self.entry);
        let count = |settings| Entry { settings, ..entry }.live(session, now);
        let settings = change.apply(entry.settings, count)?;
        if settings == self.entry.settings {
            return Ok(Applied::default());
        }
        self.entry.settings = settings;
        self.entry.revision += 1;
        let most = settings.max_items.unwrap_or(usize::MAX);
        let many = self.entry.items.saturating_sub(most);
        let oldest: Vec<i64> = self.oldest(many)?.into_iter().collect();
        self.delete(&oldest)?;
        self.entry.items -= oldest.len().min(self.entry.items);
        Ok(Applied { left: oldest.len() + self.hidden(now)?, ..Applied::default() })
    }

    /// Number of items that are too old, and were not when the turn began.
    fn hidden(&mut self, now: i64) -> Result<usize, Failed> {
        Ok(self.entry.items - self.entry.live(self.session, now)?.min(self.entry.items))
    }

    /// Removes expired items; returns their number.
    pub(super) fn expire(&mut self, now: i64) -> Result<usize, Failed> {
        let Some(oldest) = self.entry.settings.oldest(now) else { return Ok(0) };
        let text = format!("DELETE FROM {} WHERE time < $1", self.entry.table());
        let gone = self.session.execute(&text, &[&oldest])? as usize;
        tell_outlived(&self.entry.table(), gone, self.entry.items);
        self.entry.items = self.entry.items.saturating_sub(gone);
        Ok(gone)
    }

    pub(super) fn end(self) -> Result<Entry, Failed> {
        let Self { session, mut entry, was, .. } = self;
        if entry.items == 0 {
            entry.settings.lag_ms = None;
        }
        if entry == was {
            return Ok(entry);
        }
        let Settings { max_items, ttl_ms, lag_ms } = entry.settings;
        let (max_items, items) =
            (max_items.map(|most| signed(most as u64)), signed(entry.items as u64));
        session.execute(
            "UPDATE cognate.collections SET max_items = $2, ttl_ms = $3, next = $4, revision = $5, \
             items = $6, lag_ms = $7 WHERE id = $1",
            &[&entry.id, &max_items, &ttl_ms, &entry.next, &entry.revision, &items, &lag_ms],
        )?;
        Ok(entry)
    }

    fn numbers(&mut self, names: &[&str]) -> Result<HashMap<String, i64>, Failed> {
        let text = format!("SELECT id, number FROM {} WHERE id = ANY ($1)", self.entry.table());
        let rows = self.session.query(&text, &[&names])?;
        let each = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        each.collect()
    }

    fn oldest(&mut self, count: usize) -> Result<BTreeSet<i64>, Failed> {
        if count == 0 {
            return Ok(BTreeSet::new());
        }
        let text = format!("SELECT number FROM {} ORDER BY number LIMIT $1", self.entry.table());
        let rows = self.session.query(&text, &[&signed(count as u64)])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn delete(&mut self, numbers: &[i64]) -> Result<(), Failed> {
        if !numbers.is_empty() {
            let text = format!("DELETE FROM {} WHERE number = ANY ($1)", self.entry.table());
            self.session.execute(&text, &[&numbers])?;
        }
        Ok(())
    }

    fn last_of(
        &mut self,
        condition: &str,
        [one, other]: [&(dyn ToSql + Sync); 2],
        most: usize,
    ) -> Result<Numbered, CollectionError> {
        let condition = format!("{condition} ORDER BY i.number DESC LIMIT $3");
        let most = signed(most as u64);
        let mut items = self.entry.read_items(self.session, &condition, &[one, other, &most])?;
        items.reverse();
        Ok(items)
    }
}

impl Following for WriteTransaction<'_, '_> {
    fn settings(&self) -> Settings {
        self.entry.settings
    }

    fn revision(&self) -> u64 {
        unsigned(self.entry.revision)
    }

    fn is_empty(&mut self, now: i64) -> Result<bool, CollectionError> {
        Ok(self.entry.live(self.session, now)? == 0)
    }

    fn next_number(&self) -> u64 {
        unsigned(self.entry.next)
    }

    fn there(&mut self, items: &[Item]) -> Result<HashMap<Box<str>, Arc<Item>>, CollectionError> {
        let names: Vec<&str> = items.iter().map(|item| &*item.id).collect();
        let there = self.entry.read_items(self.session, "i.id = ANY ($1)", &[&names])?;
        Ok(there.into_iter().map(|(_, item)| (item.id.clone(), item)).collect())
    }

    fn last(
        &mut self,
        most: usize,
        except: &HashSet<Box<str>>,
        now: i64,
    ) -> Result<Numbered, CollectionError> {
        let except: Vec<&str> = except.iter().map(|name| &**name).collect();
        let oldest = self.entry.settings.oldest(now).unwrap_or(i64::MIN);
        self.last_of("i.id <> ALL ($1) AND i.time >= $2", [&except, &oldest], most)
    }

    fn since(&mut self, number: u64, most: usize) -> Result<Numbered, CollectionError> {
        self.last_of(
            "i.number >= $1 AND i.number < $2",
            [&signed(number), &self.entry.next.clone()],
            most,
        )
    }

    fn windows(&self) -> &Windows {
        self.windows
    }

    fn budget(&self) -> &Arc<Budget> {
        self.budget
    }
}
