//! Collections: texts with names, times and attributes that the service remembers, so that nobody sends
//! them again to compare one with them.
//!
//! A [`Collection`] holds its items in memory, in the order in which they were added, and writes every
//! change to a log (`log`) before it is told, if [`Collections`] were opened in a folder. Readers see
//! a table that no longer changes (`table`), so none of them waits for a writer. How items are
//! ranked is not known here, nor who asks.

mod backup;
mod error;
mod filter;
mod folder;
mod frame;
mod held;
mod held_window;
mod incoming;
mod item;
mod kept;
mod log;
mod matcher;
mod registry;
mod replay;
mod settings;
mod storage;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod turn;
mod vectors;

pub use backup::BackedUp;
pub use backup::back_up;
pub use error::CollectionError;
pub use filter::Filter;
pub use filter::FilterProblem;
pub use held::Applied;
pub use incoming::Id;
pub use incoming::Incoming;
pub use incoming::Outgoing;
pub use incoming::Time;
pub use item::Attribute;
pub use item::Attributes;
pub use item::DATA_BYTES;
pub use item::Event;
pub use item::ID_BYTES;
pub use item::Item;
pub use item::ItemProblem;
pub use item::MOST_ATTRIBUTES;
pub use matcher::How;
pub use matcher::MatchError;
pub use matcher::Matched;
pub use matcher::SharedEngine;
pub use registry::Collections;
pub use replay::Cut;
pub use settings::Budget;
pub use settings::Limits;
pub use settings::NAME_BYTES;
pub use settings::Settings;
pub use settings::check_name;
pub use store::Collection;
pub use store::Told;
pub use store::View;
pub use store::Write;
pub use table::Table;
pub use turn::Pending;
pub use vectors::Vectors;

pub use crate::files::instant::span;

/// Milliseconds since 1970, by the machine's clock.
pub fn now() -> i64 {
    let nanoseconds = time::OffsetDateTime::now_utc().unix_timestamp_nanos();
    i64::try_from(nanoseconds.div_euclid(1_000_000)).unwrap_or(i64::MAX)
}
