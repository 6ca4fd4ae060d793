//! Collections: texts with names, times and attributes that the service remembers, so that nobody sends
//! them again to compare one with them.
//!
//! Where they are kept is a [`Home`]: this process, with a log in a folder or as a replica of another one
//! (`embedded`), or a database (`postgres`). What texts are matched against (`matcher`,
//! `held_window`) and which items a filter admits is the same for all of them. How items are ranked is not
//! known here, nor who asks.

mod attributes;
#[cfg(test)]
mod contract;
pub mod embedded;
mod error;
mod filter;
mod following;
mod held_window;
mod home;
mod incoming;
mod item;
mod matcher;
mod memory;
#[cfg(feature = "postgres")]
mod outcome;
#[cfg(feature = "postgres")]
pub mod postgres;
mod readable;
mod settings;
mod shortlist;

use std::time::Duration;
use std::time::SystemTime;

pub use attributes::Attribute;
pub use attributes::Attributes;
pub use attributes::MOST_ATTRIBUTES;
pub use embedded::BackedUp;
pub use embedded::Cut;
pub use embedded::EmbeddedHome;
pub use embedded::Pending;
pub use embedded::ReplicaHome;
pub use embedded::Vectors;
pub use embedded::back_up;
pub use error::CollectionError;
pub use filter::Filter;
pub use filter::FilterProblem;
pub use home::Applied;
pub use home::Behind;
pub use home::Best;
pub use home::Cancellation;
pub use home::Choice;
pub use home::ChooseError;
pub use home::Chosen;
pub use home::Collection;
pub use home::Home;
pub use home::Page;
pub use home::SHORTLIST_METHOD;
pub use home::Shortlist;
pub use home::Told;
pub use home::Totals;
pub use home::Which;
pub use home::Write;
pub use incoming::Id;
pub use incoming::Incoming;
pub use incoming::Outgoing;
pub use incoming::Time;
pub use item::DATA_BYTES;
pub use item::Event;
pub use item::ID_BYTES;
pub use item::Item;
pub use item::ItemProblem;
pub use matcher::How;
pub use matcher::MatchError;
pub use matcher::Matched;
pub use matcher::SharedEngine;
#[cfg(feature = "postgres")]
pub use postgres::PostgresHome;
pub(crate) use readable::Readable;
pub use settings::Budget;
pub use settings::Limits;
pub use settings::NAME_BYTES;
pub use settings::Settings;
pub use settings::check_name;
pub use shortlist::LONGEST_SHORTLIST;
pub use shortlist::MOST_SCORED;
pub use shortlist::SHORTLIST_LENGTH;
pub use shortlist::usual_shortlist;

pub use crate::files::instant::span;

/// What a program without the feature `postgres` says where a database is asked for.
pub const NO_POSTGRES: &str = "this program was built without PostgreSQL (feature `postgres`)";

/// Milliseconds since 1970, by the machine's clock, whatever year it shows.
#[expect(clippy::disallowed_methods, reason = "items have the wall clock's time")]
pub fn now() -> i64 {
    let milliseconds = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => milliseconds(after),
        Err(before) => -milliseconds(before.duration()),
    }
}
