//! What operators see of the service: counters, lines of the log, spans, the ids of requests.

pub mod budget;
pub mod metrics;
pub(crate) mod request_log;
pub mod series;
pub mod streams;
pub mod trace;
