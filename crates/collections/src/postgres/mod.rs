//! The PostgreSQL home: collections in a database, for any number of servers that share them.
//!
//! A collection is a row of `cognate.collections` and a table of items; vectors of items are in a
//! table of their own for each model, made when a question first needs a shortlist, with pgvector's
//! types and indexes (`vectors`). Filters are conditions of SQL (`condition`). A writer locks the
//! collection's row (`transaction`), so numbers grow in the order in which items became visible,
//! and `match` on any server sees what all others wrote.

mod collection;
mod condition;
mod facets;
mod home;
mod pool;
mod rows;
mod schema;
mod session;
mod shared;
#[cfg(test)]
mod tests;
mod transaction;
mod vectors;

pub use home::PostgresHome;
pub use schema::Ready;
pub use vectors::{IndexKind, Indexed};
