//! Arithmetic on rows of numbers: no words, no files.

pub mod convolution;
pub mod elementary;
pub mod linalg;
pub mod random;
pub mod scan;
pub mod simd;
pub mod transport;
pub mod vector;
