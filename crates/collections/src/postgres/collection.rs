//! A collection in a database.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::alerts::PIECE;
use crate::facets::check_different;
use crate::matcher::Explaining;
use crate::postgres::condition::Sql;
use crate::postgres::rows::signed;
use crate::postgres::session::Session;
use crate::postgres::shared::Shared;
use crate::postgres::transaction::{Entry, WriteTransaction, stored};
use crate::postgres::{condition, facets, rows, vectors};
use crate::{
    Added, Applied, AskedAttribute, Cancellation, Choice, ChooseError, Chosen, Collection,
    CollectionError, CollectionInfo, EventChange, Facets, Item, ItemSelector, Limits, MatchOptions,
    Matched, Merged, Page, Pending, Result, SharedEngine, Write, matcher, transaction,
};

/// Most items that are fetched to be ranked.
const MAX_CHOSEN: usize = 200_000;

#[derive(Debug)]
pub struct PostgresCollection {
    name: Box<str>,
    shared: Arc<Shared>,
}

impl PostgresCollection {
    pub(super) fn new(name: &str, shared: Arc<Shared>) -> Self {
        Self { name: name.into(), shared }
    }

    /// Reads in one transaction, with the collection's row and the time before which items are
    /// expired.
    fn ask<T>(
        &self,
        now: i64,
        mut question: impl FnMut(&mut Session<'_>, Entry, i64) -> Result<T>,
    ) -> Result<T> {
        self.shared.pool.ask(|session| {
            let entry = Entry::read(session, &self.name)?;
            question(session, entry, entry.settings.oldest(now).unwrap_or(i64::MIN))
        })
    }

    /// Writes in one transaction, which locks the collection's row.
    fn change<T>(
        &self,
        mut change: impl FnMut(&mut WriteTransaction<'_, '_>) -> Result<T>,
    ) -> Result<(T, Entry)> {
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

    fn told(&self, now: i64) -> Result<CollectionInfo> {
        self.ask(now, |session, entry, _| {
            let items = entry.live(session, entry.settings.oldest(now))?;
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

    fn numbered(&self, ids: &[&str], now: i64) -> Result<Vec<Option<(u64, Arc<Item>)>>> {
        let asked: Vec<&str> = stored(ids.iter().copied()).collect();
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
            let mut sql = Sql::new(which, entry.settings.oldest_within(which.within, now));
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
            return Ok(Chosen::complete(found));
        }
        let items = self.ask(now, |session, entry, _| {
            let mut sql = Sql::new(which, entry.settings.oldest_within(which.within, now));
            sql.text.push_str(" ORDER BY i.number LIMIT ");
            sql.value(signed(MAX_CHOSEN as u64 + 1));
            let items = entry.read_items(session, &sql.text, &sql.values())?;
            match items.len() > MAX_CHOSEN {
                true => Err(CollectionError::TooManyChosen { limit: MAX_CHOSEN }),
                false => Ok(items),
            }
        });
        Ok(Chosen::complete(items?))
    }

    fn lacking<'n>(
        &self,
        names: &BTreeSet<AskedAttribute<'n>>,
        now: i64,
        _cancel: Cancellation<'_>,
    ) -> Result<Vec<AskedAttribute<'n>>, ChooseError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let lacking = self.ask(now, |session, entry, oldest| {
            let table = format!("{} i WHERE i.time >= $1", entry.table());
            let text = format!("SELECT FROM {table} LIMIT 1");
            if session.query(&text, &[&oldest])?.is_empty() {
                return Ok(Vec::new());
            }
            let mut lacking = Vec::new();
            for (name, kind) in names {
                let of_kind = kind.map_or_else(String::new, |kind| {
                    format!(" AND jsonb_typeof(i.attributes -> $2) = '{}'", condition::kind(kind))
                });
                let text = format!("SELECT FROM {table} AND i.attributes ? $2{of_kind} LIMIT 1");
                let is_gone = kind.is_some() && lacking.contains(&(*name, None));
                if is_gone
                    || name.contains('\0')
                    || session.query(&text, &[&oldest, name])?.is_empty()
                {
                    lacking.push((*name, *kind));
                }
            }
            Ok(lacking)
        });
        Ok(lacking?)
    }

    fn count_of(
        &self,
        change: &EventChange,
        now: i64,
        _cancel: Cancellation<'_>,
    ) -> Result<usize, ChooseError> {
        let events: Vec<&str> = stored(change.events()).collect();
        let count = self.ask(now, |session, entry, oldest| {
            let text = format!(
                "SELECT count(*) FROM {} WHERE event = ANY ($1) AND time >= $2",
                entry.table()
            );
            let rows = session.query(&text, &[&events, &oldest])?;
            let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        });
        Ok(count?)
    }

    fn facets(
        &self,
        which: &ItemSelector<'_>,
        (names, most): (&[&str], usize),
        now: i64,
        _cancel: Cancellation<'_>,
    ) -> Result<Facets, ChooseError> {
        let facets = self.ask(now, |session, entry, _| {
            let sql = || Sql::new(which, entry.settings.oldest_within(which.within, now));
            let (table, all) = (entry.table(), sql());
            let text = format!("SELECT count(*) FROM {table} i WHERE {}", all.text);
            let rows = session.query(&text, &all.values())?;
            let total: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            let (mut each, mut different) = (Vec::new(), 0);
            for &name in names {
                let facet = facets::facet(session, &table, sql(), (name, most))?;
                different += facet.distinct;
                check_different(different)?;
                each.push(facet);
            }
            Ok(Facets { total: rows::unsigned(total) as usize, each })
        });
        Ok(facets?)
    }

    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added> {
        self.ask(now, |session, entry, oldest| {
            // Another collection of this name replaced it, whose numbers begin anew.
            if from.is_some_and(|from| signed(from) > entry.next) {
                return Err(CollectionError::Unknown);
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

    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending)> {
        let (applied, _) = self.change(|turn| transaction::write(turn, wanted.clone(), now))?;
        Ok((applied, Pending::default()))
    }

    /// A committed transaction is durable.
    fn wait_durable(&self, _: Pending) -> Result<()> {
        Ok(())
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        items: Vec<Item>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), ChooseError> {
        matcher::check(&items, how, &self.shared.limits)?;
        rows::check(&items)?;
        let (followed, entry) = self.change(|turn| {
            let asked = (items.clone(), now);
            match transaction::follow(turn, engine.clone(), how, asked, cancel) {
                Err(ChooseError::Collection(error)) => Err(error),
                followed => Ok(followed),
            }
        })?;
        let state = (rows::unsigned(entry.revision), rows::unsigned(entry.next));
        let (followed, left) = followed?;
        let matched = followed.written(state, &self.shared.windows(entry.id), left);
        Ok((matched, Pending::default()))
    }

    fn explain(
        &self,
        engine: SharedEngine,
        how: &MatchOptions,
        id: &str,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Option<Matched>, ChooseError> {
        let Some(item) = self.numbered(&[id], now)?.pop().flatten() else { return Ok(None) };
        let asked = self.ask(now, |session, entry, _| {
            let mut turn = WriteTransaction::new(session, entry, &self.shared);
            match Explaining::read(&mut turn, engine.clone(), how, (item.clone(), now), cancel) {
                Err(ChooseError::Collection(error)) => Err(error),
                asked => Ok(asked),
            }
        })?;
        asked?.tell(cancel).map(Some)
    }

    fn expire(&self, now: i64) -> Result<Option<Pending>> {
        self.ask(now, |session, entry, oldest| {
            if entry.live(session, Some(oldest))? == entry.items {
                return Ok(());
            }
            // If another server holds the lock, that server removes expired items.
            if let Some(entry) = WriteTransaction::lock_if_free(session, &self.name)? {
                self.shared.change(session, entry, &mut |turn| {
                    transaction::change(turn, Vec::new(), false, now)
                })?;
            }
            Ok(())
        })?;
        Ok(Some(Pending::default()))
    }

    fn compact_log(&self) -> Result<()> {
        Ok(())
    }
}
