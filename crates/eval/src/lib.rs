//! `cognate eval`: measures methods on labelled texts.
//!
//! Scores come from the [`Engine`](cognate::engine::Engine), so that published figures match the
//! service's answers; measures come from [`stats`](cognate_stats). This crate turns files into a
//! [`Report`], and a report into terminal output, JSON and an HTML page. Which figures matter for a
//! method's paper is not known here.

mod ascent;
mod calibrate;
mod combination;
mod contenders;
mod datasets;
pub mod events;
mod pairs;
mod ranking;
pub mod recommend;
mod report;
mod scoring;
mod set_auto;
mod sts;

use std::path::PathBuf;

pub use calibrate::{CalibrateOptions, Calibrated, calibrate};
use cognate::engine::QueryError;
use cognate::model::ModelError;
use cognate_files::ReadError;
pub use combination::{CombineOptions, StoredCombination, check_name, keep};
pub use contenders::Choice;
pub use pairs::{PairsOptions, eval_pairs};
pub use ranking::{RankingOptions, eval_ranking};
pub use report::{Figures, Report};
pub use set_auto::{AutoSet, set_auto};
pub use sts::{StsOptions, View, eval_sts};

/// What is measured, or why it cannot be.
pub type Result<T, E = EvalError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: {source}", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Options(String),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{file}: {source}")]
    Query { file: String, source: QueryError },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The data has no value for a measure.
    #[error("{file}: {problem}")]
    Data { file: String, problem: String },
}
