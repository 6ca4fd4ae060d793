//! DynaMax: texts as fuzzy sets over a universe made of their own words
//! (Zhelezniak et al. 2019, section 3.2 and algorithm 1).
//!
//! With the rows of both texts stacked as the universe `U = [X; Y]`, a text's membership in each
//! universe word is its best product with it, never below 0: `m_X = max(0, max over rows of X Uᵀ)`.
//! The score is a ratio of the memberships' intersection and union: Jaccard
//! `Σ min / Σ max`, Otsuka `Σ min / √(Σ m_X Σ m_Y)`, Dice `2 Σ min / (Σ m_X + Σ m_Y)`; as an
//! ablation the cosine of `m_X` and `m_Y`. A repeated word stands twice in the universe, as in the
//! authors' code.
//!
//! Sums run over the one text's words and the other's apart and are added last, which makes the
//! score symmetric bit for bit.

use crate::kernels::pairwise;
use crate::methods::Compare;
use crate::methods::Info;
use crate::methods::Kind;
use crate::methods::Loaded;
use crate::methods::Memberships;
use crate::methods::Reads;
use crate::methods::Scorer;
use crate::methods::Scratch;
use crate::methods::Shares;
use crate::methods::counted;
use crate::methods::pairwise as pairwise_cost;
use crate::methods::rows;
use crate::model::Model;
use crate::model::Phrase;

/// A ratio of intersection and union, and how words are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ratio {
    Jaccard,
    Otsuka,
    Dice,
    Cosine,
}

struct Dynamax {
    ratio: Ratio,
    sif: bool,
}

/// Sums over the words of one text of the universe.
#[derive(Default)]
struct Sums {
    min: f64,
    max: f64,
    own: f64,
    other: f64,
    own_squared: f64,
    other_squared: f64,
    product: f64,
}

impl Sums {
    /// Over universe words with memberships in their own text and in the other.
    fn over(own: &[f32], other: &[f32]) -> Self {
        let mut sums = Self::default();
        for (&own, &other) in own.iter().zip(other) {
            sums.min += f64::from(own.min(other));
            sums.max += f64::from(own.max(other));
            let (own, other) = (f64::from(own), f64::from(other));
            sums.own += own;
            sums.other += other;
            sums.own_squared += own * own;
            sums.other_squared += other * other;
            sums.product += own * other;
        }
        sums
    }
}

impl Ratio {
    fn of(self, one: &Sums, other: &Sums) -> f32 {
        let min = one.min + other.min;
        let (above, below) = match self {
            Self::Jaccard => (min, one.max + other.max),
            Self::Otsuka => (min, ((one.own + other.other) * (one.other + other.own)).sqrt()),
            Self::Dice => (2.0 * min, (one.own + other.other) + (one.other + other.own)),
            Self::Cosine => {
                let one_squared = one.own_squared + other.other_squared;
                let other_squared = one.other_squared + other.own_squared;
                (one.product + other.product, (one_squared * other_squared).sqrt())
            }
        };
        // Two texts without any positive product share nothing.
        if below > 0.0 { (above / below).clamp(0.0, 1.0) as f32 } else { 0.0 }
    }
}

impl Dynamax {
    fn fill(&self, phrase: &Phrase<'_>, out: &mut Vec<f32>) {
        if self.sif {
            rows::weighted(phrase, |word| rows::sif_weight(phrase, word), out);
        } else {
            rows::weighted(phrase, |_| 1.0, out);
        }
    }

    /// Prepares what belongs to the one text: its rows, and its words' memberships in it.
    fn prepare(&self, one: &Phrase<'_>, scratch: &mut Scratch) {
        let dims = one.model().vectors().dims();
        self.fill(one, &mut scratch.one);
        pairwise::gram(&scratch.one, dims, &mut scratch.one_gram);
        pairwise::row_maxima(&scratch.one_gram, one.words().len(), &mut scratch.one_numbers);
    }

    /// The memberships of both texts' words: `(own, other)` for the one's, then for the other's.
    /// [`Dynamax::prepare`] came before.
    fn memberships(&self, other: &Phrase<'_>, scratch: &mut Scratch) -> [Vec<f32>; 2] {
        let dims = other.model().vectors().dims();
        let words = other.words().len();
        self.fill(other, &mut scratch.other);
        pairwise::gram(&scratch.other, dims, &mut scratch.other_gram);
        pairwise::row_maxima(&scratch.other_gram, words, &mut scratch.other_numbers);
        pairwise::products(&scratch.one, &scratch.other, dims, &mut scratch.cross);
        let [mut of_one, mut of_other] = [Vec::new(), Vec::new()];
        pairwise::row_maxima(&scratch.cross, words, &mut of_one);
        pairwise::column_maxima(&scratch.cross, words, &mut of_other);
        [of_one, of_other]
    }
}

impl Compare for Dynamax {
    fn compare(
        &self,
        one: &Phrase<'_>,
        many: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.prepare(one, scratch);
        for (other, score) in many.iter().zip(out) {
            if one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            let [of_one, of_other] = self.memberships(other, scratch);
            let one = Sums::over(&scratch.one_numbers, &of_one);
            let other = Sums::over(&scratch.other_numbers, &of_other);
            *score = self.ratio.of(&one, &other);
        }
    }

    fn shares(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> Option<Shares> {
        self.prepare(one, scratch);
        let [of_one, of_other] = self.memberships(other, scratch);
        let (own_one, own_other) = (&scratch.one_numbers, &scratch.other_numbers);
        let sums = [Sums::over(own_one, &of_one), Sums::over(own_other, &of_other)];
        let score = f64::from(self.ratio.of(&sums[0], &sums[1]));
        let product = self.ratio == Ratio::Cosine;
        let above = |own: f32, other: f32| {
            if product { f64::from(own) * f64::from(other) } else { f64::from(own.min(other)) }
        };
        let whole = match product {
            true => sums[0].product + sums[1].product,
            false => sums[0].min + sums[1].min,
        };
        let share = |(&own, &other): (&f32, &f32)| {
            if whole > 0.0 { (score * above(own, other) / whole) as f32 } else { 0.0 }
        };
        let shares_one: Vec<f32> = own_one.iter().zip(&of_one).map(share).collect();
        let shares_other: Vec<f32> = own_other.iter().zip(&of_other).map(share).collect();
        let pairs_one: Vec<[f32; 2]> = own_one.iter().zip(&of_one).map(|(&a, &b)| [a, b]).collect();
        let pairs_other: Vec<[f32; 2]> =
            own_other.iter().zip(&of_other).map(|(&own, &a)| [a, own]).collect();
        Some(Shares {
            one: rows::in_text_order(one, &shares_one),
            other: rows::in_text_order(other, &shares_other),
            memberships: Some(Memberships {
                one: rows::in_text_order(one, &pairs_one),
                other: rows::in_text_order(other, &pairs_other),
            }),
        })
    }
}

macro_rules! variant {
    ($module:ident, $doc:literal, $name:literal, $ratio:ident, $sif:literal, $summary:literal) => {
        #[doc = $doc]
        pub mod $module {
            use super::*;

            /// What is to be known of it.
            pub const INFO: Info = Info {
                name: $name,
                kind: Kind::Similarity,
                cost: pairwise_cost,
                summary: $summary,
                paper: "Zhelezniak et al. 2019",
                range: (0.0, 1.0),
                reads: Reads::Words,
                embeds: false,
                weights_frequency: $sif,
            };

            /// Needs vectors; with SIF weights also counts.
            pub fn load(model: &Model) -> Loaded {
                if $sif && let Some(reason) = counted::without_counts(model) {
                    return Ok(Err(reason));
                }
                Ok(Ok(Scorer::Compare(Box::new(Dynamax { ratio: Ratio::$ratio, sif: $sif }))))
            }
        }
    };
}

variant!(
    jaccard,
    "DynaMax with Jaccard's ratio.",
    "dynamax-jaccard",
    Jaccard,
    false,
    "Fuzzy sets over the words of both texts, compared by Jaccard's ratio."
);
variant!(
    otsuka,
    "DynaMax with Otsuka's ratio.",
    "dynamax-otsuka",
    Otsuka,
    false,
    "Fuzzy sets over the words of both texts, compared by Otsuka's ratio."
);
variant!(
    dice,
    "DynaMax with Dice's ratio.",
    "dynamax-dice",
    Dice,
    false,
    "Fuzzy sets over the words of both texts, compared by Dice's ratio."
);
variant!(
    cosine,
    "DynaMax memberships compared by cosine, an ablation.",
    "dynamax-cosine",
    Cosine,
    false,
    "Fuzzy sets over the words of both texts, their memberships compared by cosine."
);
variant!(
    sif,
    "DynaMax-Jaccard over rows weighted by how rare their words are.",
    "dynamax-sif",
    Jaccard,
    true,
    "Fuzzy sets over the words of both texts, each weighted by how rare it is."
);
