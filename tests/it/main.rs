//! One integration binary: each file tells one story about the built crate.

mod linalg;
mod transport;
