//! Numeric kernels against other ways to the same numbers.

#![allow(clippy::unwrap_used)]

mod linalg;
mod transport;
