//! Word Mover's Distance (Kusner et al. 2015, section 4, equation 1), exact.
//!
//! `min Σ T_ij |v_i − v_j|` over plans `T` that move the one text's words, each of mass
//! `count / n`, onto the other's; score `1 / (1 + distance)`. When only the best candidates are
//! wanted, the relaxed problem (section 4.1) rules most others out before the exact one is solved.
//! The score is no sum over words, so it does not come apart into shares.

use crate::methods::transport::mover;
use crate::methods::transport::mover::Mover;
use crate::methods::{Info, Loaded, Scorer};
use crate::model::Model;

pub(crate) const INFO: Info = Info {
    cost: mover::COST,
    summary: "How far the words of one text have to travel to become those of the other.",
    paper: "Kusner et al. 2015",
    range: (0.0, 1.0),
    ..Info::new("wmd")
};

pub(crate) fn load(_model: &Model) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(Mover::Points))))
}
