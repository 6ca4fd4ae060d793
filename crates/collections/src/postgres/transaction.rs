//! The turn to write to a collection: the holder of the lock on its row, on any server.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use postgres::Row;
use postgres::types::{Json, ToSql};

use crate::events::{Member, Move};
use crate::outcome::Outcome;
use crate::postgres::condition::Sql;
use crate::postgres::rows;
use crate::postgres::rows::{COLUMNS, signed, unsigned};
use crate::postgres::session::Session;
use crate::postgres::shared::Shared;
use crate::transaction::{Change, Transaction};
use crate::windows::{Following, Numbered, Windows};
use crate::{
    Applied, Budget, Cancellation, ChooseError, CollectionError, EventChange, Item, ItemSelector,
    Limits, Result, Settings, transaction,
};

pub(super) const ENTRY: &str = "c.id, c.max_items, c.ttl_ms, c.next, c.revision, c.items, c.lag_ms";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) settings: Settings,
    pub(super) next: i64,
    pub(super) revision: i64,
    pub(super) items: usize,
}

impl Entry {
    pub(super) fn new(row: &Row) -> Result<Self> {
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

    pub(super) fn read(session: &mut Session<'_>, name: &str) -> Result<Self> {
        Self::select(session, name, "")?.ok_or(CollectionError::Unknown)
    }

    fn select(session: &mut Session<'_>, name: &str, locking: &str) -> Result<Option<Self>> {
        let text = format!("SELECT {ENTRY} FROM cognate.collections c WHERE c.name = $1 {locking}");
        session.query(&text, &[&name])?.first().map(Self::new).transpose()
    }

    pub(super) fn table(&self) -> String {
        format!("cognate.items_{}", self.id)
    }

    pub(super) fn read_items(
        &self,
        session: &mut Session<'_>,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Numbered> {
        let text = format!("SELECT {COLUMNS} FROM {} i WHERE {condition}", self.table());
        rows::items(&session.query(&text, values)?)
    }

    pub(super) fn live(&self, session: &mut Session<'_>, oldest: Option<i64>) -> Result<usize> {
        let Some(oldest) = oldest else { return Ok(self.items) };
        let text = format!("SELECT count(*) FROM {} WHERE time < $1", self.table());
        let rows = session.query(&text, &[&oldest])?;
        let old: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(self.items.saturating_sub(count(old)))
    }

    /// Time of the last merge that moved items of the collection.
    pub(super) fn last_move(&self, session: &mut Session<'_>) -> Result<i64> {
        let text = format!("SELECT max(moved_at) FROM {} WHERE moved_at IS NOT NULL", self.table());
        let rows = session.query(&text, &[])?;
        let last: Option<i64> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
        Ok(last.unwrap_or(0).max(0))
    }
}

fn member(row: &Row) -> Result<Member<'_>> {
    let size: Option<i64> = row.try_get(2)?;
    Ok((row.try_get(0)?, row.try_get(1)?, size.map_or(1, unsigned)))
}

/// Those of these names that can exist: no item's name has U+0000, and PostgreSQL refuses it.
pub(super) fn stored<'n>(
    names: impl IntoIterator<Item = &'n str>,
) -> impl Iterator<Item = &'n str> {
    names.into_iter().filter(|name| !name.contains('\0'))
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The turn to write to a collection, which ends with its transaction.
pub(super) struct WriteTransaction<'s, 'c> {
    session: &'s mut Session<'c>,
    /// The row as [`end`](Self::end) will write it.
    pub(super) entry: Entry,
    was: Entry,
    shared: &'s Shared,
    windows: Arc<Windows>,
}

impl<'s, 'c> WriteTransaction<'s, 'c> {
    pub(super) fn new(session: &'s mut Session<'c>, entry: Entry, shared: &'s Shared) -> Self {
        Self { session, entry, was: entry, shared, windows: shared.windows(entry.id) }
    }

    pub(super) fn lock(session: &mut Session<'_>, name: &str) -> Result<Entry> {
        Entry::select(session, name, "FOR UPDATE")?.ok_or(CollectionError::Unknown)
    }

    /// Locks a collection's entry and returns it; `None` if another transaction holds the lock.
    pub(super) fn lock_if_free(session: &mut Session<'_>, name: &str) -> Result<Option<Entry>> {
        Entry::select(session, name, "FOR UPDATE SKIP LOCKED")
    }

    /// Adds items, each replacing an item of the same name.
    fn put(&mut self, items: &[Item]) -> Result<Applied> {
        let names: Vec<&str> = items.iter().map(|item| &*item.id).collect();
        let known = self.numbers(&names)?;
        let most = self.entry.settings.max_items;
        let oldest = match most {
            Some(_) => self.oldest(items.len())?,
            None => BTreeSet::new(),
        };
        let outcome =
            Outcome::new(&names, self.entry.next, (known, oldest), self.entry.items, most);
        if !outcome.gone.is_empty() {
            self.remove("i.number = ANY ($1)", &[&outcome.gone])?;
        }
        let stays = outcome.stays.iter().filter_map(|place| {
            let number = self.entry.next + signed(*place as u64);
            items.get(*place).map(|item| (number, item))
        });
        rows::copy(self.session, self.entry.id, stays)?;
        self.entry.next += signed(items.len() as u64);
        self.entry.items = outcome.items;
        Ok(outcome.applied)
    }

    fn move_items(&mut self, moves: &[Move]) -> Result<()> {
        let ids: Vec<&str> = moves.iter().map(|one| &*one.id).collect();
        let events: Vec<&str> = moves.iter().map(|one| &*one.event).collect();
        let sizes: Vec<i64> = moves.iter().map(|one| signed(one.size)).collect();
        let times: Vec<Option<i64>> = moves.iter().map(|one| one.at).collect();
        // An item that stays in its event is renumbered, as in `Item::moved`.
        let text = format!(
            "UPDATE {} i SET event = m.event, event_size = m.size, \
             moved_from = CASE WHEN i.event = m.event THEN coalesce(i.moved_from, i.event) ELSE i.event END, \
             moved_at = CASE WHEN i.event = m.event THEN i.moved_at ELSE m.at END \
             FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS m (id, event, size, at) \
             WHERE i.id = m.id",
            self.entry.table()
        );
        self.session.execute(&text, &[&ids, &events, &sizes, &times])?;
        Ok(())
    }

    fn remove(&mut self, condition: &str, values: &[&(dyn ToSql + Sync)]) -> Result<usize> {
        let text = format!("DELETE FROM {} i WHERE {condition}", self.entry.table());
        let removed = self.session.execute(&text, values)? as usize;
        self.entry.items = self.entry.items.saturating_sub(removed);
        Ok(removed)
    }

    pub(super) fn end(self) -> Result<Entry> {
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

    fn numbers(&mut self, names: &[&str]) -> Result<HashMap<String, i64>> {
        let names: Vec<&str> = stored(names.iter().copied()).collect();
        let text = format!("SELECT id, number FROM {} WHERE id = ANY ($1)", self.entry.table());
        let rows = self.session.query(&text, &[&names])?;
        let each = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        each.collect()
    }

    fn oldest(&mut self, count: usize) -> Result<BTreeSet<i64>> {
        if count == 0 {
            return Ok(BTreeSet::new());
        }
        let text = format!("SELECT number FROM {} ORDER BY number LIMIT $1", self.entry.table());
        let rows = self.session.query(&text, &[&signed(count as u64)])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn last_of(&mut self, mut sql: Sql, most: usize) -> Result<Numbered> {
        sql.text.push_str(" ORDER BY i.number DESC LIMIT ");
        sql.value(signed(most as u64));
        let mut items = self.entry.read_items(self.session, &sql.text, &sql.values())?;
        items.reverse();
        Ok(items)
    }
}

impl Shared {
    /// Makes a change to a collection whose row is locked, and writes the row.
    pub(super) fn change<T>(
        &self,
        session: &mut Session<'_>,
        entry: Entry,
        change: &mut impl FnMut(&mut WriteTransaction<'_, '_>) -> Result<T>,
    ) -> Result<(T, Entry)> {
        let mut turn = WriteTransaction::new(session, entry, self);
        let changed = change(&mut turn)?;
        Ok((changed, turn.end()?))
    }
}

impl Transaction for WriteTransaction<'_, '_> {
    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn check(&self, items: &[Item]) -> Result<()> {
        rows::check(items)
    }

    fn known(&mut self, ids: &[&str]) -> Result<Vec<bool>> {
        let known = self.numbers(ids)?;
        Ok(ids.iter().map(|id| known.contains_key(*id)).collect())
    }

    fn remove_selected(&mut self, which: &ItemSelector<'_>, now: i64) -> Result<Applied> {
        transaction::change(self, Vec::new(), false, now)?;
        let sql = Sql::new(which, self.entry.settings.oldest_within(which.within, now));
        let removed = self.remove(&sql.text, &sql.values())?;
        self.entry.revision += i64::from(removed > 0);
        Ok(Applied { removed, ..Applied::default() })
    }

    fn last_move(&mut self) -> Result<i64> {
        self.entry.last_move(self.session)
    }

    fn moves(&mut self, wanted: &EventChange, at: i64, now: i64) -> Result<Vec<Move>> {
        let events: Vec<&str> = stored(wanted.events()).collect();
        let oldest = self.entry.settings.oldest(now).unwrap_or(i64::MIN);
        let text = format!(
            "SELECT id, event, event_size FROM {} WHERE event = ANY ($1) AND time >= $2 \
             ORDER BY number",
            self.entry.table()
        );
        let rows = self.session.query(&text, &[&events, &oldest])?;
        wanted.moves(&rows.iter().map(member).collect::<Result<Vec<_>, _>>()?, at)
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<Applied> {
        let mut applied = Applied::default();
        let (mut items, mut ids, mut moves) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            match change {
                Change::Format(_) => {}
                Change::Put(item) => items.push(*item),
                Change::Remove(id) => ids.push(id),
                Change::Move(to) => moves.push(to),
                Change::Patch { id, time, attributes, data } => {
                    let table = self.entry.table();
                    let text = format!(
                        "UPDATE {table} SET time = $2, attributes = $3, data = $4 WHERE id = $1"
                    );
                    let (attributes, data) = (Json(&attributes), data.as_deref().map(Json));
                    self.session.execute(&text, &[&&*id, &time, &attributes, &data])?;
                    applied.patched += 1;
                }
                Change::Set(settings) => {
                    self.entry.settings = settings;
                    let most = settings.max_items.unwrap_or(usize::MAX);
                    let many = self.entry.items.saturating_sub(most);
                    let oldest = format!(
                        "i.number IN (SELECT number FROM {} ORDER BY number LIMIT $1)",
                        self.entry.table()
                    );
                    applied.left += self.remove(&oldest, &[&signed(many as u64)])?;
                }
                Change::Expire(oldest) => _ = self.remove("i.time < $1", &[&oldest])?,
                Change::Lag(lag) => self.entry.settings.lag_ms = Some(lag),
            }
        }
        if !items.is_empty() {
            applied = applied.and(self.put(&items)?);
        }
        if !ids.is_empty() {
            let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
            applied.removed += self.remove("i.id = ANY ($1)", &[&ids])?;
        }
        if !moves.is_empty() {
            self.move_items(&moves)?;
        }
        Ok(applied)
    }

    fn revise(&mut self) {
        self.entry.revision += 1;
    }
}

impl Following for WriteTransaction<'_, '_> {
    fn settings(&self) -> Settings {
        self.entry.settings
    }

    fn revision(&self) -> u64 {
        unsigned(self.entry.revision)
    }

    fn live(&mut self, oldest: Option<i64>) -> Result<usize> {
        self.entry.live(self.session, oldest)
    }

    fn next_number(&self) -> u64 {
        unsigned(self.entry.next)
    }

    fn there(&mut self, ids: &[&str]) -> Result<HashMap<Box<str>, Arc<Item>>> {
        let ids: Vec<&str> = stored(ids.iter().copied()).collect();
        let there = self.entry.read_items(self.session, "i.id = ANY ($1)", &[&ids])?;
        Ok(there.into_iter().map(|(_, item)| (item.id.clone(), item)).collect())
    }

    fn last(
        &mut self,
        most: usize,
        which: &ItemSelector<'_>,
        (before, now): (Option<u64>, i64),
        _: Cancellation<'_>,
    ) -> Result<Numbered, ChooseError> {
        let mut sql = Sql::new(which, self.entry.settings.oldest_within(which.within, now));
        sql.text.push_str(" AND i.number < ");
        sql.value(before.map_or(self.entry.next, signed));
        Ok(self.last_of(sql, most)?)
    }

    fn since(&mut self, number: u64, most: usize) -> Result<Numbered> {
        let mut sql = Sql::new(&ItemSelector::default(), None);
        sql.text.push_str(" AND i.number < ");
        sql.value(self.entry.next);
        sql.text.push_str(" AND i.number >= ");
        sql.value(signed(number));
        self.last_of(sql, most)
    }

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }
}
