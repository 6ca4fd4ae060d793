//! One transaction, with the statements that its connection has prepared.

use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{Error, Row, Statement, Transaction};

/// Most statements that a connection keeps. Filters make ever new ones.
const MOST_STATEMENTS: usize = 256;

/// Statements that a connection has prepared, by their text.
pub(super) type Statements = HashMap<Box<str>, Statement>;

pub(super) struct Session<'c> {
    pub(super) transaction: Transaction<'c>,
    statements: &'c mut Statements,
}

impl<'c> Session<'c> {
    pub(super) fn of(transaction: Transaction<'c>, statements: &'c mut Statements) -> Self {
        Self { transaction, statements }
    }

    /// The statement of a text, prepared once a connection.
    pub(super) fn prepare(&mut self, text: &str) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(text) {
            return Ok(known.clone());
        }
        if self.statements.len() >= MOST_STATEMENTS {
            self.statements.clear();
        }
        let prepared = self.transaction.prepare(text)?;
        self.statements.insert(text.into(), prepared.clone());
        Ok(prepared)
    }

    /// The rows of a statement.
    pub(super) fn query(
        &mut self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(text)?;
        self.transaction.query(&statement, values)
    }

    /// Does a statement; how many rows it changed.
    pub(super) fn execute(
        &mut self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        let statement = self.prepare(text)?;
        self.transaction.execute(&statement, values)
    }

    /// Does statements that are not prepared.
    pub(super) fn run(&mut self, text: &str) -> Result<(), Error> {
        self.transaction.batch_execute(text)
    }
}
