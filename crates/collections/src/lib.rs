//! Collections: texts with names, times and attributes that the service stores, so that callers
//! need not send them again to compare with them.
//!
//! A [`Home`] stores them: this process, with a log in a folder or as a replica of another process
//! (`embedded`), or a database (`postgres`). Which texts are matched against (`matcher`,
//! `windows`), which items a filter admits and which of them a question ranks (`rank`) is the same
//! in every home. This crate does not know how texts are scored, nor who asks.

mod alerts;
mod attributes;
mod boosts;
#[cfg(test)]
mod contract;
pub mod embedded;
mod error;
mod events;
mod facets;
mod filter;
mod home;
mod incoming;
mod item;
mod matcher;
#[cfg(feature = "postgres")]
mod outcome;
mod patch;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod rank;
mod settings;
mod shortlist;
mod top_query;
mod transaction;
mod unknown;
mod vectors;
mod windows;

use std::time::{Duration, SystemTime};

pub use alerts::{Alert, AlertKind, AlertReader, AlertRule, Cursor, Merged, Start};
pub use attributes::{AskedAttribute, Attribute, AttributeKind, Attributes, MAX_ATTRIBUTES};
pub use boosts::{ItemBoost, ItemBoosts, MAX_BOOSTS};
pub use embedded::{
    BackedUp, Cut, EmbeddedHome, Gap, Opening, Promoted, ReplicaHome, Salvaged, back_up,
    back_up_among, check_logs, promote, remove_older,
};
pub use error::{CollectionError, Result};
pub use events::{EventChange, EventItems};
pub use facets::{Facet, Facets, MAX_COUNTED_VALUES};
pub use filter::{Filter, FilterProblem};
pub use home::{
    Activity, Added, Applied, Asker, CallCounts, Cancellation, Choice, ChooseError, Chosen,
    Collection, CollectionInfo, Home, ItemSelector, Lag, Page, Pending, SHORTLIST_METHOD, Totals,
    Write,
};
pub use incoming::{Id, Incoming, IncomingEvent, Outgoing, Readable, Time, exact};
pub use item::{DATA_BYTES, Event, ID_BYTES, Item, ItemProblem};
pub use matcher::{ConsideredEvent, MatchOptions, MatchReasons, Matched, SharedEngine};
pub use patch::{ItemPatch, NamedPatch, Patched};
#[cfg(feature = "postgres")]
pub use postgres::PostgresHome;
pub use settings::{Budget, Limits, NAME_BYTES, Settings, SettingsChange, check_name};
pub use shortlist::{LONGEST_SHORTLIST, SHORTLIST_LENGTH, usual_shortlist};
pub use top_query::{Several, TopQuery};
pub use unknown::UnknownNames;
pub use vectors::Vectors;

/// The error of a build without the feature `postgres` when a database is configured.
pub const NO_POSTGRES: &str = "this program was built without PostgreSQL (feature `postgres`)";

/// Returns the milliseconds since 1970 by the machine's clock, even if the clock is wrong.
#[expect(clippy::disallowed_methods, reason = "items have the wall clock's time")]
pub fn now() -> i64 {
    let milliseconds = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => milliseconds(after),
        Err(before) => -milliseconds(before.duration()),
    }
}
