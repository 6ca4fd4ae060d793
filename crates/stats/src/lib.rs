//! The measures of evaluation and their significance tests: numbers in, numbers out.
//!
//! Nothing here knows a text, a model, a file or a method: callers bring scores, gold values,
//! labels, grades or per-query differences, and take numbers back. Only the standard library is
//! used, and everything that draws at random takes a seed and gives the same bits for it.
//!
//! No NaN leaves this module. Where a measure has no value for what it was given (too few items,
//! lengths that differ, a number that is not finite, a side that is constant) the answer is `None`,
//! and the caller says what that counts as; a ratio whose denominator counts nothing is 0 by
//! definition, as its documentation says.

pub mod bootstrap;
pub mod classification;
pub mod clustering;
pub mod correlation;
pub mod curve;
pub mod distribution;
pub mod divergence;
pub mod page;
pub mod ranking;
pub mod signed_rank;
pub mod significance;
pub mod threshold;

mod normal;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod microblog;
