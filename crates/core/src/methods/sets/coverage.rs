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

use cognate_kernels::simd;
use serde::Deserialize;

use crate::methods::common::union::Union;
use crate::methods::common::unit_rows;
use crate::methods::common::unit_rows::{Products, UnitRows};
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
    ignoring_opposites: None,
};

/// The products are those of dynamax-weighted; the roots are few beside them.
pub(crate) const COST: Cost = dynamax_weighted::COST;

/// The section whose settings hold the exponents.
pub const SECTION: &str = "coverage";

/// With a larger exponent the longest vector would decide alone.
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

    /// Raises the squares of cosines, those below 0 taken as 0, to this power.
    fn raise_squares(self, cosines: &[f32], out: &mut Vec<f32>) {
        out.clear();
        let cosines = cosines.iter().map(|&c| if c > 0.0 { c } else { 0.0 });
        match self.0 {
            3 => out.extend(cosines.map(|c| c * c.sqrt())),
            4 => out.extend(cosines.map(|c| c * c)),
            _ => out.extend(cosines.map(|c| self.power(f64::from(c * c)) as f32)),
        }
    }
}

/// Coverage under these exponents.
pub(crate) struct Coverage {
    /// α.
    length: Quarters,
    /// p.
    cosine: Quarters,
}

/// One text's lengths and weights.
#[derive(Default)]
pub(crate) struct Side {
    /// The lengths of its words' vectors, in the order of the bag.
    lengths: Vec<f32>,
    /// The squares of its words' cosines, raised.
    squares: Vec<f32>,
    /// How often the text repeats each word; of a text alone, for the words at these places.
    repeated: Vec<f64>,
    places: Vec<u32>,
    /// `q_j` of its words.
    weights: Vec<f64>,
    /// Their sum.
    total: f64,
    /// For each word the degree to which the other text covers it.
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
        let dims = phrase.model().dims();
        let rows = UnitRows::of(unit_rows::bag(phrase), dims, memory, &mut self.lengths);
        let cosines = rows.gram(work);
        method.cosine.raise_squares(cosines.numbers(), &mut self.squares);
        self.places.clear();
        self.places.extend(0..self.lengths.len() as u32);
        self.repeated.resize(cosines.stride(), 0.0);
        simd::sum_of_rows(&self.squares, &self.places, &mut self.repeated);
        let words = self.lengths.iter().zip(&self.repeated);
        self.weights.clear();
        self.weights.extend(words.map(|(&length, &repeated)| method.weight(length, repeated)));
        self.total = self.weights.iter().sum();
        rows
    }

    /// Takes in the words of one of two united texts, and how far the other covers them: the lengths and
    /// the raised squares of the cosines are those of the union's words.
    fn measure_united(
        &mut self,
        side: usize,
        method: &Coverage,
        union: &Union,
        lengths: &[f32],
        squares: &Products<'_>,
    ) {
        // In the order of the bag, in which they are added up.
        let places = union.places(side);
        self.repeated.resize(squares.stride(), 0.0);
        simd::sum_of_rows(squares.numbers(), places, &mut self.repeated);
        self.weights.clear();
        let words = places.iter().map(|&at| (lengths[at as usize], self.repeated[at as usize]));
        self.weights.extend(words.map(|(length, repeated)| method.weight(length, repeated)));
        self.total = self.weights.iter().sum();
        union.memberships(side, 1 - side, &mut self.covered);
        // Powers keep the order of cosines, so that the largest is raised alone.
        method.cosine.raise(&mut self.covered);
    }

    /// `Σ q_j max_k c_jk`.
    fn met(&self) -> f64 {
        self.weights.iter().zip(&self.covered).map(|(weight, &c)| weight * f64::from(c)).sum()
    }

    /// The coverage of this side's text by the other.
    fn coverage(&self) -> f64 {
        fuzzy::ratio(self.met(), self.total)
    }

    /// The share of half of `score` of each word.
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

impl Coverage {
    /// What a word counts: its length over how often its own text repeats it.
    fn weight(&self, length: f32, repeated: f64) -> f64 {
        positive_ratio(self.length.power(f64::from(length)), repeated)
    }

    /// One text against one: each different word of both is multiplied with every other once.
    fn pair(&self, one: &Phrase<'_>, other: &Phrase<'_>, scratch: &mut Scratch) -> f64 {
        let Scratch { union, products, unit_rows: [memory, _], .. } = scratch;
        let (lengths, squares) = (&mut scratch.one_numbers, &mut scratch.cross);
        let (texts, dims) = ([one, other], one.model().dims());
        union.unite(texts);
        let rows = UnitRows::of(union.words(texts), dims, std::mem::take(memory), lengths);
        let cosines = rows.gram(products);
        union.compare(&cosines);
        let [one, other] = &mut scratch.coverage;
        self.cosine.raise_squares(cosines.numbers(), squares);
        let squares = cosines.of(squares);
        one.measure_united(0, self, union, lengths, &squares);
        other.measure_united(1, self, union, lengths, &squares);
        *memory = rows.into_memory();
        score(one, other)
    }
}

impl Compare for Coverage {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> Prepared<'q> {
        Prepared { method: self, one, many: None }
    }
}

/// A text. Its rows, lengths and weights pay only for several comparisons.
pub(crate) struct Prepared<'q> {
    method: &'q Coverage,
    one: &'q Phrase<'q>,
    many: Option<(UnitRows<'q>, Side)>,
}

impl Prepared<'_> {
    /// Compares the text with another; gives back what was found of either.
    fn complete<'s>(&'s mut self, other: &Phrase<'_>, scratch: &'s mut Scratch) -> [&'s Side; 2] {
        let (method, one, work) = (self.method, self.one, &mut scratch.products);
        let [memory, of_other] = &mut scratch.unit_rows;
        let [prepared, side] = &mut scratch.coverage;
        let (rows, own) = self.many.get_or_insert_with(|| {
            let mut own = std::mem::take(prepared);
            let rows = own.measure(one, method, std::mem::take(memory), work);
            (rows, own)
        });
        let others = side.measure(other, method, std::mem::take(of_other), work);
        // Powers keep the order of cosines, so that the largest is raised alone.
        rows.largest_across(&others, work, [&mut own.covered, &mut side.covered]);
        *of_other = others.into_memory();
        method.cosine.raise(&mut own.covered);
        method.cosine.raise(&mut side.covered);
        [own, side]
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        let only = many.len() == 1 && self.many.is_none();
        for (other, out) in many.iter().zip(out) {
            *out = if self.one.same_bag(other) {
                1.0
            } else if only {
                self.method.pair(self.one, other, scratch) as f32
            } else {
                let [one, other] = self.complete(other, scratch);
                score(one, other) as f32
            };
        }
    }

    /// The words of either text share half of the score, by their parts of the text's coverage.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let one = self.one;
        let [one_side, other_side] = self.complete(other, scratch);
        let score = score(one_side, other_side);
        let own = |side: &Side| -> Vec<f32> {
            side.weights.iter().map(|&weight| if weight > 0.0 { 1.0 } else { 0.0 }).collect()
        };
        Some(Shares {
            one: unit_rows::in_text_order(one, &one_side.shares(score)),
            other: unit_rows::in_text_order(other, &other_side.shares(score)),
            memberships: Some(fuzzy::memberships(
                [one, other],
                [&own(one_side), &one_side.covered],
                [&other_side.covered, &own(other_side)],
            )),
        })
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        if let Some((rows, side)) = self.many.take() {
            scratch.unit_rows[0] = rows.into_memory();
            scratch.coverage[0] = side;
        }
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
            let (cosines, mut squares) = ([0.25, -0.5, 1.0, 0.5], Vec::new());
            power.raise_squares(&cosines, &mut squares);
            for (square, cosine) in squares.into_iter().zip([0.25_f64, 0.0, 1.0, 0.5]) {
                let expected = cosine.powf(2.0 * exponent);
                assert!((f64::from(square) - expected).abs() < 1e-6, "{power:?} {cosine}");
            }
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
}
