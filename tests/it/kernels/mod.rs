//! Numeric kernels against other ways to the same numbers.

mod linalg;
mod transport;
