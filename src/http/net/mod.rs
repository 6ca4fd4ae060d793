//! Connections: accepted, served by hyper, and closed in an order that loses nothing. Which routes
//! there are is not known here.

pub(crate) mod connection;
pub(crate) mod head;
pub(crate) mod listener;
pub mod shutdown;
mod socket;
mod state;

pub use connection::Peer;
pub use listener::ConnectionMetrics;
pub use listener::Listener;
