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

use crate::methods::common::unit_rows;
use crate::methods::common::unit_rows::UnitRows;
use crate::methods::sets::{dynamax_weighted, fuzzy};
use crate::methods::{Against, Compare, Cost, Info, Loaded, Parts, Scorer, Scratch, Shares};
use crate::model::{Model, ModelError, Phrase};

pub(crate) const INFO: Info = Info {
    cost: COST,
    summary: "How far the words of each text are covered by the other, repetitions discounted.",
    paper: "after Zhelezniak et al. 2019",
    range: (0.0, 1.0),
    ..Info::new("coverage")
};

/// The products are those of dynamax-weighted; the roots are few beside them.
pub(crate) const COST: Cost = dynamax_weighted::COST;

const SECTION: &str = "coverage";

/// Number of texts of which the memory is kept for the next texts.
const KEPT_PARTS: usize = 256;

/// With a larger exponent the longest vector would decide alone.
const LARGEST_EXPONENT: f64 = 4.0;

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(method(model)?))))
}

/// The method under the exponents that the model names.
pub(crate) fn method(model: &Model) -> Result<Coverage, ModelError> {
    let Exponents { alpha, p } = model.section_settings(SECTION)?;
    let (length, cosine) = (Quarters::new(alpha), Quarters::new(p).filter(|p| p.0 > 0));
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
    fn new(exponent: f64) -> Option<Self> {
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

pub(crate) struct Coverage {
    /// α.
    length: Quarters,
    /// p.
    cosine: Quarters,
}

/// What the words of a text count.
#[derive(Default)]
pub(crate) struct Side {
    /// `q_j` of its words, in the order of the bag.
    weights: Vec<f64>,
    total: f64,
}

/// A text by itself: its rows, each brought to length 1, and what its words count.
pub(crate) struct TextParts<'p> {
    rows: UnitRows<'p>,
    side: Side,
}

#[derive(Default)]
pub(crate) struct Buffers {
    sides: [Side; 2],
    /// For each word of either text the degree to which the other covers it.
    covered: [Vec<f32>; 2],
    work: Work,
    /// Buffers of [`TextParts`] that were dropped, for reuse.
    left: Vec<(unit_rows::RowBuffers, Side)>,
}

impl Buffers {
    /// Keeps the buffers of these parts for later texts, up to the usual number of parts.
    pub(crate) fn take_back(&mut self, parts: Vec<TextParts<'_>>) {
        let room = KEPT_PARTS.saturating_sub(self.left.len());
        let kept = parts.into_iter().take(room);
        self.left.extend(kept.map(|parts| (parts.rows.into_memory(), parts.side)));
    }
}

#[derive(Default)]
struct Work {
    lengths: Vec<f32>,
    /// The squares of its words' cosines, raised.
    squares: Vec<f32>,
    /// How often the text repeats each word; for a text alone, only the words at `places`.
    repeated: Vec<f64>,
    places: Vec<u32>,
}

impl Side {
    fn weigh(&mut self, weights: impl Iterator<Item = f64>) {
        self.weights.clear();
        self.weights.extend(weights);
        self.total = self.weights.iter().sum();
    }

    /// `Σ q_j max_k c_jk`.
    fn met(&self, covered: &[f32]) -> f64 {
        self.weights.iter().zip(covered).map(|(weight, &c)| weight * f64::from(c)).sum()
    }

    fn coverage(&self, covered: &[f32]) -> f64 {
        fuzzy::ratio(self.met(covered), self.total)
    }

    /// The share of half of `score` of each word.
    fn shares(&self, covered: &[f32], score: f64) -> Vec<f32> {
        let half = positive_ratio(score / 2.0, self.met(covered));
        let words = self.weights.iter().zip(covered);
        words.map(|(weight, &covered)| (half * weight * f64::from(covered)) as f32).collect()
    }
}

/// Returns `above / below`, or 0 if `below` is 0: a word whose vector has length 0 has no partner.
fn positive_ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

/// The geometric mean of both coverages; exchanging the texts changes no bit.
fn score([one, other]: [&Side; 2], covered: &[Vec<f32>; 2]) -> f64 {
    (one.coverage(&covered[0]) * other.coverage(&covered[1])).sqrt()
}

impl Coverage {
    /// The weight of a word: the length of its vector over the number of its repetitions in the text.
    fn weight(&self, length: f32, repeated: f64) -> f64 {
        positive_ratio(self.length.power(f64::from(length)), repeated)
    }

    /// One text against one: each different word of both is multiplied with every other once.
    fn pair(&self, one: &Phrase<'_>, other: &Phrase<'_>, scratch: &mut Scratch) -> f64 {
        scratch.cosines.forget();
        scratch.cosines.know([one, other]);
        let (union, cosines, lengths) = scratch.cosines.parts();
        let Buffers { sides: [one_side, other_side], covered, work, .. } = &mut scratch.coverage;
        union.compare(&cosines);
        self.cosine.raise_squares(cosines.numbers(), &mut work.squares);
        let squares = cosines.of(&work.squares);
        for (side, (of_side, covered)) in
            [&mut *one_side, other_side].into_iter().zip(covered.iter_mut()).enumerate()
        {
            // In the order of the bag, in which they are added up.
            let places = union.places(side);
            work.repeated.resize(squares.stride(), 0.0);
            simd::sum_of_rows(squares.numbers(), places, &mut work.repeated);
            let repeated = &work.repeated;
            let words = places.iter().map(|&at| (lengths[at as usize], repeated[at as usize]));
            of_side.weigh(words.map(|(length, repeated)| self.weight(length, repeated)));
            union.memberships(side, 1 - side, covered);
            // Powers keep the order of cosines, so that the largest is raised alone.
            self.cosine.raise(covered);
        }
        let [one, other] = &scratch.coverage.sides;
        score([one, other], &scratch.coverage.covered)
    }

    fn text_parts<'p>(
        &self,
        phrase: &'p Phrase<'p>,
        (memory, mut side): (unit_rows::RowBuffers, Side),
        products: &mut unit_rows::Work,
        work: &mut Work,
    ) -> TextParts<'p> {
        let Work { lengths, squares, repeated, places } = work;
        let dims = phrase.model().dims();
        let rows = UnitRows::new(unit_rows::bag(phrase), dims, memory, lengths);
        let cosines = rows.gram(products);
        self.cosine.raise_squares(cosines.numbers(), squares);
        places.clear();
        places.extend(0..lengths.len() as u32);
        repeated.resize(cosines.stride(), 0.0);
        simd::sum_of_rows(squares, places, repeated);
        let words = lengths.iter().zip(&*repeated);
        side.weigh(words.map(|(&length, &repeated)| self.weight(length, repeated)));
        TextParts { rows, side }
    }
}

impl Compare for Coverage {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> Prepared<'q> {
        Prepared { method: self, one, many: None }
    }

    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch) {
        let Scratch { products, coverage: Buffers { work, left, .. }, .. } = scratch;
        parts.coverage.extend(many.iter().map(|text| {
            let memory = left.pop().unwrap_or_default();
            Coverage::text_parts(self, text, memory, products, work)
        }));
    }
}

/// A text. Its rows, lengths and weights pay only for several comparisons.
pub(crate) struct Prepared<'q> {
    method: &'q Coverage,
    one: &'q Phrase<'q>,
    many: Option<TextParts<'q>>,
}

impl Prepared<'_> {
    /// Compares the text with a prepared text; returns the text's [`Side`]. Writes to `scratch` how far each
    /// word of either text is covered by the other text.
    fn meet(&mut self, other: &TextParts<'_>, scratch: &mut Scratch) -> &Side {
        let Scratch { products, unit_rows: [memory, _], coverage, .. } = scratch;
        let Buffers { sides: [side, _], covered: [of_one, of_other], work, .. } = coverage;
        let own = self.many.get_or_insert_with(|| {
            let memory = (std::mem::take(memory), std::mem::take(side));
            self.method.text_parts(self.one, memory, products, work)
        });
        // Powers keep the order of cosines, so that the largest is raised alone.
        own.rows.largest_across(&other.rows, products, [&mut *of_one, &mut *of_other]);
        self.method.cosine.raise(of_one);
        self.method.cosine.raise(of_other);
        &own.side
    }

    /// Makes the parts of another text for as long as it is compared.
    fn complete<T>(
        &mut self,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
        then: impl FnOnce([&Side; 2], &[Vec<f32>; 2]) -> T,
    ) -> T {
        let Scratch { products, unit_rows: [_, memory], coverage, .. } = scratch;
        let Buffers { sides: [_, side], work, .. } = coverage;
        let memory = (std::mem::take(memory), std::mem::take(side));
        let parts = self.method.text_parts(other, memory, products, work);
        let own = self.meet(&parts, scratch);
        let done = then([own, &parts.side], &scratch.coverage.covered);
        scratch.unit_rows[1] = parts.rows.into_memory();
        scratch.coverage.sides[1] = parts.side;
        done
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
                self.complete(other, scratch, score) as f32
            };
        }
    }

    fn score_prepared(
        &mut self,
        many: &[Phrase<'_>],
        parts: &Parts<'_>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        for ((other, parts), out) in many.iter().zip(&parts.coverage).zip(out) {
            *out = if self.one.same_bag(other) {
                1.0
            } else {
                let own = self.meet(parts, scratch);
                score([own, &parts.side], &scratch.coverage.covered) as f32
            };
        }
    }

    /// Returns each word's share of the score. The words of either text share half of the score, in
    /// proportion to their parts of the text's coverage.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let one = self.one;
        let shares = |sides: [&Side; 2], covered: &[Vec<f32>; 2]| {
            let score = score(sides, covered);
            let own = |side: &Side| -> Vec<f32> {
                side.weights.iter().map(|&weight| if weight > 0.0 { 1.0 } else { 0.0 }).collect()
            };
            let [one_side, other_side] = sides;
            let [of_one, of_other] = covered;
            Shares {
                one: unit_rows::in_text_order(one, &one_side.shares(of_one, score)),
                other: unit_rows::in_text_order(other, &other_side.shares(of_other, score)),
                memberships: Some(fuzzy::memberships(
                    [one, other],
                    [&own(one_side), of_one],
                    [of_other, &own(other_side)],
                )),
            }
        };
        Some(self.complete(other, scratch, shares))
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        if let Some(TextParts { rows, side }) = self.many.take() {
            scratch.unit_rows[0] = rows.into_memory();
            scratch.coverage.sides[0] = side;
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
            let power = Quarters::new(exponent).unwrap();
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
            assert_eq!(Quarters::new(exponent), None, "{exponent}");
        }
    }
}
