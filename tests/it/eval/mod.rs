//! Methods measured on labelled texts, thresholds and combinations.

mod calibrate;
mod combination;
pub mod figures;
mod published_data;
mod recommend;
mod set_auto;
