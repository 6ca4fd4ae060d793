//! The HTTP service: requests in, the engine's answers out. How texts are compared is not known
//! here.
//!
//! A request passes, from the outside in: the accept loop ([`listener`], [`socket`]), the frame
//! ([`frame`]: id, counters, log, problem documents), the keys ([`guard`]), and its [`endpoint`],
//! which admits it ([`admission`]), reads and parses it ([`body`], [`json`], [`fields`]), weighs it,
//! and has it answered here or on the pool ([`compute`]).

pub mod admission;
pub mod app;
pub mod asked;
pub mod body;
pub mod compute;
pub mod connection;
pub mod embed;
pub mod endpoint;
pub mod error;
pub mod exchange;
pub mod explain;
pub mod fields;
pub mod frame;
pub mod guard;
pub mod json;
pub mod keys;
pub mod lines;
pub mod listener;
pub mod listing;
mod memory;
pub mod metrics;
pub mod models;
pub mod openapi;
mod pages;
mod process;
pub mod quota;
pub mod rank;
mod router;
mod schema;
mod serve;
pub mod settings;
pub mod similarity;
pub mod socket;
pub mod status;
pub mod stop;
mod stream;
pub mod trace;

pub use app::App;
pub use connection::Peer;
pub use listener::ConnectionMetrics;
pub use listener::Listener;
pub use models::Shelf;
pub use serve::ServeError;
pub use serve::serve;
pub use settings::NamedModel;
pub use settings::Settings;
