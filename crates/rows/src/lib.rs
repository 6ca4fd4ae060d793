//! Processes files of rows: answers a question for each row ([`bulk`]), finds near-duplicates
//! ([`dedupe`]), and groups a stream into events ([`events`]).

pub mod bulk;
pub mod dedupe;
pub mod events;
mod growing;
