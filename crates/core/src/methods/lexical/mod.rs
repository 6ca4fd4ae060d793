//! Methods by shared tokens, without vectors.

pub mod bm25;
mod collection;
pub mod overlap;
pub mod posts;
pub mod ql;
pub mod rm3;
pub mod tf_idf;
pub(crate) mod token_bag;
