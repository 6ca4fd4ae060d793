//! Which trace a request belongs to. Who collects traces is not known here.

mod parent;

pub use parent::Parent;
pub use parent::TraceId;
