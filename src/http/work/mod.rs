//! Limits of work: how much is taken on at once, the threads that compute, and the memory of answers
//! that are not sent yet.

pub(crate) mod admission;
pub(crate) mod file_threads;
pub mod pool;
pub(crate) mod spool;
pub(crate) mod streams;
pub(crate) mod turns;
pub(crate) mod unsent;
