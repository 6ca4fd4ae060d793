//! All collections of a database.

use std::sync::Arc;
use std::time::Duration;

use cognate::engine::Engine;
use parking_lot::Mutex;

use crate::postgres::collection::PostgresCollection;
use crate::postgres::pool::Pool;
use crate::postgres::rows::signed;
use crate::postgres::schema::{MAKING, Ready};
use crate::postgres::shared::Shared;
use crate::postgres::transaction::WriteTransaction;
use crate::postgres::vectors::{IndexKind, Indexed};
use crate::postgres::{schema, vectors};
use crate::{
    Budget, CallCounts, ChooseError, Collection, CollectionError, Home, Limits, Result, Settings,
    SettingsChange, Totals, Write, check_name, transaction,
};

const CONNECTIONS: usize = 16;

#[derive(Debug)]
pub struct PostgresHome {
    shared: Arc<Shared>,
}

impl PostgresHome {
    /// Makes the tables in the database of this URL, if there are none.
    pub fn init(url: &str) -> Result<Ready> {
        schema::init(&Pool::new(url, 1, Duration::from_secs(60))?)
    }

    /// The collections of the database of this URL; `patience` limits each statement.
    pub fn open(url: &str, limits: Limits, patience: Duration) -> Result<Self> {
        let pool = Pool::new(url, CONNECTIONS, patience)?;
        schema::check(&pool)?;
        let shared = Arc::new(Shared {
            pool,
            limits,
            budget: Arc::new(Budget::new(limits.bytes)),
            windows: Mutex::default(),
            counted: Mutex::default(),
        });
        let home = Self { shared };
        home.names()?;
        Ok(home)
    }

    pub fn named(&self, name: &str) -> PostgresCollection {
        PostgresCollection::new(name, Arc::clone(&self.shared))
    }

    /// Makes the vectors of a collection's items and an index of them; `on_made` gets the number
    /// made so far. With `only`, vectors of other models are dropped.
    pub fn index(
        &self,
        name: &str,
        engine: &Engine,
        (index, only): (Option<IndexKind>, bool),
        on_made: &mut dyn FnMut(usize),
    ) -> Result<Indexed, ChooseError> {
        vectors::index(&self.shared, name, engine, (index, only), on_made)
    }

    /// The names of all collections; also counts their items.
    fn names(&self) -> Result<Vec<String>> {
        let all = self.shared.pool.ask(|session| {
            let text = "SELECT name, items, id FROM cognate.collections ORDER BY name";
            let rows = session.query(text, &[])?;
            let each =
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
            each.collect::<Result<Vec<(String, i64, i64)>, _>>()
        })?;
        let items: i64 = all.iter().map(|(_, items, _)| items).sum();
        let counted = (all.len(), usize::try_from(items).unwrap_or(0));
        *self.shared.counted.lock() = counted;
        // Windows of deleted collections are dropped.
        let mut windows = self.shared.windows.lock();
        windows.retain(|id, _| all.iter().any(|(_, _, known)| known == id));
        Ok(all.into_iter().map(|(name, _, _)| name).collect())
    }
}

impl Home for PostgresHome {
    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn calls(&self) -> Option<CallCounts> {
        Some(self.shared.pool.calls())
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>> {
        // An invalid name is in no database, and PostgreSQL may refuse it as a value.
        check_name(name).map_err(|_| CollectionError::Unknown)?;
        Ok(Arc::new(self.named(name)))
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>> {
        let names = self.names()?.into_iter();
        Ok(names.map(|name| Arc::new(self.named(&name)) as Arc<dyn Collection>).collect())
    }

    fn set(
        &self,
        name: &str,
        change: SettingsChange,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool)> {
        check_name(name)?;
        self.shared.limits.check_kept(change)?;
        let settings = change.apply(Settings::default(), |_| Ok::<_, CollectionError>(0))?;
        let most = self.shared.limits.collections;
        let shared = &self.shared;
        let is_new = shared.pool.ask(|session| {
            // Collections are made and deleted one at a time.
            session.run(MAKING)?;
            match WriteTransaction::lock(session, name) {
                Ok(entry) => {
                    shared.change(session, entry, &mut |turn| {
                        transaction::write(turn, Write::Set(change), now)
                    })?;
                    return Ok(false);
                }
                Err(CollectionError::Unknown) => {}
                Err(other) => return Err(other),
            }
            let rows = session.query("SELECT count(*) FROM cognate.collections", &[])?;
            let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            if count >= signed(most as u64) {
                return Err(CollectionError::TooMany { limit: most });
            }
            let max_items = settings.max_items.map(|most| signed(most as u64));
            let rows = session.query(
                "INSERT INTO cognate.collections (name, max_items, ttl_ms) VALUES ($1, $2, $3) \
                 RETURNING id",
                &[&name, &max_items, &settings.ttl_ms],
            )?;
            let id = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            session.run(&schema::items_table(id))?;
            Ok(true)
        })?;
        Ok((self.get(name)?, is_new))
    }

    fn delete(&self, name: &str) -> Result<()> {
        check_name(name).map_err(|_| CollectionError::Unknown)?;
        self.shared.pool.ask(|session| {
            session.run(MAKING)?;
            let id = WriteTransaction::lock(session, name)?.id;
            let text = "DELETE FROM cognate.vectors WHERE collection = $1 RETURNING fingerprint";
            for row in session.query(text, &[&id])? {
                let fingerprint: &str = row.try_get(0)?;
                session.run(&format!("DROP TABLE cognate.vectors_{id}_{fingerprint}"))?;
            }
            session.run(&format!("DROP TABLE cognate.items_{id}"))?;
            session.execute("DELETE FROM cognate.collections WHERE id = $1", &[&id])?;
            Ok(())
        })
    }

    fn totals(&self, _now: i64) -> Totals {
        let (collections, items) = *self.shared.counted.lock();
        Totals { collections, items, bytes: self.shared.budget.used(), behind: None }
    }
}
