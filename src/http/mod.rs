//! The HTTP service: requests in, the engine's answers out. How texts are compared is not known
//! here.

pub mod connection;
pub mod exchange;
pub mod listener;
pub mod settings;
pub mod socket;
pub mod stop;

pub use connection::Peer;
pub use listener::ConnectionMetrics;
pub use listener::Listener;
pub use settings::NamedModel;
pub use settings::Settings;
