//! Methods by one vector a text: averages of its words' vectors, weighted and corrected, and their
//! extremes.

pub mod avg_cos;
pub mod extremes;
pub mod idf_mean;
pub mod learned_idf;
pub mod sif;
pub mod top30;
pub mod usif;
pub(crate) mod weighted_sum;
