//! What methods of more than one family use; no method lives here.

pub(crate) mod text_vector;
pub(crate) mod unit_rows;
pub(crate) mod words_met;
