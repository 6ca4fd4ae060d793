//! The service ([`http`]) and the command line ([`cli`]) over the crates that stand in `crates/`.
//!
//! What a score, a ranking or a match means is known below; here requests and flags are read, limits held and
//! answers written. docs/ARCHITECTURE.md tells which crate knows what.

#![forbid(unsafe_code)]

pub mod cli;
pub mod http;

/// The name of the program: of its folder of settings and models, of its spans and lines of the log.
pub(crate) const PROGRAM: &str = "cognate";

/// README's code is run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
