//! A collection in a database, as every home has them.

use std::collections::BTreeSet;
use std::sync::Arc;

use cognate::window::stream::AddPolicy;

use crate::alerts::PIECE;
use crate::postgres::condition::Sql;
use crate::postgres::pool::Failed;
use crate::postgres::rows;
use crate::postgres::rows::signed;
use crate::postgres::session::Session;
use crate::postgres::shared::Shared;
use crate::postgres::transaction::{Entry, WriteTransaction};
use crate::postgres::vectors;
use crate::{
    Added, Applied, Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError,
    CollectionInfo, Item, ItemSelector, Limits, MatchError, MatchOptions, Matched, Merged, Page,
    Pending, SharedEngine, Write, matcher,
};

/// Most items that are sent here to be ranked.
const MOST_CHOSEN: usize = 200_000;

#[derive(Debug)]
pub struct PostgresCollection {
    name: Box<str>,
    shared: Arc<Shared>,
}

impl PostgresCollection {
    pub(super) fn new(name: &str, shared: Arc<Shared>) -> Self {
        Self { name: name.into(), shared }
    }

    /// Asks in one transaction, by the row of the collection and the time before which items are expired.
    fn ask<T>(
        &self,
        now: i64,
        mut question: impl FnMut(&mut Session<'_>, Entry, i64) -> Result<T, Failed>,
    ) -> Result<T, CollectionError> {
        self.shared.pool.ask(|session| {
            let entry = Entry::read(session, &self.name)?;
            question(session, entry, entry.settings.oldest(now).unwrap_or(i64::MIN))
        })
    }

    /// Changes in one transaction, which has the lock of the collection's row.
    fn change<T>(
        &self,
        mut change: impl FnMut(&mut WriteTransaction<'_, '_>) -> Result<T, Failed>,
    ) -> Result<(T, Entry), CollectionError> {
        self.shared.pool.ask(|session| {
            let entry = WriteTransaction::lock(session, &self.name)?;
            self.shared.change(session, entry, &mut change)
        })
    }
}

impl Collection for PostgresCollection {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn told(&self, now: i64) -> Result<CollectionInfo, CollectionError> {
        self.ask(now, |session, entry, _| {
            let items = entry.live(session, now)?;
            let text = format!("SELECT pg_total_relation_size('{}')", entry.table());
            let rows = session.query(&text, &[])?;
            let bytes: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            Ok(CollectionInfo {
                name: self.name.to_string(),
                settings: entry.settings,
                items,
                bytes: usize::try_from(bytes).unwrap_or(0),
                durable: true,
                log_bytes: None,
            })
        })
    }

    fn numbered(
        &self,
        ids: &[&str],
        now: i64,
    ) -> Result<Vec<Option<(u64, Arc<Item>)>>, CollectionError> {
        // No item has an id with this character, and PostgreSQL refuses it as a value.
        let asked: Vec<&str> = ids.iter().copied().filter(|id| !id.contains('\0')).collect();
        let found = self.ask(now, |session, entry, oldest| {
            entry.read_items(session, "i.id = ANY ($1) AND i.time >= $2", &[&asked, &oldest])
        })?;
        let of = |id: &&str| found.iter().find(|(_, item)| &*item.id == *id).cloned();
        Ok(ids.iter().map(of).collect())
    }

    fn page(
        &self,
        which: &ItemSelector<'_>,
        Page { offset, limit }: Page,
        now: i64,
        _cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        // PostgreSQL cancels statements that exceed the deadline.
        let page = self.ask(now, |session, entry, _| {
            let mut sql = Sql::of(which, entry.settings.oldest_within(which.within, now));
            let text = format!("SELECT count(*) FROM {} i WHERE {}", entry.table(), sql.text);
            let rows = session.query(&text, &sql.values())?;
            let total: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            sql.text.push_str(" ORDER BY i.number LIMIT ");
            sql.value(signed(limit as u64));
            sql.text.push_str(" OFFSET ");
            sql.value(signed(offset as u64));
            let items = entry.read_items(session, &sql.text, &sql.values())?;
            let items = items.into_iter().map(|(_, item)| item).collect();
            Ok((items, usize::try_from(total).unwrap_or(0)))
        });
        Ok(page?)
    }

    fn choose(
        &self,
        which: &ItemSelector<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        if let Choice::Shortlist(shortlist) | Choice::Fused(shortlist, _) = choice {
            let found =
                vectors::nearest((&self.shared, &self.name), which, shortlist, now, cancel)?;
            return Ok(Chosen::all(found));
        }
        let items = self.ask(now, |session, entry, _| {
            let mut sql = Sql::of(which, entry.settings.oldest_within(which.within, now));
            sql.text.push_str(" ORDER BY i.number LIMIT ");
            sql.value(signed(MOST_CHOSEN as u64 + 1));
            let items = entry.read_items(session, &sql.text, &sql.values())?;
            match items.len() > MOST_CHOSEN {
                true => Err(CollectionError::TooManyChosen { limit: MOST_CHOSEN }.into()),
                false => Ok(items),
            }
        });
        Ok(Chosen::all(items?))
    }

    fn lacking<'n>(
        &self,
        names: &BTreeSet<&'n str>,
        now: i64,
        _cancel: Cancellation<'_>,
    ) -> Result<Vec<&'n str>, ChooseError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let lacking = self.ask(now, |session, entry, oldest| {
            let table = format!("{} i WHERE i.time >= $1", entry.table());
            let text = format!("SELECT FROM {table} LIMIT 1");
            if session.query(&text, &[&oldest])?.is_empty() {
                return Ok(Vec::new());
            }
            let text = format!("SELECT FROM {table} AND i.attributes ? $2 LIMIT 1");
            let mut lacking = Vec::new();
            for name in names {
                if name.contains('\0') || session.query(&text, &[&oldest, name])?.is_empty() {
                    lacking.push(*name);
                }
            }
            Ok(lacking)
        });
        Ok(lacking?)
    }

    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added, CollectionError> {
        self.ask(now, |session, entry, oldest| {
            // Another of this name was made in its place, whose numbers begin anew.
            if from.is_some_and(|from| signed(from) > entry.next) {
                return Err(CollectionError::Unknown.into());
            }
            let (order, most) = if from.is_some() { ("ASC", most) } else { ("DESC", 1) };
            let (from, most) = (signed(from.unwrap_or(0)), signed(most as u64));
            let condition =
                format!("i.number >= $1 AND i.time >= $2 ORDER BY i.number {order} LIMIT $3");
            let items = entry.read_items(session, &condition, &[&from, &oldest, &most])?;
            Ok(Added { items, last_move: entry.last_move(session)? })
        })
    }

    fn merges(
        &self,
        after: i64,
        now: i64,
        _: Cancellation<'_>,
    ) -> Result<Vec<Merged>, ChooseError> {
        let merges = self.ask(now, |session, entry, oldest| {
            let table = entry.table();
            let text = format!(
                "SELECT m.moved_at, m.event, array_agg(DISTINCT m.moved_from), \
                 (SELECT count(*) FROM {table} i WHERE i.event = m.event AND i.time >= $2) \
                 FROM {table} m WHERE m.moved_at > $1 AND m.time >= $2 \
                 AND m.moved_from IS NOT NULL AND m.event IS NOT NULL \
                 GROUP BY m.moved_at, m.event ORDER BY m.moved_at, m.event LIMIT {PIECE}"
            );
            let rows = session.query(&text, &[&after, &oldest])?;
            let merged = |row: &postgres::Row| {
                let from: Vec<String> = row.try_get(2)?;
                Ok(Merged {
                    at: row.try_get(0)?,
                    event: row.try_get::<_, &str>(1)?.into(),
                    from: from.into_iter().map(Box::from).collect(),
                    size: rows::unsigned(row.try_get(3)?),
                })
            };
            rows.iter().map(merged).collect()
        });
        Ok(merges?)
    }

    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError> {
        let limits = &self.shared.limits;
        if let Write::Put(items) = &wanted {
            limits.check(items)?;
            rows::check(items)?;
        }
        let (applied, _) = self.change(|turn| match &wanted {
            Write::Put(items) => turn.put(items, limits, now),
            Write::Remove(names) => {
                let names = names.iter().map(|name| &**name);
                turn.remove(&names.filter(|name| !name.contains('\0')).collect::<Vec<_>>(), now)
            }
            Write::Patch { id, patch } => turn.patch(id, patch, now),
            Write::RemoveSelected(which) => turn.remove_selected(which, now),
            Write::Move(wanted) => turn.move_items(wanted, now),
            Write::Set(settings) => turn.set(*settings, now),
        })?;
        Ok((applied, Pending::default()))
    }

    /// A committed transaction is durable.
    fn wait_durable(&self, _: Pending) -> Result<(), CollectionError> {
        Ok(())
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        let limits = &self.shared.limits;
        matcher::check(&items, limits)?;
        rows::check(&items)?;
        let (followed, entry) = self.change(|turn| {
            let asked = (items.clone(), now);
            match matcher::follow(turn, engine.clone(), how, asked, cancel) {
                Ok(followed) => {
                    if how.add != AddPolicy::None {
                        turn.put(&followed.items, limits, now)?;
                    }
                    Ok(Ok(followed))
                }
                Err(MatchError::Collection(error)) => Err(error.into()),
                Err(error) => Ok(Err(error)),
            }
        })?;
        // Only after the commit does the collection hold the items of the window.
        let state = (rows::unsigned(entry.revision), rows::unsigned(entry.next));
        Ok((followed?.written(state, &self.shared.windows(entry.id)), Pending::default()))
    }

    fn expire(&self, now: i64) -> Result<Option<Pending>, CollectionError> {
        self.ask(now, |session, entry, _| {
            if entry.live(session, now)? == entry.items {
                return Ok(());
            }
            // If another server holds the lock, that server removes expired items.
            if let Some(entry) = WriteTransaction::lock_if_free(session, &self.name)? {
                self.shared.change(session, entry, &mut |turn| turn.expire(now))?;
            }
            Ok(())
        })?;
        Ok(Some(Pending::default()))
    }

    /// The database looks after its files.
    fn compact_log(&self) -> Result<(), CollectionError> {
        Ok(())
    }
}
