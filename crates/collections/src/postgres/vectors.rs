//! Vectors of items in the database, a table for each model: made when a question first needs a
//! shortlist, searched by pgvector, exactly or by an index.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use cognate::engine::{Engine, Query, QueryError};
use pgvector::HalfVector;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;

use crate::postgres::condition::Sql;
use crate::postgres::rows;
use crate::postgres::rows::{COLUMNS, signed};
use crate::postgres::schema::MAKING;
use crate::postgres::session::Session;
use crate::postgres::shared::Shared;
use crate::postgres::transaction::{ENTRY, Entry};
use crate::{
    Cancellation, ChooseError, CollectionError, Item, ItemSelector, Result, SHORTLIST_METHOD,
    TopQuery,
};

/// Items whose vectors are made in one transaction.
const PIECE: usize = 1000;
/// The index continues its search while fewer items than wanted are admitted. Without an index
/// these have no effect.
const SEARCH: &str = "SET LOCAL hnsw.iterative_scan = relaxed_order;
     SET LOCAL ivfflat.iterative_scan = relaxed_order; SET LOCAL ivfflat.probes = 20;";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    Hnsw,
    IvfFlat,
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hnsw => "hnsw",
            Self::IvfFlat => "ivfflat",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indexed {
    pub made: usize,
    pub dropped: usize,
}

struct Table {
    entry: Entry,
    /// All items with lower numbers have vectors.
    upto: i64,
    name: String,
}

impl Table {
    fn find(
        session: &mut Session<'_>,
        collection: &str,
        (fingerprint, dims): (&str, usize),
    ) -> Result<Self> {
        if let Some(known) = Self::look(session, collection, fingerprint)? {
            return Ok(known);
        }
        session.run(MAKING)?;
        if let Some(known) = Self::look(session, collection, fingerprint)? {
            return Ok(known);
        }
        let id = Entry::read(session, collection)?.id;
        session.run(&format!(
            "CREATE TABLE cognate.vectors_{id}_{fingerprint} (
                 number bigint PRIMARY KEY REFERENCES cognate.items_{id} ON DELETE CASCADE,
                 vector halfvec({dims}))"
        ))?;
        session.execute(
            "INSERT INTO cognate.vectors VALUES ($1, $2, $3)",
            &[&id, &fingerprint, &i32::try_from(dims).unwrap_or(i32::MAX)],
        )?;
        let made = Self::look(session, collection, fingerprint)?;
        made.ok_or(CollectionError::Unknown)
    }

    fn look(
        session: &mut Session<'_>,
        collection: &str,
        fingerprint: &str,
    ) -> Result<Option<Self>> {
        let text = format!(
            "SELECT {ENTRY}, v.upto FROM cognate.collections c \
             JOIN cognate.vectors v ON v.collection = c.id WHERE c.name = $1 AND v.fingerprint = $2"
        );
        let rows = session.query(&text, &[&collection, &fingerprint])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let entry = Entry::new(row)?;
        let name = format!("cognate.vectors_{}_{fingerprint}", entry.id);
        Ok(Some(Self { entry, upto: row.try_get("upto")?, name }))
    }

    fn is_whole(&self) -> bool {
        self.upto >= self.entry.next
    }

    fn nearest(
        &self,
        session: &mut Session<'_>,
        which: &ItemSelector<'_>,
        (asked, length): (&[Option<HalfVector>], usize),
        now: i64,
    ) -> Result<Vec<(u64, Arc<Item>)>> {
        session.run(&format!("{SEARCH} SET LOCAL hnsw.ef_search = {}", length.clamp(40, 1000)))?;
        let mut found = BTreeMap::new();
        for vector in asked.iter().flatten() {
            let mut sql = Sql::new(which, self.entry.settings.oldest_within(which.within, now));
            sql.text.push_str(" AND v.vector IS NOT NULL ORDER BY v.vector <=> ");
            sql.value(vector.clone());
            // A parameter would hide the limit from the query planner.
            let _ = write!(sql.text, " LIMIT {length}");
            let text = format!(
                "SELECT {COLUMNS} FROM {} v JOIN cognate.items_{} i USING (number) WHERE {}",
                self.name, self.entry.id, sql.text
            );
            found.extend(rows::items(&session.query(&text, &sql.values())?)?);
        }
        Ok(found.into_iter().collect())
    }
}

fn kind_of(engine: &Engine) -> Result<(&str, usize), QueryError> {
    Ok((engine.model().fingerprint(), engine.embedding_dims(SHORTLIST_METHOD)?))
}

/// Vectors of length 1 by the method of shortlists, as 16-bit floats.
fn embedded(engine: &Engine, texts: &[&str]) -> Result<Vec<Option<HalfVector>>, QueryError> {
    let made = engine.embed(texts, &Query::new(SHORTLIST_METHOD))?;
    let unit = |vector: &[f32]| {
        let norm = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
        let numbers = vector.iter().map(|number| (f64::from(*number) / norm) as f32);
        (norm > 0.0).then(|| HalfVector::from_f32_slice(&numbers.collect::<Vec<f32>>()))
    };
    Ok(made.iter().map(|vector| vector.and_then(unit)).collect())
}

/// Makes the vectors of the next items that have none; returns how many, `None` if none are left.
fn fill(shared: &Shared, name: &str, engine: &Engine) -> Result<Option<usize>, ChooseError> {
    let kind = kind_of(engine)?;
    let filled = shared.pool.ask(|session| {
        let table = Table::find(session, name, kind)?;
        let lock = "SELECT upto FROM cognate.vectors WHERE collection = $1 AND fingerprint = $2 \
                    FOR UPDATE";
        let rows = session.query(lock, &[&table.entry.id, &kind.0])?;
        let upto: i64 = rows.first().ok_or(CollectionError::Unknown)?.try_get(0)?;
        // Numbers below that of the next item belong to items that exist or are gone for good.
        let next = Entry::read(session, name)?.next;
        if upto >= next {
            return Ok(Ok(None));
        }
        let text = format!(
            "SELECT number, text FROM cognate.items_{} WHERE number >= $1 AND number < $2 \
             ORDER BY number LIMIT $3 FOR KEY SHARE",
            table.entry.id
        );
        let rows = session.query(&text, &[&upto, &next, &signed(PIECE as u64)])?;
        let texts = rows.iter().map(|row| row.try_get(1)).collect::<Result<Vec<&str>, _>>()?;
        let vectors = match embedded(engine, &texts) {
            Ok(vectors) => vectors,
            Err(error) => return Ok(Err(error)),
        };
        let of_halfvec = session.prepare("SELECT $1::halfvec")?;
        let types = [Type::INT8, of_halfvec.params().first().cloned().unwrap_or(Type::UNKNOWN)];
        let text = format!("COPY {} (number, vector) FROM STDIN BINARY", table.name);
        let mut writer =
            BinaryCopyInWriter::new(session.transaction.copy_in(text.as_str())?, &types);
        let mut upto = next;
        for (row, vector) in rows.iter().zip(&vectors) {
            let number: i64 = row.try_get(0)?;
            writer.write(&[&number, vector])?;
            upto = number + 1;
        }
        writer.finish()?;
        let upto = if rows.len() < PIECE { next } else { upto };
        let text =
            "UPDATE cognate.vectors SET upto = $3 WHERE collection = $1 AND fingerprint = $2";
        session.execute(text, &[&table.entry.id, &kind.0, &upto])?;
        Ok(Ok(Some(rows.len())))
    })?;
    Ok(filled?)
}

/// The items of a shortlist, in the order in which they were added.
pub(super) fn nearest(
    (shared, name): (&Shared, &str),
    which: &ItemSelector<'_>,
    shortlist: &TopQuery<'_>,
    now: i64,
    cancel: Cancellation<'_>,
) -> Result<Vec<(u64, Arc<Item>)>, ChooseError> {
    let kind = kind_of(shortlist.engine)?;
    let targets = shortlist.targets()?;
    let asked: Vec<_> =
        targets.iter().map(|(row, _)| Some(HalfVector::from_f32_slice(row))).collect();
    loop {
        let found = shared.pool.ask(|session| {
            let table = Table::find(session, name, kind)?;
            match table.is_whole() {
                true => Ok(Some(table.nearest(session, which, (&asked, shortlist.length), now)?)),
                false => Ok(None),
            }
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        cancel.check()?;
        fill(shared, name, shortlist.engine)?;
    }
}

/// Makes the vectors of a collection's items and an index of them; `on_made` gets the number made
/// so far. With `only`, vectors of other models are dropped.
pub(super) fn index(
    shared: &Shared,
    name: &str,
    engine: &Engine,
    (index, only): (Option<IndexKind>, bool),
    on_made: &mut dyn FnMut(usize),
) -> Result<Indexed, ChooseError> {
    let kind = kind_of(engine)?;
    let mut made = 0;
    while let Some(more) = fill(shared, name, engine)? {
        made += more;
        on_made(made);
    }
    let pool = &shared.pool;
    let (table, others) = pool.ask(|session| {
        let table = Table::find(session, name, kind)?;
        let text = "SELECT fingerprint FROM cognate.vectors \
                    WHERE collection = $1 AND fingerprint <> $2";
        let rows = session.query(text, &[&table.entry.id, &kind.0])?;
        let others = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
        Ok((table, others))
    })?;
    if let Some(index) = index {
        // An index left unfinished by an earlier attempt, or of the other kind, is dropped first.
        let plain = table.name.trim_start_matches("cognate.");
        let lists = (table.entry.items / 1000).clamp(10, 30_000);
        let with = match index {
            IndexKind::Hnsw => String::new(),
            IndexKind::IvfFlat => format!(" WITH (lists = {lists})"),
        };
        pool.run_alone(&[
            &format!("DROP INDEX CONCURRENTLY IF EXISTS cognate.{plain}_nearest"),
            &format!(
                "CREATE INDEX CONCURRENTLY {plain}_nearest ON {} USING {index} \
                 (vector halfvec_cosine_ops){with}",
                table.name
            ),
            &format!("ANALYZE {}", table.name),
        ])?;
    }
    let dropped = if only { others.len() } else { 0 };
    for fingerprint in others.iter().take(dropped) {
        pool.ask(|session| {
            session.run(MAKING)?;
            let (id, text) = (
                table.entry.id,
                "DELETE FROM cognate.vectors WHERE collection = $1 AND fingerprint = $2",
            );
            session.execute(text, &[&id, fingerprint])?;
            session.run(&format!("DROP TABLE IF EXISTS cognate.vectors_{id}_{fingerprint}"))?;
            Ok(())
        })?;
    }
    Ok(Indexed { made, dropped })
}
