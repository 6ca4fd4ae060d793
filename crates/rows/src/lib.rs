//! Files of rows: a question asked of each ([`bulk`]), searched for near-duplicates ([`dedupe`]), and
//! followed for events ([`events`]).

pub mod bulk;
pub mod dedupe;
pub mod events;
mod growing;
