//! Vectors of items in the database, a table for each model: made by whoever first asks for a shortlist,
//! searched by pgvector, exactly or by an index.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use cognate::engine::{Engine, Query, QueryError};
use pgvector::HalfVector;
use postgres::Row;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::{Json, Type};
use serde_json::value::RawValue;

use crate::postgres::collection::PostgresCollection;
use crate::postgres::condition::Sql;
use crate::postgres::home::PostgresHome;
use crate::postgres::pool::Failed;
use crate::postgres::schema::MAKING;
use crate::postgres::session::Session;
use crate::postgres::turn::{ENTRY, Entry};
use crate::postgres::vectors;
use crate::{
    Attribute, Attributes, Cancellation, ChooseError, Collection, CollectionError, Event, Item,
    ItemProblem, ItemSelector, SHORTLIST_METHOD, Shortlist,
};

/// Items whose vectors are made in one transaction.
const PIECE: usize = 1000;
/// What an index looks at for as long as fewer items than wanted are admitted, and how closely. Without an
/// index these mean nothing.
const SEARCH: &str = "SET LOCAL hnsw.iterative_scan = relaxed_order;
     SET LOCAL ivfflat.iterative_scan = relaxed_order; SET LOCAL ivfflat.probes = 20;";

/// How vectors are found without looking at each.
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

/// What came of making vectors and an index of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indexed {
    /// Vectors that were made; the others were there.
    pub made: usize,
    /// Tables of vectors of other models that were dropped.
    pub dropped: usize,
}

/// The vectors of a collection by a model.
struct Table {
    entry: Entry,
    /// Items of smaller numbers have theirs.
    upto: i64,
    name: String,
}

impl Table {
    /// The table, which is made if it is not there.
    fn find(
        session: &mut Session<'_>,
        collection: &str,
        (fingerprint, dims): (&str, usize),
    ) -> Result<Self, Failed> {
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
        Ok(made.ok_or(CollectionError::Unknown)?)
    }

    fn look(
        session: &mut Session<'_>,
        collection: &str,
        fingerprint: &str,
    ) -> Result<Option<Self>, Failed> {
        let text = format!(
            "SELECT {ENTRY}, v.upto FROM cognate.collections c \
             JOIN cognate.vectors v ON v.collection = c.id WHERE c.name = $1 AND v.fingerprint = $2"
        );
        let rows = session.query(&text, &[&collection, &fingerprint])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let entry = Entry::of(row)?;
        let name = format!("cognate.vectors_{}_{fingerprint}", entry.id);
        Ok(Some(Self { entry, upto: row.try_get(6)?, name }))
    }

    /// Whether every item has its vector.
    fn is_whole(&self) -> bool {
        self.upto >= self.entry.next
    }

    /// The items that are nearest to each of some vectors, so many of each.
    fn nearest(
        &self,
        session: &mut Session<'_>,
        which: &ItemSelector<'_>,
        (asked, length): (&[Option<HalfVector>], usize),
        now: i64,
    ) -> Result<Vec<(u64, Arc<Item>)>, Failed> {
        session.run(&format!("{SEARCH} SET LOCAL hnsw.ef_search = {}", length.clamp(40, 1000)))?;
        let mut found = BTreeMap::new();
        for vector in asked.iter().flatten() {
            let mut sql = Sql::of(which, self.entry.settings.oldest(now));
            sql.text.push_str(" AND v.vector IS NOT NULL ORDER BY v.vector <=> ");
            sql.value(vector.clone());
            // As a value it would not be known when the index is chosen.
            let _ = write!(sql.text, " LIMIT {length}");
            let text = format!(
                "SELECT {COLUMNS} FROM {} v JOIN cognate.items_{} i USING (number) WHERE {}",
                self.name, self.entry.id, sql.text
            );
            found.extend(vectors::items(&session.query(&text, &sql.values())?)?);
        }
        Ok(found.into_iter().collect())
    }
}

/// The fingerprint of a model and the length of the vectors that find its shortlists.
fn kind_of(engine: &Engine) -> Result<(&str, usize), QueryError> {
    Ok((engine.model().fingerprint(), engine.embedding_dims(SHORTLIST_METHOD)?))
}

/// Vectors of length 1 by the method of shortlists, which fit into 16 bits a number.
fn embedded(engine: &Engine, texts: &[&str]) -> Result<Vec<Option<HalfVector>>, QueryError> {
    let made = engine.embed(texts, &Query::new(SHORTLIST_METHOD))?;
    let unit = |vector: Vec<f32>| {
        let norm = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
        let numbers = vector.iter().map(|number| (f64::from(*number) / norm) as f32);
        (norm > 0.0).then(|| HalfVector::from_f32_slice(&numbers.collect::<Vec<f32>>()))
    };
    Ok(made.vectors.into_iter().map(|vector| vector.and_then(unit)).collect())
}

/// Makes the vectors of the next items that have none; how many, and nothing when there are none left.
fn fill(collection: &PostgresCollection, engine: &Engine) -> Result<Option<usize>, ChooseError> {
    let kind = kind_of(engine)?;
    let filled = collection.shared.pool.ask(|session| {
        let table = Table::find(session, collection.name(), kind)?;
        let lock = "SELECT upto FROM cognate.vectors WHERE collection = $1 AND fingerprint = $2 \
                    FOR UPDATE";
        let rows = session.query(lock, &[&table.entry.id, &kind.0])?;
        let upto: i64 = rows.first().ok_or(CollectionError::Unknown)?.try_get(0)?;
        // Numbers below that of the next item are those of items that are there or gone for good.
        let next = Entry::read(session, collection.name())?.next;
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

/// The items that are nearest to each of the texts of a shortlist, in the order in which they were added.
pub(super) fn nearest(
    collection: &PostgresCollection,
    which: &ItemSelector<'_>,
    shortlist: &Shortlist<'_>,
    now: i64,
    cancel: Cancellation<'_>,
) -> Result<Vec<(u64, Arc<Item>)>, ChooseError> {
    let kind = kind_of(shortlist.engine)?;
    let asked = embedded(shortlist.engine, &shortlist.texts)?;
    loop {
        let found = collection.shared.pool.ask(|session| {
            let table = Table::find(session, collection.name(), kind)?;
            match table.is_whole() {
                true => Ok(Some(table.nearest(session, which, (&asked, shortlist.length), now)?)),
                false => Ok(None),
            }
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        cancel.check()?;
        fill(collection, shortlist.engine)?;
    }
}

impl PostgresHome {
    /// Makes the vectors of a collection's items and an index of them; `on_made` is told how many were
    /// made so far. With `only`, vectors of other models are dropped.
    pub fn index(
        &self,
        name: &str,
        engine: &Engine,
        (index, only): (Option<IndexKind>, bool),
        on_made: &mut dyn FnMut(usize),
    ) -> Result<Indexed, ChooseError> {
        let (collection, kind) = (self.named(name), kind_of(engine)?);
        let mut made = 0;
        while let Some(more) = fill(&collection, engine)? {
            made += more;
            on_made(made);
        }
        let pool = &collection.shared.pool;
        let (table, others) = pool.ask(|session| {
            let table = Table::find(session, name, kind)?;
            let text = "SELECT fingerprint FROM cognate.vectors \
                        WHERE collection = $1 AND fingerprint <> $2";
            let rows = session.query(text, &[&table.entry.id, &kind.0])?;
            let others =
                rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
            Ok((table, others))
        })?;
        if let Some(index) = index {
            // One that an earlier attempt left unfinished, and one of the other kind, are in the way.
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
}

/// What is read of an item, with its number.
pub(super) const COLUMNS: &str =
    "i.number, i.id, i.text, i.time, i.attributes, i.data, i.event, i.event_size";
const TYPES: [Type; 8] = [
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::JSONB,
    Type::JSON,
    Type::TEXT,
    Type::INT8,
];

/// The item of a row of [`COLUMNS`], with its number.
pub(super) fn item(row: &Row) -> Result<(u64, Arc<Item>), Failed> {
    let number: i64 = row.try_get(0)?;
    let Json(attributes): Json<Attributes> = row.try_get(4)?;
    let data: Option<Json<Box<RawValue>>> = row.try_get(5)?;
    let event: Option<String> = row.try_get(6)?;
    let size: Option<i64> = row.try_get(7)?;
    let event = event.map(|id| Event { id: id.into(), size: size.map_or(1, unsigned) });
    let item = Item {
        id: row.try_get::<_, &str>(1)?.into(),
        text: row.try_get::<_, &str>(2)?.into(),
        time: row.try_get(3)?,
        attributes,
        data: data.map(|Json(data)| data),
        event,
    };
    Ok((unsigned(number), Arc::new(item)))
}

/// Items with their numbers.
pub(super) fn items(rows: &[Row]) -> Result<Vec<(u64, Arc<Item>)>, Failed> {
    rows.iter().map(item).collect()
}

/// Adds items of these numbers to a table.
pub(super) fn copy<'i>(
    session: &mut Session<'_>,
    table: i64,
    items: impl Iterator<Item = (i64, &'i Item)>,
) -> Result<(), Failed> {
    let text = format!(
        "COPY cognate.items_{table} (number, id, text, time, attributes, data, event, event_size) \
         FROM STDIN BINARY"
    );
    let sink = session.transaction.copy_in(text.as_str())?;
    let mut writer = BinaryCopyInWriter::new(sink, &TYPES);
    for (number, item) in items {
        let (attributes, data) = (Json(&item.attributes), item.data.as_deref().map(Json));
        let event = item.event.as_ref().map(|event| &*event.id);
        let size = item.event.as_ref().map(|event| signed(event.size));
        let (id, text) = (&*item.id, &*item.text);
        writer.write(&[&number, &id, &text, &item.time, &attributes, &data, &event, &size])?;
    }
    writer.finish()?;
    Ok(())
}

/// Refuses items with what a text of PostgreSQL cannot hold.
pub(super) fn check(items: &[Item]) -> Result<(), CollectionError> {
    let has_nul = |text: &str| text.contains('\0');
    for (index, item) in items.iter().enumerate() {
        let mut attributes = item.attributes.iter();
        let field = if has_nul(&item.text) {
            "/text"
        } else if attributes.any(|(name, value)| {
            has_nul(name) || matches!(value, Attribute::Text(text) if has_nul(text))
        }) {
            "/attributes"
        } else {
            continue;
        };
        let what = "a database keeps no text with the character U+0000".to_owned();
        let problem = ItemProblem { field, what, too_long: false };
        return Err(CollectionError::Item { index, problem });
    }
    Ok(())
}

/// A number that is never negative, as the database has it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
