//! The service ([`http`]) and the command line ([`cli`]) over the crates in `crates/`.
//!
//! The meaning of a score, a ranking or a match is defined in those; here requests and flags are
//! read, limits enforced and answers written. docs/ARCHITECTURE.md lists what each crate knows.

#![forbid(unsafe_code)]

pub mod cli;
pub mod http;

/// The name of the program: of its folder of settings and models, of its spans and lines of the
/// log.
pub(crate) const PROGRAM: &str = "cognate";

/// Runs README's code as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
