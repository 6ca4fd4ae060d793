//! Methods by shared tokens, without vectors.

pub mod bm25;
pub mod collection;
pub mod overlap;
pub mod ql;
pub mod rm3;
pub mod tf_idf;
pub(crate) mod token_bag;
