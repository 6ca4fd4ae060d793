//! The Qdrant home: collections in a Qdrant server, for those who run one anyway.
//!
//! Qdrant has no transactions: one operation on one of its collections is all that it does as a whole. So
//! what a collection has is what its *record* says, one point of the Qdrant collection `cognate`
//! (`record`); its items are points of a Qdrant collection of their own (`points`).
//!
//! - Items are numbered in the order in which they were added, and the number is the point's id. Numbers
//!   are used once. The record has the number of the next item, and everything at or above it is nothing
//!   that anybody sees.
//! - A write first adds its items, which nobody sees, and then overwrites the record: the number of the next
//!   item grows, and the numbers of those that were replaced, removed, or have become too old are listed as
//!   gone (`numbers`). That is one operation on one point, so all of a write is seen or nothing, and what was
//!   replaced goes when its replacement comes. Whoever is killed before it leaves what nobody sees;
//!   whoever is killed after it has lost nothing.
//! - The record is overwritten only where it is still as this writer left it: a filter asks for its name and
//!   for the name of the last write, and Qdrant finds and changes what matches in one operation. Then the
//!   record is read: whoever finds the name of this write there knows that it was done. So of two writers one
//!   notices (`hold`), before anything of it is seen.
//! - A writer that takes over from one that did not say goodbye begins at a far higher number. What the
//!   other one may still be about to add lies in the gap between, which nobody sees, and never meets numbers
//!   that are in use. Gaps are emptied, and forgotten an hour later.
//! - Points that are gone are deleted some time later (`sweep`), so that whoever read the record before
//!   they went still finds them. Numbers that are gone never come back: whoever deletes them is right to do
//!   so, even where another has become the writer meanwhile.
//!
//! Vectors stand with the items, under the fingerprint of their model (`vectors`). Filters are asked of
//! Qdrant as far as they mean the same there, and otherwise decided here (`condition`).

mod asking;
mod collection;
mod condition;
mod hold;
mod home;
mod numbers;
mod place;
mod points;
mod problem;
mod record;
mod snapshot;
mod sweep;
#[cfg(test)]
mod tests;
mod turn;
mod vectors;

pub use home::QdrantHome;
pub use home::Ready;
pub use vectors::Indexed;
