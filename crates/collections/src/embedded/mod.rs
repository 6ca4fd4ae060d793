//! The embedded home: collections in this process's memory, and in a log each if there is a folder.
//!
//! An [`EmbeddedCollection`] holds its items in memory, in the order in which they were added, and writes
//! every change to a log (`log`) before it is told, if the [`EmbeddedHome`] was opened in a folder.
//! Readers see a table that no longer changes (`table`), so none of them waits for a writer.
//!
//! Other processes show the same collections as a [`ReplicaHome`], which reads the logs on as they grow
//! (`tail`).

mod backup;
mod held;
mod kept;
mod length;
mod log;
mod narrow;
mod registry;
mod replay;
mod replica;
mod shelves;
mod storage;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod turn;
mod vectors;

pub use backup::{BackedUp, back_up};
pub use registry::EmbeddedHome;
pub use replay::Cut;
pub use replica::ReplicaHome;
pub use store::{EmbeddedCollection, View};
pub use table::Table;
pub use turn::Pending;
pub use vectors::Vectors;
