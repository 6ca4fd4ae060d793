//! One integration binary: a folder for each subject, and in it a file for each story about the built
//! crate. `support` holds what they share; a file whose name ends in `_data` needs the data beside the
//! checkout.

// Outside functions marked as tests the lint does not see that this is all test code.
#![allow(clippy::unwrap_used)]

mod bulk;
#[cfg(feature = "columns")]
mod bulk_columns;
mod collections;
mod command_line;
mod dedupe;
mod eval;
mod events;
mod export;
mod fit;
mod fuzz_replay;
mod fuzz_seeds;
mod http;
mod pack;
mod pairs;
mod project;
mod support;
mod train;
mod versions;
