//! The HTTP service: it answers requests with the engine.
//!
//! A request passes, from the outside in: the accept loop and its connection ([`net`]); the layers
//! around every route (`middleware`: id, counters, log, problem documents, keys); and its endpoint
//! ([`api`]), which admits it ([`work`]), reads and resolves it ([`request`]), and answers it on
//! the runtime or on the pool. The declaration at a handler becomes a route (`routes`), a part of
//! the document (`openapi`) and the name of its counters; [`compatible`] turns bodies of other
//! servers' clients into the same questions, and the `router` puts all routes together. [`App`] is
//! the state that requests share: settings, models (`registry`), keys ([`auth`]), counters
//! ([`observe`]).

pub mod api;
pub(crate) mod app;
pub mod auth {
    //! API keys, their scopes, collections and quotas, and what each client uses.

    pub(crate) mod access;
    pub mod client;
    pub mod keys;
    pub mod quota;
}
pub mod build;
pub mod compatible;
pub mod dialect;
pub mod error;
pub(crate) mod middleware {
    //! The layers around routes: what every request gets, and who may send it.

    pub(crate) mod authorize;
    pub(crate) mod gate;
    mod hosts;
    pub(crate) mod request_context;
    mod unpack;
}
pub mod net;
pub mod observe {
    //! What operators see of the service: counters, lines of the log, spans, request ids.

    pub mod budget;
    mod collections;
    pub(crate) mod hand_over;
    pub mod metrics;
    pub(crate) mod request_log;
    pub mod series;
    pub mod streams;
    pub mod trace;
}
pub(crate) mod openapi;
pub(crate) mod registry {
    //! The models being served, whether there is memory for another, and the collections.

    pub(crate) mod collections;
    pub(crate) mod models;

    pub use models::Models;
}
pub mod request {
    //! A request's body: read within its limits, parsed into types that borrow from it, resolved to
    //! a model and a method.

    pub mod body;
    pub(crate) mod fields;
    pub mod json;
    pub mod query;
    pub(crate) mod threshold;
}
mod router;
pub(crate) mod routes;
#[cfg(test)]
mod seeded;
mod serve;
pub mod settings;
pub mod work {
    //! Limits of work: how much is admitted at once, the threads that compute, and the memory of
    //! unsent answers.

    pub(crate) mod admission;
    pub(crate) mod file_threads;
    pub(crate) mod numbers;
    pub mod pool;
    pub(crate) mod spool;
    pub(crate) mod streams;
    pub(crate) mod turns;
    pub(crate) mod unsent;
}

pub use app::App;
pub use net::{ConnectionMetrics, Listener, Peer};
pub use registry::Models;
pub use router::openapi_document;
pub use serve::{ServeError, serve};
pub use settings::{NamedModel, Settings};
