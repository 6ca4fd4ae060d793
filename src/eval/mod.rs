//! `cognate eval`: methods measured on labelled texts.
//!
//! Scores come through the [`Engine`](crate::engine::Engine), so that a published figure is what
//! the service answers; measures come from [`stats`](crate::stats). What is here is the way
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
mod parallel;
mod ranking;
pub mod recommend;
mod report;
mod scoring;
mod set_auto;
mod sts;
mod summary;
mod table;

pub use calibrate::CalibrateOptions;
pub use calibrate::Calibrated;
pub use calibrate::calibrate;
pub use combination::CombineOptions;
pub use combination::Kept;
pub use combination::check_name;
pub use combination::keep;
pub use contenders::Choice;
pub use error::EvalError;
pub use page::Presented;
pub use page::html;
pub use pairs::PairsOptions;
pub use pairs::eval_pairs;
pub use ranking::RankingOptions;
pub use ranking::eval_ranking;
pub use report::Figures;
pub use report::Report;
pub use set_auto::AutoSet;
pub use set_auto::Deciding;
pub use set_auto::set_auto;
pub use sts::StsOptions;
pub use sts::View;
pub use sts::eval_sts;
pub use summary::terminal;
