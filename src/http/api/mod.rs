//! The endpoints, one file each, and the pipeline that those which compute have in common.

pub mod catalogue;
pub mod docs;
pub mod embed;
pub mod explain;
pub mod operations;
pub mod pages;
pub mod pipeline;
pub mod rank;
pub mod similarity;
pub mod similarity_stream;
