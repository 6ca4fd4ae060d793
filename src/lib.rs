//! cognate says how alike very short texts are.
pub mod kernels;
pub mod metrics;
pub mod model;
pub mod pack;
pub mod text;
