//! Connections: accepted, served by hyper, and closed in an order that loses nothing. Which routes
//! there are is not known here.

pub(crate) mod connection;
pub mod gate;
mod kernel;
pub(crate) mod listener;
pub mod shutdown;
mod socket;
mod state;

pub use gate::Gate;
pub use listener::Listener;
pub use state::Peer;

use crate::http::observe::series::{Counter, Gauge};
use crate::http::observe::streams::EarlyEnds;

#[derive(Clone)]
pub struct ConnectionMetrics {
    pub open: Gauge,
    /// Number of connections that were refused because there were too many.
    pub refused: Counter,
    /// Number of connections that ended before everything was answered and read.
    pub ended: EarlyEnds,
}
