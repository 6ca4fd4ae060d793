//! The HTTP service: requests in, the engine's answers out.
//!
//! A request passes, from the outside in: the accept loop and its connection ([`net`]); the layers
//! around every route (`middleware`: id, counters, log, problem documents, keys); and its endpoint
//! ([`api`]), which admits it ([`work`]), reads and resolves it ([`request`]), and answers it where it
//! was read or on the pool. What an endpoint declares at its handler becomes a route (`routes`), a
//! part of the document (`openapi`) and the name of its counters; bodies of other servers' clients become
//! the same questions in [`compatible`], and the `router` puts all routes together. [`App`] holds what
//! requests share: settings, models (`registry`), keys ([`auth`]), counters ([`observe`]).

pub mod api;
pub(crate) mod app;
pub mod auth;
pub mod compatible;
pub mod dialect;
pub mod error;
pub(crate) mod middleware;
pub mod net;
pub mod observe;
pub(crate) mod openapi;
pub(crate) mod registry;
pub mod request;
mod router;
pub(crate) mod routes;
mod serve;
pub mod settings;
pub mod work;

pub use app::App;
pub use net::{ConnectionMetrics, Listener, Peer};
pub use registry::Models;
pub use router::document;
pub use serve::{ServeError, serve};
pub use settings::{NamedModel, Settings};
