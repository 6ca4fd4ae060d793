//! The embedded home: collections in this process's memory, with a log each if there is a folder.
//!
//! An [`EmbeddedCollection`] stores its items in memory, in the order in which they were added, and
//! writes every change to a log (`log`) before anyone sees it, if the [`EmbeddedHome`] was opened
//! in a folder. Readers see a table that no longer changes (`table`), so none of them waits for a
//! writer.
//!
//! Other processes show the same collections as a [`ReplicaHome`], which follows the logs as they
//! grow (`replica`).

mod backup;
mod bits;
mod blocks;
mod columns;
mod durable;
mod frame;
mod home;
mod items;
mod length;
mod log;
mod narrow;
mod promote;
mod quantised;
mod replay;
mod replica;
mod reserve;
mod salvage;
mod storage;
mod store;
mod table;
mod tail;
#[cfg(test)]
mod tests;
mod tokens;
mod transaction;

pub use backup::{BackedUp, back_up, back_up_among, remove_older};
pub use home::{EmbeddedHome, Opening};
pub(crate) use log::Lasting;
pub use promote::{Promoted, promote};
pub use replay::Cut;
pub use replica::ReplicaHome;
pub use salvage::{Gap, Salvaged};
pub use store::{EmbeddedCollection, View};
pub use table::Table;
pub use tail::check_logs;
