//! What operators see of the service: counters, spans, the ids of requests.

pub mod metrics;
mod process;
pub(crate) mod request_id;
pub(crate) mod streams;
pub mod trace;
