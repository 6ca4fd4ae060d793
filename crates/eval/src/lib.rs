//! `cognate eval`: methods measured on labelled texts.
//!
//! Scores come through the [`Engine`](cognate::engine::Engine), so that a published figure is what
//! the service answers; measures come from [`stats`](cognate_stats). What is here is the way
//! from files to a [`Report`], and from a report to a terminal, to JSON and to one HTML page. Which
//! figures matter for a method's paper is not known here.

mod ascent;
mod calibrate;
mod combination;
mod contenders;
mod datasets;
mod error;
pub mod events;
mod page;
mod pairs;
mod ranking;
pub mod recommend;
mod report;
mod scoring;
mod set_auto;
mod sts;
mod summary;
mod table;

pub use calibrate::{CalibrateOptions, Calibrated, calibrate};
pub use combination::{CombineOptions, Kept, check_name, keep};
pub use contenders::Choice;
pub use error::EvalError;
pub use page::{Presented, html};
pub use pairs::{PairsOptions, eval_pairs};
pub use ranking::{RankingOptions, eval_ranking};
pub use report::{Figures, Report};
pub use set_auto::{AutoSet, Deciding, set_auto};
pub use sts::{StsOptions, View, eval_sts};
pub use summary::terminal;
