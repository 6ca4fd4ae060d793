//! Methods measured on labelled texts, thresholds and combinations.

mod calibrate;
mod combination;
mod figures;
mod kept_combination;
mod lexical;
mod published_data;
mod recommend;
mod set_auto;
