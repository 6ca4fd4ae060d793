//! One transaction, with the prepared statements of its connection.

use std::collections::HashMap;
use std::sync::OnceLock;

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Error, Row, Statement, Transaction};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::CollectionError;

/// Most prepared statements of a connection. Filters make ever new statements.
const MAX_STATEMENTS: usize = 256;

pub(super) type Statements = HashMap<Box<str>, Statement>;

pub(super) struct Session<'c> {
    pub(super) transaction: Transaction<'c>,
    statements: &'c mut Statements,
}

impl<'c> Session<'c> {
    pub(super) fn new(transaction: Transaction<'c>, statements: &'c mut Statements) -> Self {
        Self { transaction, statements }
    }

    /// The statement of a text, prepared once per connection.
    pub(super) fn prepare(&mut self, text: &str) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(text) {
            return Ok(known.clone());
        }
        if self.statements.len() >= MAX_STATEMENTS {
            self.statements.clear();
        }
        let prepared = self.transaction.prepare(text)?;
        self.statements.insert(text.into(), prepared.clone());
        Ok(prepared)
    }

    pub(super) fn query(
        &mut self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(text)?;
        self.transaction.query(&statement, values)
    }

    pub(super) fn execute(
        &mut self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        let statement = self.prepare(text)?;
        self.transaction.execute(&statement, values)
    }

    pub(super) fn run(&mut self, text: &str) -> Result<(), Error> {
        self.transaction.batch_execute(text)
    }
}

/// Whether the connection is lost.
pub(super) fn is_lost(error: &Error) -> bool {
    error.code().is_some_and(is_ending) || (error.as_db_error().is_none() && !is_ours(error))
}

/// Whether the server is shutting down, or not ready yet.
fn is_ending(code: &SqlState) -> bool {
    code.code().starts_with("08")
        || *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN
        || *code == SqlState::CANNOT_CONNECT_NOW
}

/// Whether a value could not be converted on this side: the connection is sound.
fn is_ours(error: &Error) -> bool {
    use std::error::Error as _;
    // The driver's two errors differ only in their texts.
    let said = error.to_string();
    error.source().is_some() && (said.contains("serializing") || said.contains("deserializing"))
}

/// The database's error message. It names tables and hosts, so it belongs in the log only.
fn said(error: &Error) -> String {
    use std::error::Error as _;
    match error.as_db_error() {
        Some(error) => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

impl From<Error> for CollectionError {
    fn from(error: Error) -> Self {
        let problem = said(&error);
        if is_lost(&error) {
            return Self::Unreachable { problem };
        }
        match error.code() {
            // The table of a collection that was deleted meanwhile.
            Some(code) if *code == SqlState::UNDEFINED_TABLE => Self::Unknown,
            Some(code) if *code == SqlState::QUERY_CANCELED => Self::Slow { problem },
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => Self::Slow { problem },
            Some(code) if is_passing(code) => Self::Unreachable { problem },
            Some(code) if is_unwritable(code) => Self::Unwritable { problem },
            _ => Self::Database { problem },
        }
    }
}

/// Whether other transactions were in the way, so that a repetition may succeed.
fn is_passing(code: &SqlState) -> bool {
    *code == SqlState::T_R_SERIALIZATION_FAILURE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::TOO_MANY_CONNECTIONS
}

/// Whether the database accepts no writes: it is full, a follower, or this user may not write.
fn is_unwritable(code: &SqlState) -> bool {
    *code == SqlState::DISK_FULL
        || *code == SqlState::OUT_OF_MEMORY
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::INSUFFICIENT_PRIVILEGE
}

/// The TLS connector, used if the server offers TLS and `sslmode` is not `disable`.
pub(super) fn connector() -> MakeRustlsConnect {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        // Without certificates on this machine no server is trusted, and the connection says so.
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
    });
    MakeRustlsConnect::new(config.clone())
}
