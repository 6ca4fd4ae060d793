//! DynaMax with the length of a word's vector as its weight, set apart from its direction (our own
//! generalisation of Zhelezniak et al. 2019, section 3.2).
//!
//! With `r_w = |v_w|` and the words of both texts as the universe, a text's membership in universe
//! word `j` is `m_X(j) = max_i r_i^β · max(0, cos(x_i, u_j))`, and the score is
//! `Σ_j r_j^α min(m_X, m_Y) / Σ_j r_j^α max(m_X, m_Y)`. Exponents (1, 1) are DynaMax-Jaccard
//! itself; (1.5, 0), the default, measured best on vectors whose length says how much a word
//! matters. A model stores others as the settings of its section: `{"alpha": 1.5, "beta": 0.0}`.
//!
//! As in the plain form a repeated word stands twice in the universe, and sums run over the words
//! of either text apart and are added last.

use cognate_kernels::elementary;
use serde::Deserialize;

use crate::methods::common::unit_rows;
use crate::methods::common::unit_rows::UnitRows;
use crate::methods::info::BLOCK;
use crate::methods::sets::fuzzy;
use crate::methods::{Against, Compare, Cost, Info, Loaded, Scorer, Scratch, Shares};
use crate::model::{Model, ModelError, Phrase};

pub(crate) const INFO: Info = Info {
    cost: COST,
    summary: "Fuzzy sets over the words of both texts, each word weighted by its vector's length.",
    paper: "after Zhelezniak et al. 2019",
    range: (0.0, 1.0),
    ..Info::new("dynamax-weighted")
};

/// The products of all words of both texts, and their maxima.
pub(crate) const COST: Cost = Cost {
    pair: |n, m, d| products(n + m, d),
    candidate: |n, m, d| products(n, d) / BLOCK + 2 * products(1, d) * n * m + products(m, d),
    bound: None,
};

const fn products(words: u64, d: u64) -> u64 {
    words * words * (d / 2 + 48)
}

const SECTION: &str = "dynamax-weighted";

/// With a larger exponent the longest vector would decide alone, and squares would overflow.
const LARGEST_EXPONENT: f64 = 4.0;

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(method(model)?))))
}

/// The method under the exponents that the model names.
pub(crate) fn method(model: &Model) -> Result<Weighted, ModelError> {
    let exponents: Exponents = model.section_settings(SECTION)?;
    let Exponents { alpha, beta } = exponents;
    // Negative exponents would make words without length infinitely heavy.
    if [alpha, beta].iter().any(|exponent| !(0.0..=LARGEST_EXPONENT).contains(exponent)) {
        let problem =
            format!("expected alpha and beta from 0 to {LARGEST_EXPONENT}, got {alpha} and {beta}");
        return Err(model.broken_section(SECTION, problem));
    }
    Ok(Weighted { exponents })
}

/// The exponents of a vector's length: for a universe word (`alpha`) and for a member (`beta`).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Exponents {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
}

impl Default for Exponents {
    fn default() -> Self {
        Self { alpha: 1.5, beta: 0.0 }
    }
}

pub(crate) struct Weighted {
    pub(crate) exponents: Exponents,
}

#[derive(Default)]
pub(crate) struct Side {
    lengths: Vec<f32>,
    /// `r^α` of its words, in the order of the bag.
    weights: Vec<f64>,
    /// `r^β` of its words.
    reach: Vec<f32>,
    own: Vec<f32>,
    other: Vec<f32>,
}

impl Side {
    /// Takes in the words of a text, and gives back their rows, each brought to length 1.
    fn measure<'p>(
        &mut self,
        phrase: &'p Phrase<'_>,
        exponents: Exponents,
        memory: unit_rows::RowBuffers,
        work: &mut unit_rows::Work,
    ) -> UnitRows<'p> {
        let dims = phrase.model().dims();
        let rows = UnitRows::new(unit_rows::bag(phrase), dims, memory, &mut self.lengths);
        let powers = |exponent| self.lengths.iter().map(move |&r| power(f64::from(r), exponent));
        self.weights.clear();
        self.weights.extend(powers(exponents.alpha));
        self.reach.clear();
        self.reach.extend(powers(exponents.beta).map(|reach| reach as f32));
        if exponents.beta == 0.0 {
            rows.largest_within(work, &mut self.own);
        } else {
            farthest_in_rows(rows.gram(work).rows(), &self.reach, &mut self.own);
        }
        rows
    }

    /// The weighted intersection and union over this side's words.
    fn sums(&self) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for ((weight, &own), &other) in self.weights.iter().zip(&self.own).zip(&self.other) {
            sums[0] += weight * f64::from(own.min(other));
            sums[1] += weight * f64::from(own.max(other));
        }
        sums
    }
}

/// `length^exponent`. The usual exponents are computed by operations that every processor does exactly and
/// fast.
fn power(length: f64, exponent: f64) -> f64 {
    match exponent {
        0.0 => 1.0,
        1.0 => length,
        1.5 => length * length.sqrt(),
        2.0 => length * length,
        _ => elementary::power(length, exponent),
    }
}

/// Both sides' sums; added last, so that exchanging the texts changes no bit.
fn sums(one: &Side, other: &Side) -> [f64; 2] {
    let [one, other] = [one.sums(), other.sums()];
    [one[0] + other[0], one[1] + other[1]]
}

/// Writes for each row the largest product of a number with its column's reach; 0 if all are negative.
fn farthest_in_rows<'r>(rows: impl Iterator<Item = &'r [f32]>, reach: &[f32], out: &mut Vec<f32>) {
    out.clear();
    out.extend(rows.map(|row| {
        row.iter().zip(reach).map(|(cosine, reach)| cosine * reach).fold(0.0, f32::max)
    }));
}

/// For each column the largest number times its row's reach; 0 if all are below.
fn farthest_in_columns<'r>(
    rows: impl Iterator<Item = &'r [f32]>,
    columns: usize,
    reach: &[f32],
    out: &mut Vec<f32>,
) {
    out.clear();
    out.resize(columns, 0.0);
    for (row, reach) in rows.zip(reach) {
        for (most, cosine) in out.iter_mut().zip(row) {
            *most = most.max(cosine * reach);
        }
    }
}

impl Compare for Weighted {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let memory = std::mem::take(&mut scratch.unit_rows[0]);
        let mut side = std::mem::take(&mut scratch.sides[0]);
        let rows = side.measure(one, self.exponents, memory, &mut scratch.products);
        Prepared { exponents: self.exponents, one, rows, side }
    }
}

pub(crate) struct Prepared<'q> {
    exponents: Exponents,
    one: &'q Phrase<'q>,
    rows: UnitRows<'q>,
    side: Side,
}

impl Prepared<'_> {
    fn complete(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) {
        let (side, work) = (&mut scratch.sides[1], &mut scratch.products);
        let memory = std::mem::take(&mut scratch.unit_rows[1]);
        let rows = side.measure(other, self.exponents, memory, work);
        if self.exponents.beta == 0.0 {
            self.rows.largest_across(&rows, work, [&mut self.side.other, &mut side.other]);
        } else {
            let cosines = self.rows.products(&rows, work);
            farthest_in_rows(cosines.rows(), &side.reach, &mut self.side.other);
            let columns = side.weights.len();
            farthest_in_columns(cosines.rows(), columns, &self.side.reach, &mut side.other);
        }
        scratch.unit_rows[1] = rows.into_memory();
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        for (other, score) in many.iter().zip(out) {
            if self.one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            self.complete(other, scratch);
            let [above, below] = sums(&self.side, &scratch.sides[1]);
            *score = fuzzy::ratio(above, below) as f32;
        }
    }

    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        self.complete(other, scratch);
        let (one_side, other_side) = (&self.side, &scratch.sides[1]);
        let [_, below] = sums(one_side, other_side);
        let shares_of = |side: &Side| -> Vec<f32> {
            let members = side.weights.iter().zip(&side.own).zip(&side.other);
            let above = members.map(|((weight, &own), &other)| weight * f64::from(own.min(other)));
            above.map(|above| fuzzy::ratio(above, below) as f32).collect()
        };
        Some(Shares {
            one: unit_rows::in_text_order(self.one, &shares_of(one_side)),
            other: unit_rows::in_text_order(other, &shares_of(other_side)),
            memberships: Some(fuzzy::memberships(
                [self.one, other],
                [&one_side.own, &one_side.other],
                [&other_side.other, &other_side.own],
            )),
        })
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.unit_rows[0] = std::mem::take(&mut self.rows).into_memory();
        scratch.sides[0] = std::mem::take(&mut self.side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers() {
        for exponent in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0] {
            let close = (power(2.5, exponent) - 2.5_f64.powf(exponent)).abs() < 1e-12;
            assert!(close && power(0.0, exponent) == 0.0_f64.powf(exponent), "{exponent}");
        }
    }

    #[test]
    fn reach_belongs_to_the_member_not_to_the_universe() {
        let matrix = [0.5, -1.0, 0.25, 1.0, 0.0, -0.5];
        let mut out = Vec::new();
        farthest_in_rows(matrix.chunks_exact(3), &[1.0, 9.0, 4.0], &mut out);
        assert_eq!(out, [1.0, 1.0]);
        farthest_in_columns(matrix.chunks_exact(3), 3, &[4.0, 1.0], &mut out);
        assert_eq!(out, [2.0, 0.0, 1.0]);
    }
}
