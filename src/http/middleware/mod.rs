//! The layers around routes: what every request has, and who may send it.

pub(crate) mod authorize;
pub(crate) mod gate;
mod hosts;
pub(crate) mod request_context;
