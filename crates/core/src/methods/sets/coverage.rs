//! How far each text covers the other: a fuzzy set measure that discounts what a text repeats (our own,
//! derived from DynaMax).
//!
//! With `c_jk = max(0, cos(v_j, v_k))^p`, a word `j` of text `X` counts
//! `q_j = |v_j|^α / Σ_{k ∈ X} c_jk²`, its length over how often its own text repeats it, and
//!
//! `cov(X → Y) = Σ_{j ∈ X} q_j max_{k ∈ Y} c_jk / Σ_{j ∈ X} q_j`,
//!
//! `score(X, Y) = √(cov(X → Y) · cov(Y → X))`.
//!
//! [`dynamax_weighted`] with exponents (α, 0) is the covered weight
//! of both texts over their whole weight, has `p = 1` and discounts nothing; a long text then decides
//! alone.
//! The defaults, α = 1.75 and p = 0.75, were chosen on development sets. A model stores others as the
//! settings of its section: `{"alpha": 1.75, "p": 0.75}`. Both are multiples of a quarter, because
//! square roots and products are the same on every processor, and powers are not.

use serde::Deserialize;

use crate::methods::common::unit_rows;
use crate::methods::common::unit_rows::UnitRows;
use crate::methods::sets::{dynamax_weighted, fuzzy};
use crate::methods::{Against, Compare, Cost, Info, Kind, Loaded, Reads, Scorer, Scratch, Shares};
use crate::model::{Model, ModelError, Phrase};

/// What is to be known of it.
pub const INFO: Info = Info {
    name: "coverage",
    kind: Kind::Similarity,
    cost: COST,
    summary: "How far the words of each text are covered by the other, repetitions discounted.",
    paper: "after Zhelezniak et al. 2019",
    range: (0.0, 1.0),
    reads: Reads::Words,
    embeds: false,
    weights_frequency: false,
};

/// The products are those of dynamax-weighted; the roots are few beside them.
pub(crate) const COST: Cost = dynamax_weighted::COST;

/// The section whose settings hold the exponents.
pub const SECTION: &str = "coverage";

/// Beyond this a text would be its longest vector and nothing else.
const LARGEST_EXPONENT: f64 = 4.0;

/// Needs vectors alone.
pub fn load(model: &Model) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(method(model)?))))
}

/// The method under the exponents that the model names.
pub(crate) fn method(model: &Model) -> Result<Coverage, ModelError> {
    let Exponents { alpha, p } = model.section_settings(SECTION)?;
    let (length, cosine) = (Quarters::of(alpha), Quarters::of(p).filter(|p| p.0 > 0));
    let (Some(length), Some(cosine)) = (length, cosine) else {
        let problem = format!(
            "expected alpha from 0 and p from 0.25 to {LARGEST_EXPONENT}, multiples of 0.25, got \
             {alpha} and {p}"
        );
        return Err(model.broken_section(SECTION, problem));
    };
    Ok(Coverage { length, cosine })
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Exponents {
    alpha: f64,
    p: f64,
}

impl Default for Exponents {
    fn default() -> Self {
        Self { alpha: 1.75, p: 0.75 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quarters(u32);

impl Quarters {
    /// An exponent that is a multiple of a quarter and not too large.
    fn of(exponent: f64) -> Option<Self> {
        let quarters = exponent * 4.0;
        let fits = (0.0..=LARGEST_EXPONENT).contains(&exponent) && quarters.fract() == 0.0;
        fits.then_some(Self(quarters as u32))
    }

    /// `base` to this power, `base` not below 0.
    fn power(self, base: f64) -> f64 {
        let root = match self.0 % 4 {
            0 => 1.0,
            1 => base.sqrt().sqrt(),
            2 => base.sqrt(),
            _ => (base * base.sqrt()).sqrt(),
        };
        (0..self.0 / 4).fold(root, |power, _| power * base)
    }

    /// Raises cosines to this power; no cosine is below 0.
    fn raise(self, cosines: &mut [f32]) {
        match self.0 {
            3 => cosines.iter_mut().for_each(|c| *c = (*c * c.sqrt()).sqrt()),
            4 => {}
            _ => cosines.iter_mut().for_each(|c| *c = self.power(f64::from(*c)) as f32),
        }
    }

    /// The sum over cosines, those below 0 taken as 0, of their squares to this power.
    fn squares(self, cosines: &[f32]) -> f64 {
        match self.0 {
            3 => sum(cosines, |c| c * c.sqrt()),
            4 => sum(cosines, |c| c * c),
            _ => sum(cosines, |c| self.power(f64::from(c * c)) as f32),
        }
    }
}

/// Terms that are added side by side.
const LANES: usize = 8;

/// The sum of `term` over numbers, those below 0 taken as 0; always in the same order, which any
/// width of register can follow.
fn sum(numbers: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let mut lanes = [0.0_f32; LANES];
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &number) in lanes.iter_mut().zip(chunk) {
            *lane += term(number.max(0.0));
        }
    }
    for (lane, &number) in lanes.iter_mut().zip(rest) {
        *lane += term(number.max(0.0));
    }
    lanes.iter().map(|&lane| f64::from(lane)).sum()
}

/// Coverage under these exponents.
pub(crate) struct Coverage {
    /// α.
    length: Quarters,
    /// p.
    cosine: Quarters,
}

/// What one text brings to the comparison, but for its rows.
#[derive(Default)]
pub(crate) struct Side {
    /// The lengths of its words' vectors, in the order of the bag.
    lengths: Vec<f32>,
    /// `q_j` of its words.
    weights: Vec<f64>,
    /// Their sum.
    total: f64,
    /// How far the other text covers each of its words.
    covered: Vec<f32>,
}

impl Side {
    /// Takes in the words of a text, and gives back their rows, each brought to length 1.
    fn measure<'p>(
        &mut self,
        phrase: &'p Phrase<'_>,
        method: &Coverage,
        memory: unit_rows::Memory,
        work: &mut unit_rows::Work,
    ) -> UnitRows<'p> {
        let rows = UnitRows::of(phrase, memory, &mut self.lengths);
        let cosines = rows.gram(work);
        self.weights.clear();
        self.weights.extend(self.lengths.iter().zip(cosines.rows()).map(|(&length, cosines)| {
            let weight = method.length.power(f64::from(length));
            positive_ratio(weight, method.cosine.squares(cosines))
        }));
        self.total = self.weights.iter().sum();
        rows
    }

    /// `Σ q_j max_k c_jk`.
    fn met(&self) -> f64 {
        self.weights.iter().zip(&self.covered).map(|(weight, &c)| weight * f64::from(c)).sum()
    }

    /// The coverage of this side's text by the other.
    fn coverage(&self) -> f64 {
        fuzzy::ratio(self.met(), self.total)
    }

    /// What each of the words adds to half of `score`.
    fn shares(&self, score: f64) -> Vec<f32> {
        let half = positive_ratio(score / 2.0, self.met());
        let words = self.weights.iter().zip(&self.covered);
        words.map(|(weight, &covered)| (half * weight * f64::from(covered)) as f32).collect()
    }
}

/// `above / below`, 0 where `below` is: a word without length has no partner, itself included.
fn positive_ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

/// The geometric mean of both coverages; exchanging the texts changes no bit.
fn score(one: &Side, other: &Side) -> f64 {
    (one.coverage() * other.coverage()).sqrt()
}

impl Compare for Coverage {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let memory = std::mem::take(&mut scratch.unit_rows[0]);
        let mut side = std::mem::take(&mut scratch.coverage[0]);
        let rows = side.measure(one, self, memory, &mut scratch.products);
        Prepared { method: self, one, rows, side }
    }
}

/// A text's rows, and what it brings to comparisons.
pub(crate) struct Prepared<'q> {
    method: &'q Coverage,
    one: &'q Phrase<'q>,
    rows: UnitRows<'q>,
    side: Side,
}

impl Prepared<'_> {
    fn complete(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) {
        let (side, work) = (&mut scratch.coverage[1], &mut scratch.products);
        let memory = std::mem::take(&mut scratch.unit_rows[1]);
        let rows = side.measure(other, self.method, memory, work);
        // Powers keep the order of cosines, so that the largest is raised alone.
        self.rows.largest_across(&rows, work, [&mut self.side.covered, &mut side.covered]);
        scratch.unit_rows[1] = rows.into_memory();
        self.method.cosine.raise(&mut self.side.covered);
        self.method.cosine.raise(&mut side.covered);
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        for (other, out) in many.iter().zip(out) {
            if self.one.same_bag(other) {
                *out = 1.0;
                continue;
            }
            self.complete(other, scratch);
            *out = score(&self.side, &scratch.coverage[1]) as f32;
        }
    }

    /// Either text's words share half of the score, each by what it adds to its text's coverage.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        self.complete(other, scratch);
        let (one_side, other_side) = (&self.side, &scratch.coverage[1]);
        let score = score(one_side, other_side);
        let own = |side: &Side| -> Vec<f32> {
            side.weights.iter().map(|&weight| if weight > 0.0 { 1.0 } else { 0.0 }).collect()
        };
        Some(Shares {
            one: unit_rows::in_text_order(self.one, &one_side.shares(score)),
            other: unit_rows::in_text_order(other, &other_side.shares(score)),
            memberships: Some(fuzzy::memberships(
                [self.one, other],
                [&own(one_side), &one_side.covered],
                [&other_side.covered, &own(other_side)],
            )),
        })
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.unit_rows[0] = std::mem::take(&mut self.rows).into_memory();
        scratch.coverage[0] = std::mem::take(&mut self.side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_are_powers() {
        for quarters in 0..=16 {
            let exponent = f64::from(quarters) / 4.0;
            let power = Quarters::of(exponent).unwrap();
            for base in [0.0_f64, 0.3, 1.0, 2.5] {
                assert!(
                    (power.power(base) - base.powf(exponent)).abs() < 1e-12,
                    "{base} {power:?}"
                );
            }
            let cosines = [0.25, -0.5, 1.0, 0.5];
            let squares: f64 = [0.25_f64, 1.0, 0.5].iter().map(|c| c.powf(2.0 * exponent)).sum();
            // What is not above 0 counts nothing, but for 0 to the power of 0.
            let zero = 0.0_f64.powf(2.0 * exponent);
            assert!((power.squares(&cosines) - squares - zero).abs() < 1e-6, "{power:?}");
            let mut raised = [0.5_f32];
            power.raise(&mut raised);
            assert!((f64::from(raised[0]) - 0.5_f64.powf(exponent)).abs() < 1e-7, "{power:?}");
        }
    }

    #[test]
    fn other_exponents_are_refused() {
        for exponent in [-0.25, 0.7, 4.25, f64::NAN, f64::INFINITY] {
            assert_eq!(Quarters::of(exponent), None, "{exponent}");
        }
    }

    #[test]
    fn the_order_of_a_sum_does_not_depend_on_its_length() {
        let numbers: Vec<f32> = (0..19).map(|n| (n as f32 * 0.37).sin()).collect();
        let slow: f64 = numbers.iter().map(|&n| f64::from(n.max(0.0))).sum();
        assert!((sum(&numbers, |n| n) - slow).abs() < 1e-6);
    }
}
