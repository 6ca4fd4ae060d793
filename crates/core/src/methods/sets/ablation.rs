//! Variants that show why a method is as it is (Zhelezniak et al. 2019, tables 3 and 5). Only
//! evaluation runs them: they are no methods, have no place in requests, and are not listed.
//!
//! - `avg-jaccard`: a text is the mean of its vectors, clipped at 0 as memberships are, under
//!   Jaccard's ratio `Σ min / Σ max`. Unclipped, the union could be 0 or negative and the ratio
//!   anything.
//! - `random-jaccard`: a fixed universe of as many Gaussian rows as there are dimensions, drawn
//!   with a fixed seed.
//! - `dyna-avg`, `dyna-sum`, `dyna-min`: the universe of both texts' words, with the mean, sum or
//!   minimum of a text's products in place of the maximum, clipped at 0 after that.
//! - `unit-…`: the method of that name over vectors brought to length 1. A vector without length
//!   stays without.

use cognate_kernels::random::SplitMix64;
use cognate_kernels::vector;

use crate::methods::common::unit_rows;
use crate::methods::sets::dynamax::COST;
use crate::methods::sets::dynamax_weighted::{Exponents, Weighted};
use crate::methods::sets::fuzzy;
use crate::methods::sets::fuzzy::{FixedUniverse, Universe};
use crate::methods::{Against, Compare, Embed, Info, Loaded, Scorer, Scratch};
use crate::model::{Model, Phrase};

/// A variant that evaluation runs.
#[derive(Debug, Clone, Copy)]
pub struct Ablation {
    /// What is to be known of it.
    pub info: Info,
    /// Makes it ready for a model.
    pub load: fn(&Model) -> Loaded,
}

impl Ablation {
    /// The name of the ablation, which no method has.
    pub fn name(&self) -> &'static str {
        self.info.name
    }
}

/// Every variant, in the order of tables.
pub fn all() -> &'static [Ablation] {
    &ALL
}

static ALL: [Ablation; 8] = [
    variant("avg-jaccard", "Mean of vectors under Jaccard's ratio.", |_| compare(Averaged)),
    variant("random-jaccard", "Fuzzy sets over random directions.", |model| {
        let universe = Universe::Rows(gaussian_rows(model.dims()));
        compare(FixedUniverse { universe, unit: false })
    }),
    variant("dyna-avg", "DynaMax with the mean for the maximum.", |_| compare(Pool::Mean)),
    variant("dyna-sum", "DynaMax with the sum for the maximum.", |_| compare(Pool::Sum)),
    variant("dyna-min", "DynaMax with the minimum for the maximum.", |_| compare(Pool::Min)),
    Ablation {
        info: Info {
            range: (-1.0, 1.0),
            embeds: true,
            ..info("unit-avg-cos", "Mean of vectors of length 1, compared by cosine.")
        },
        load: |_| Ok(Ok(Scorer::Embed(Box::new(UnitMean)))),
    },
    variant("unit-dynamax-jaccard", "DynaMax over vectors of length 1.", |_| {
        // Without a say for lengths, the weighted form is the plain one over directions.
        compare(Weighted { exponents: Exponents { alpha: 0.0, beta: 0.0 } })
    }),
    variant("unit-max-jaccard", "Max-Jaccard over vectors of length 1.", |_| {
        compare(FixedUniverse { universe: Universe::Dimensions, unit: true })
    }),
];

const fn info(name: &'static str, summary: &'static str) -> Info {
    Info {
        cost: COST,
        summary,
        paper: "Zhelezniak et al. 2019, ablation",
        range: (0.0, 1.0),
        ..Info::new(name)
    }
}

const fn variant(
    name: &'static str,
    summary: &'static str,
    load: fn(&Model) -> Loaded,
) -> Ablation {
    Ablation { info: info(name, summary), load }
}

fn compare(method: impl Compare + 'static) -> Loaded {
    Ok(Ok(Scorer::Compare(Box::new(method))))
}

struct UnitMean;

impl Embed for UnitMean {
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]) {
        let share = 1.0 / phrase.words().len() as f32;
        for &word in phrase.bag() {
            let row = phrase.row(word);
            vector::add_scaled(out, share * unit_rows::inverse(vector::norm(row)), row);
        }
    }
}

/// The mean of vectors, clipped at 0, under Jaccard's ratio.
struct Averaged;

impl Averaged {
    fn memberships(phrase: &Phrase<'_>, out: &mut Vec<f32>) {
        out.clear();
        out.resize(phrase.model().dims(), 0.0);
        let share = 1.0 / phrase.words().len() as f32;
        for &word in phrase.bag() {
            vector::add_scaled(out, share, phrase.row(word));
        }
        out.iter_mut().for_each(|value| *value = value.max(0.0));
    }
}

impl Compare for Averaged {
    type Against<'q> = PreparedMean<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> PreparedMean<'q> {
        let mut memberships = Vec::new();
        Self::memberships(one, &mut memberships);
        PreparedMean { one, memberships }
    }
}

struct PreparedMean<'q> {
    one: &'q Phrase<'q>,
    memberships: Vec<f32>,
}

impl Against for PreparedMean<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        for (other, score) in many.iter().zip(out) {
            Averaged::memberships(other, &mut scratch.other_numbers);
            let ratio = fuzzy::jaccard(&self.memberships, &scratch.other_numbers);
            *score = if self.one.same_bag(other) { 1.0 } else { ratio };
        }
    }
}

/// What replaces the maximum over a text's words.
#[derive(Debug, Clone, Copy)]
enum Pool {
    Mean,
    Sum,
    Min,
}

impl Pool {
    /// Pools products in the order of the bag, so that the order of the text changes no bit.
    fn over(self, products: impl ExactSizeIterator<Item = f32>) -> f64 {
        let words = products.len() as f64;
        let products = products.map(f64::from);
        match self {
            Self::Mean => products.sum::<f64>() / words,
            Self::Sum => products.sum(),
            Self::Min => products.fold(f64::INFINITY, f64::min),
        }
        .max(0.0)
    }

    /// Returns the intersection and the union over the words of one text. `gram` holds the products of
    /// these words with each other; `cross` returns the products of a word with the other text's words.
    fn sums<P>(self, gram: &[f32], words: usize, cross: impl Fn(usize) -> P) -> [f64; 2]
    where
        P: ExactSizeIterator<Item = f32>,
    {
        let mut sums = [0.0; 2];
        for (word, products) in gram.chunks_exact(words).enumerate() {
            let own = self.over(products.iter().copied());
            let other = self.over(cross(word));
            sums[0] += own.min(other);
            sums[1] += own.max(other);
        }
        sums
    }
}

impl Compare for Pool {
    type Against<'q> = PreparedRows<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> PreparedRows<'q> {
        let (mut rows, mut gram) = (Vec::new(), Vec::new());
        unit_rows::plain(one, &mut rows);
        vector::gram(&rows, one.model().dims(), &mut gram);
        PreparedRows { pool: *self, one, rows, gram }
    }
}

struct PreparedRows<'q> {
    pool: Pool,
    one: &'q Phrase<'q>,
    rows: Vec<f32>,
    gram: Vec<f32>,
}

impl Against for PreparedRows<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        let dims = self.one.model().dims();
        for (other, score) in many.iter().zip(out) {
            if self.one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            unit_rows::plain(other, &mut scratch.other);
            vector::gram(&scratch.other, dims, &mut scratch.other_gram);
            vector::products(&self.rows, &scratch.other, dims, &mut scratch.cross);
            let [ones, others] = [self.one.words().len(), other.words().len()];
            let cross = &scratch.cross;
            let of_one = self
                .pool
                .sums(&self.gram, ones, |word| cross[word * others..][..others].iter().copied());
            let of_other = self.pool.sums(&scratch.other_gram, others, |word| {
                (0..ones).map(move |row| cross[row * others + word])
            });
            // The sums of both texts are added last, so that exchanging the texts changes no bit.
            *score = fuzzy::ratio(of_one[0] + of_other[0], of_one[1] + of_other[1]) as f32;
        }
    }
}

/// A fixed seed, so that figures can be reproduced.
const SEED: u64 = 0x5eed_0001;

/// A square matrix of standard normal numbers (Box and Muller 1958).
fn gaussian_rows(dims: usize) -> Vec<f32> {
    let mut random = SplitMix64::seeded(SEED);
    // Half a step above 0, where a logarithm has no value.
    let mut uniform = || ((random.word() >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    let numbers = (0..dims.saturating_mul(dims)).map(|_| {
        let (length, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
        (length * angle.cos()) as f32
    });
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::Method;

    #[test]
    fn ablations_are_no_methods() {
        assert!(all().iter().all(|ablation| Method::named(ablation.name()).is_none()));
    }

    #[test]
    fn random_rows_are_standard_normal() {
        let rows = gaussian_rows(128);
        let count = rows.len() as f32;
        let mean = rows.iter().sum::<f32>() / count;
        let spread = rows.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / count;
        assert!(mean.abs() < 0.03 && (spread - 1.0).abs() < 0.05, "{mean} {spread}");
    }
}
