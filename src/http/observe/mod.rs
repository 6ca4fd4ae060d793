//! What operators see of the service: counters, lines of the log, spans, the ids of requests.

pub mod budget;
pub(crate) mod by_key;
mod descriptions;
pub mod early_ends;
pub(crate) mod facts;
pub mod metrics;
mod process;
pub(crate) mod rank_parts;
pub(crate) mod request_id;
pub(crate) mod request_log;
pub(crate) mod streams;
pub mod trace;
