//! Limits of work: how much is taken on at once, the threads that compute, and the memory of answers
//! that are not sent yet.

pub mod admission;
pub mod pool;
pub mod streams;
pub mod unsent;
