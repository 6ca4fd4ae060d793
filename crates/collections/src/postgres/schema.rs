//! The tables of the database, made by `cognate collection init`, with a version so that they can
//! change.

use crate::postgres::pool::Pool;
use crate::postgres::session::Session;
use crate::{CollectionError, Result};

/// The version of the tables. A change of the tables comes with the statements that upgrade a
/// database from this version.
const VERSION: usize = 3;
const TABLES: &str = "
    CREATE TABLE cognate.collections (
        name text COLLATE \"C\" PRIMARY KEY,
        id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        max_items bigint,
        ttl_ms bigint,
        next bigint NOT NULL DEFAULT 0,
        revision bigint NOT NULL DEFAULT 0,
        items bigint NOT NULL DEFAULT 0,
        lag_ms bigint
    );
    CREATE TABLE cognate.vectors (
        collection bigint NOT NULL REFERENCES cognate.collections (id) ON DELETE CASCADE,
        fingerprint text NOT NULL,
        dims integer NOT NULL,
        upto bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (collection, fingerprint)
    );
";

/// The lock for making tables and collections.
pub(super) const MAKING: &str = "SELECT pg_advisory_xact_lock(hashtext('cognate'))";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    pub before: usize,
    pub now: usize,
}

pub(super) fn init(pool: &Pool) -> Result<Ready> {
    pool.ask(|session| {
        session.run(MAKING)?;
        session.run(
            "CREATE SCHEMA IF NOT EXISTS cognate;
             CREATE TABLE IF NOT EXISTS cognate.version (version integer NOT NULL);",
        )?;
        // Some servers let only a superuser create the extension, so it is created only if it is missing.
        let there = session.query("SELECT FROM pg_extension WHERE extname = 'vector'", &[])?;
        if there.is_empty() {
            session.run("CREATE EXTENSION vector").map_err(|error| {
                let said = error.as_db_error().map(|error| error.message().to_owned());
                CollectionError::NotSetUp {
                    problem: format!(
                        "the database has no extension `vector` (pgvector), and it cannot be made: \
                         {}",
                        said.unwrap_or_else(|| error.to_string())
                    ),
                }
            })?;
        }
        let before = version(session)?;
        match before {
            VERSION => {}
            0 => {
                session.run(TABLES)?;
                session.execute("INSERT INTO cognate.version VALUES ($1)", &[&(VERSION as i32)])?;
            }
            other => return Err(unread(other)),
        }
        Ok(Ready { before, now: VERSION })
    })
}

pub(super) fn check(pool: &Pool) -> Result<()> {
    pool.ask(|session| {
        let there = session.query("SELECT FROM pg_tables WHERE schemaname = 'cognate'", &[])?;
        let version = if there.is_empty() { 0 } else { version(session)? };
        match version {
            VERSION => Ok(()),
            0 => {
                let problem = format!(
                    "the tables of the database have version 0, this program needs {VERSION}: run \
                     `cognate collection init --postgres URL`"
                );
                Err(CollectionError::NotSetUp { problem })
            }
            other => Err(unread(other)),
        }
    })
}

fn version(session: &mut Session<'_>) -> Result<usize> {
    let rows = session.query("SELECT max(version) FROM cognate.version", &[])?;
    let version: Option<i32> = rows.first().and_then(|row| row.get(0));
    Ok(version.map_or(0, |version| usize::try_from(version).unwrap_or(0)))
}

fn unread(version: usize) -> CollectionError {
    let problem = format!(
        "the tables of the database have version {version}, this program reads version {VERSION}"
    );
    CollectionError::NotSetUp { problem }
}

pub(super) fn items_table(id: i64) -> String {
    format!(
        "CREATE TABLE cognate.items_{id} (
             number bigint PRIMARY KEY,
             id text COLLATE \"C\" NOT NULL UNIQUE,
             text text NOT NULL,
             time bigint NOT NULL,
             attributes jsonb NOT NULL,
             data json,
             event text COLLATE \"C\",
             event_size bigint,
             event_score real,
             duplicate_of text COLLATE \"C\",
             moved_from text COLLATE \"C\",
             moved_at bigint,
             bursts boolean
         );
         CREATE INDEX ON cognate.items_{id} (moved_at) WHERE moved_at IS NOT NULL;
         CREATE INDEX ON cognate.items_{id} (time);
         CREATE INDEX ON cognate.items_{id} USING gin (attributes jsonb_path_ops);"
    )
}
