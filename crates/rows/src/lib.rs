//! Processes files of rows: answers a question for each row ([`bulk`]), finds near-duplicates
//! ([`dedupe`]), and groups a stream into events ([`events`]).

mod bad_rows;
pub mod bulk;
mod columnar;
pub mod dedupe;
pub mod events;
mod growing;

pub use bad_rows::{LeftOut, OnBadRow};
