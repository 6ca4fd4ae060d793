//! Max-Jaccard: fuzzy sets of the dimensions themselves (Zhelezniak et al. 2019, section 3, with the
//! universe `U = I`).
//!
//! `m_X(d) = max(0, max over words w of X of v(w)_d)`, score `Σ min(m_X, m_Y) / Σ max(m_X, m_Y)`.

use crate::methods::info::BLOCK;
use crate::methods::sets::fuzzy::{FixedUniverse, Universe};
use crate::methods::{Cost, Info, Loaded, Scorer};
use crate::model::Model;

pub(crate) const INFO: Info = Info {
    cost: COST,
    summary: "Fuzzy sets of the vectors' dimensions, compared by Jaccard's ratio.",
    paper: "Zhelezniak et al. 2019",
    range: (0.0, 1.0),
    ..Info::new("max-jaccard")
};

/// Each number of each word, and the ratio over all dimensions.
const COST: Cost = Cost {
    pair: |n, m, d| (16 * (n + m) + 80) * d,
    candidate: |n, m, d| (16 * n / BLOCK + 16 * m + 40) * d,
    bound: None,
};

pub(crate) fn load(_model: &Model) -> Loaded {
    let method = FixedUniverse { universe: Universe::Dimensions, unit: false };
    Ok(Ok(Scorer::Compare(Box::new(method))))
}
