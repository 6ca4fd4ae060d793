//! Texts as clouds of weighted points, compared by what it costs to move the one onto the other:
//! what Word Mover's and Word Rotator's Distance have in common. How optimal transport is solved
//! is the kernel's part.
//!
//! A repeated word is one point of so much more mass. Costs are squares of differences, which do
//! not depend on the side, so that exchanging the texts gives exactly the transposed costs.

use cognate_kernels::{simd, transport, vector};

use crate::methods::common::unit_rows;
use crate::methods::common::words_met::distinct;
use crate::methods::{Against, Compare, Cost, Scratch, Shares};
use crate::model::Phrase;

/// The words, all distances, and the search for the cheapest plan, of which each step looks at a row of
/// them and at a part of both texts. Words of ordinary texts take half of it, words none of which are
/// listed or alike up to twice as much.
pub(crate) const COST: Cost = Cost {
    pair: |n, m, d| (n + m) * A_WORD + exact(n, m, d),
    candidate: |n, m, d| m * A_WORD + exact(n, m, d),
    bound: Some(|n, m, d| m * A_WORD + distances(n, m, d)),
};

/// Cost, in work units, of preparing the vector of a word. An unlisted word takes three times as long,
/// because its vector is made of pieces; for short texts this is most of the work.
const A_WORD: u64 = 8000;

const fn exact(n: u64, m: u64, d: u64) -> u64 {
    distances(n, m, d) + 1800 * n * m + 320 * n * n + 128 * m * m
}

const fn distances(n: u64, m: u64, d: u64) -> u64 {
    n * m * (2 * d + 256)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mover {
    /// Vectors as they are, all occurrences of equal mass, Euclidean distance.
    Points,
    /// Directions, with the vectors' lengths as mass, `1 − cos`.
    Directions,
}

impl Mover {
    fn fill(self, phrase: &Phrase<'_>, points: &mut Vec<f32>, masses: &mut Vec<f64>) {
        let dims = phrase.model().dims();
        points.clear();
        masses.clear();
        // An engine's limit is the kernel's; a caller with longer texts has the words of the
        // highest keys, as a rule the rarest, left out.
        for (word, times) in distinct(phrase).take(transport::MAX_WORDS) {
            let row = phrase.row(word);
            let (mass, scale) = match self {
                Self::Points => (1.0, 1.0),
                Self::Directions => {
                    let norm = vector::norm(row);
                    (norm, unit_rows::inverse(norm))
                }
            };
            let start = points.len();
            points.resize(start + dims, 0.0);
            vector::add_scaled(&mut points[start..], scale, row);
            // A vector without a direction has no weight.
            masses.push(if scale > 0.0 { times as f64 * f64::from(mass) } else { 0.0 });
        }
    }

    /// Fills in the other text and the costs of moving the one onto it.
    fn costs(self, one: &[f32], other: &Phrase<'_>, scratch: &mut Scratch) {
        let dims = other.model().dims();
        let [_, masses, costs] = &mut scratch.masses;
        self.fill(other, &mut scratch.other, masses);
        costs.clear();
        for from in one.chunks_exact(dims) {
            costs.extend(scratch.other.chunks_exact(dims).map(|to| {
                let square = f64::from(simd::squared_distance(from, to));
                match self {
                    Self::Points => square.sqrt(),
                    // Between points at distance 1 from the origin, `|a − b|² = 2 − 2 cos`; this
                    // way a word and itself cost exactly nothing.
                    Self::Directions => square / 2.0,
                }
            }));
        }
    }

    /// The score at a cost. It never rises with the cost, in any bit, so that a lower bound of the
    /// cost gives an upper bound of the score.
    fn score(self, cost: f64) -> f32 {
        match self {
            Self::Points => (1.0 / (1.0 + cost)) as f32,
            Self::Directions => (1.0 - cost).clamp(-1.0, 1.0) as f32,
        }
    }
}

impl Compare for Mover {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let mut points = std::mem::take(&mut scratch.one);
        let mut masses = std::mem::take(&mut scratch.masses[0]);
        self.fill(one, &mut points, &mut masses);
        Prepared { method: *self, one, points, masses }
    }
}

pub(crate) struct Prepared<'q> {
    method: Mover,
    one: &'q Phrase<'q>,
    points: Vec<f32>,
    masses: Vec<f64>,
}

impl Prepared<'_> {
    fn each(
        &self,
        many: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
        price: impl Fn(&mut Scratch) -> f64,
    ) {
        for (other, score) in many.iter().zip(out) {
            if self.one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            self.method.costs(&self.points, other, scratch);
            let sides = [&self.masses, &scratch.masses[1]];
            let weighed = sides.iter().all(|side| side.iter().any(|&mass| mass > 0.0));
            *score = if weighed { self.method.score(price(scratch)) } else { 0.0 };
        }
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        self.each(many, out, scratch, |scratch| {
            let [_, demand, costs] = &scratch.masses;
            scratch.transport.cost(&self.masses, demand, costs)
        });
    }

    /// The relaxed problem: each word goes to its nearest, whoever else goes there.
    fn bounds(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) -> bool {
        self.each(many, out, scratch, |scratch| {
            let [_, demand, costs] = &scratch.masses;
            scratch.transport.relaxed(&self.masses, demand, costs)
        });
        true
    }

    /// Where the score is one minus the cost, it is the sum of what is moved times the cosine of
    /// the words it is moved between; half of each term is laid on either word. `1 / (1 + cost)`
    /// does not come apart.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        if self.method == Mover::Points {
            return None;
        }
        // Of several cheapest plans the solver may find another when sides are exchanged, so the
        // text whose words have the lower keys is always the first.
        let one = self.one;
        let keys = |phrase: &Phrase<'_>| -> Vec<u64> {
            phrase.bag().iter().map(|&word| phrase.key(word)).collect()
        };
        let exchanged = keys(one) > keys(other);
        let [first, second] = if exchanged { [other, one] } else { [one, other] };
        let (mut points, mut supply) = (Vec::new(), Vec::new());
        self.method.fill(first, &mut points, &mut supply);
        self.method.costs(&points, second, scratch);
        let [_, demand, costs] = &scratch.masses;
        let mut sides = [vec![0.0; supply.len()], vec![0.0; demand.len()]];
        for moved in scratch.transport.plan(&supply, demand, costs) {
            let cosine = 1.0 - costs[moved.from * demand.len() + moved.to];
            sides[0][moved.from] += 0.5 * moved.share * cosine;
            sides[1][moved.to] += 0.5 * moved.share * cosine;
        }
        let [first_shares, second_shares] = sides;
        let of_first = laid_on_occurrences(first, &first_shares);
        let of_second = laid_on_occurrences(second, &second_shares);
        let [one, other] = if exchanged { [of_second, of_first] } else { [of_first, of_second] };
        Some(Shares { one, other, memberships: None })
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.one = std::mem::take(&mut self.points);
        scratch.masses[0] = std::mem::take(&mut self.masses);
    }
}

/// Divides the share of each different word evenly among its occurrences, in the order of the text.
fn laid_on_occurrences(phrase: &Phrase<'_>, shares: &[f64]) -> Vec<f32> {
    let mut of_bag = Vec::with_capacity(phrase.words().len());
    for ((_, times), share) in distinct(phrase).zip(shares) {
        of_bag.extend(std::iter::repeat_n((share / times as f64) as f32, times));
    }
    unit_rows::in_text_order(phrase, &of_bag)
}
