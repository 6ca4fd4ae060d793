//! Measures for evaluation and their significance tests: numbers in, numbers out.
//!
//! Texts, models, files and methods are not known here: callers pass scores, gold values, labels,
//! grades or differences per query. Everything random takes a seed and gives the same bits for it.
//!
//! No measure returns NaN. If a measure has no value (too few items, different lengths, a number
//! that is not finite, a constant side) it returns `None`, and the caller decides what that counts
//! as; a ratio with a denominator of zero counts is 0, as documented for each.

pub mod bootstrap;
pub mod classification;
pub mod clustering;
pub mod correlation;
pub mod distribution;
pub mod page;
pub mod ranking;
pub mod significance;
pub mod threshold;

mod normal;

#[cfg(test)]
mod golden;
