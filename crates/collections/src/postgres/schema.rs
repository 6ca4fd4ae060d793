//! The tables of the database, made by `cognate collection init`, and told apart by a version so that they
//! can change.

use crate::CollectionError;
use crate::postgres::pool::{Failed, Pool};
use crate::postgres::session::Session;

/// The statements that bring a database from each version to the next.
const STEPS: [&str; 3] = [
    "
    CREATE TABLE cognate.collections (
        name text COLLATE \"C\" PRIMARY KEY,
        id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        max_items bigint,
        ttl_ms bigint,
        next bigint NOT NULL DEFAULT 0,
        revision bigint NOT NULL DEFAULT 0,
        items bigint NOT NULL DEFAULT 0
    );
    CREATE TABLE cognate.vectors (
        collection bigint NOT NULL REFERENCES cognate.collections (id) ON DELETE CASCADE,
        fingerprint text NOT NULL,
        dims integer NOT NULL,
        upto bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (collection, fingerprint)
    );
",
    "
    ALTER TABLE cognate.collections ADD COLUMN lag_ms bigint;
    DO $$ DECLARE one record; BEGIN
        FOR one IN SELECT id FROM cognate.collections LOOP
            EXECUTE format('ALTER TABLE cognate.items_%s ADD COLUMN event_score real, '
                'ADD COLUMN duplicate_of text COLLATE \"C\"', one.id);
        END LOOP;
    END $$;
",
    "
    DO $$ DECLARE one record; BEGIN
        FOR one IN SELECT id FROM cognate.collections LOOP
            EXECUTE format('ALTER TABLE cognate.items_%s ADD COLUMN moved_from text COLLATE \"C\", '
                'ADD COLUMN moved_at bigint, ADD COLUMN bursts boolean', one.id);
            EXECUTE format('CREATE INDEX ON cognate.items_%s (moved_at) WHERE moved_at IS NOT NULL',
                one.id);
        END LOOP;
    END $$;
",
];

/// The lock that whoever makes tables has.
pub(super) const MAKING: &str = "SELECT pg_advisory_xact_lock(hashtext('cognate'))";

/// The result of `init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The version of the tables before; 0 where there were none.
    pub before: usize,
    /// And now.
    pub now: usize,
}

/// Makes the tables, or brings older ones up to date.
pub(super) fn init(pool: &Pool) -> Result<Ready, CollectionError> {
    pool.ask(|session| {
        session.run(MAKING)?;
        session.run(
            "CREATE SCHEMA IF NOT EXISTS cognate;
             CREATE TABLE IF NOT EXISTS cognate.version (version integer NOT NULL);",
        )?;
        // Some servers let only a superuser make the extension, who may have done so.
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
        if before > STEPS.len() {
            return Err(too_new(before).into());
        }
        for step in STEPS.iter().skip(before) {
            session.run(step)?;
        }
        session.run("DELETE FROM cognate.version")?;
        let now = STEPS.len();
        session.execute("INSERT INTO cognate.version VALUES ($1)", &[&(now as i32)])?;
        Ok(Ready { before, now })
    })
}

/// Refuses a database whose tables are not those of this version.
pub(super) fn check(pool: &Pool) -> Result<(), CollectionError> {
    pool.ask(|session| {
        let there = session.query("SELECT FROM pg_tables WHERE schemaname = 'cognate'", &[])?;
        let version = if there.is_empty() { 0 } else { version(session)? };
        match version {
            version if version == STEPS.len() => Ok(()),
            version if version > STEPS.len() => Err(too_new(version).into()),
            version => Err(CollectionError::NotSetUp {
                problem: format!(
                    "the tables of the database have version {version}, this program needs {}: run \
                     `cognate collection init --postgres URL`",
                    STEPS.len()
                ),
            }
            .into()),
        }
    })
}

fn version(session: &mut Session<'_>) -> Result<usize, Failed> {
    let rows = session.query("SELECT max(version) FROM cognate.version", &[])?;
    let version: Option<i32> = rows.first().and_then(|row| row.get(0));
    Ok(version.map_or(0, |version| usize::try_from(version).unwrap_or(0)))
}

fn too_new(version: usize) -> CollectionError {
    let problem = format!(
        "the tables of the database have version {version}, which is newer than this program's {}",
        STEPS.len()
    );
    CollectionError::NotSetUp { problem }
}

/// The statements that make a collection's table.
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
