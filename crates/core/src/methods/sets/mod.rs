//! Methods by fuzzy sets of words: how much each word of a universe belongs to either text.

pub mod ablation;
pub mod coverage;
pub mod dynamax;
pub mod dynamax_weighted;
pub mod fbow_jaccard;
mod fuzzy;
pub mod max_jaccard;
pub mod soft_cardinality;
