//! The service and the program under test; what other crates' tests need as well is in `cognate_testing`.

pub mod app;
pub mod command;
pub mod listener;
pub mod process;

pub use cognate_testing::*;
