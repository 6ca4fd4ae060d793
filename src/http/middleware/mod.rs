//! The layers around routes: what every request has, and who may send it.

pub mod authorize;
pub mod request_context;
