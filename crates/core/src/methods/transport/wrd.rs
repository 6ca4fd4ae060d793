//! Word Rotator's Distance (Yokoi et al. 2020, section 4), exact.
//!
//! `min Σ T_ij (1 − cos(v_i, v_j))` over plans `T` that move the one text's words, each of mass
//! `|v_i|` as a share of all, onto the other's; score `1 − distance`. A word whose vector has no
//! length has no mass and is left out; a text of such words alone is like no text but itself.

use crate::methods::transport::mover;
use crate::methods::transport::mover::Mover;
use crate::methods::{Info, Loaded, Scorer};
use crate::model::Model;

pub(crate) const INFO: Info = Info {
    cost: mover::COST,
    summary: "How far the words of one text have to turn to become those of the other.",
    paper: "Yokoi et al. 2020",
    range: (-1.0, 1.0),
    ..Info::new("wrd")
};

pub(crate) fn load(_model: &Model) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(Mover::Directions))))
}
