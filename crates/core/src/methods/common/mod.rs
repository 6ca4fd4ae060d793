//! What methods of more than one family use; no method lives here.

pub(crate) mod cosine;
pub(crate) mod counted;
pub(crate) mod distinct;
pub(crate) mod rows;
pub(crate) mod text_vector;
pub(crate) mod unit_rows;
pub(crate) mod words_met;
