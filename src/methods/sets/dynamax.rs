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
use crate::kernels::simd::Columns;
use crate::kernels::simd::Packed;
use crate::methods::Compare;
use crate::methods::Cost;
use crate::methods::Info;
use crate::methods::Kind;
use crate::methods::Loaded;
use crate::methods::Memberships;
use crate::methods::Reads;
use crate::methods::Scorer;
use crate::methods::Scratch;
use crate::methods::Shares;
use crate::methods::common::counted;
use crate::methods::common::rows;
use crate::methods::common::words_met;
use crate::methods::common::words_met::WordsMet;
use crate::methods::sets::fuzzy;
use crate::model::Model;
use crate::model::Phrase;
use crate::model::phrase::Word;

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

/// Memberships of the words of one text of the universe: in their own text, and in the other.
#[derive(Clone, Copy)]
struct Side<'s> {
    own: &'s [f32],
    other: &'s [f32],
}

impl Side<'_> {
    /// Sums of two numbers a word, at once.
    fn sums(self, of: impl Fn(f32, f32) -> [f64; 2]) -> [f64; 2] {
        self.own.iter().zip(self.other).fold([0.0; 2], |sums, (&own, &other)| {
            let [a, b] = of(own, other);
            [sums[0] + a, sums[1] + b]
        })
    }

    /// The sums of the smaller and of the larger memberships.
    fn least_and_most(self) -> [f64; 2] {
        self.sums(|own, other| if own < other { [own, other] } else { [other, own] }.map(f64::from))
    }
}

impl Ratio {
    /// The ratio over the words of the one text and of the other.
    fn of(self, one: Side<'_>, other: Side<'_>) -> f32 {
        let [[least_one, most_one], [least_other, most_other]] =
            [one.least_and_most(), other.least_and_most()];
        let least = least_one + least_other;
        let (above, below) = match self {
            Self::Jaccard => (least, most_one + most_other),
            Self::Otsuka | Self::Dice => {
                let all = |own: f32, other: f32| [f64::from(own), f64::from(other)];
                let [[own_one, other_one], [own_other, other_other]] =
                    [one.sums(all), other.sums(all)];
                let (of_one, of_other) = (own_one + other_other, other_one + own_other);
                match self {
                    Self::Otsuka => (least, (of_one * of_other).sqrt()),
                    _ => (2.0 * least, of_one + of_other),
                }
            }
            Self::Cosine => {
                let squares = |own: f32, other: f32| [own, other].map(|m| f64::from(m).powi(2));
                let [[own_one, other_one], [own_other, other_other]] =
                    [one.sums(squares), other.sums(squares)];
                let product = |side: Side<'_>| {
                    side.sums(|own, other| [f64::from(own) * f64::from(other), 0.0])[0]
                };
                let (of_one, of_other) = (own_one + other_other, other_one + own_other);
                (product(one) + product(other), (of_one * of_other).sqrt())
            }
        };
        fuzzy::ratio(above, below) as f32
    }
}

/// Memory that comparisons reuse.
#[derive(Default)]
pub(crate) struct Memory {
    /// Rows of the one text.
    one: Vec<f32>,
    /// Rows of the other, or of both one after the other.
    rows: Vec<f32>,
    /// Rows of both where they lie. Always empty: only its memory is kept.
    borrowed: Vec<&'static [f32]>,
    products: Vec<f32>,
    columns: Columns,
    /// Memberships of the one's words in themselves and in the other.
    of_one: [Vec<f32>; 2],
    /// Memberships of the other's words in themselves and in the one.
    of_other: [Vec<f32>; 2],
    /// Memberships of the words of both in either text.
    both: [Vec<f32>; 2],
    met: WordsMet,
    /// Where the words of the texts at hand lie among those met, one text after the other.
    places: Vec<u32>,
}

impl Memory {
    /// Forgets the words met, and gives back their memory.
    pub(crate) fn forget(&mut self) {
        if !self.met.is_empty() {
            self.met = WordsMet::default();
        }
    }
}

impl Dynamax {
    fn weight(&self, phrase: &Phrase<'_>, word: &Word) -> f32 {
        if self.sif { rows::sif_weight(phrase, word) } else { 1.0 }
    }

    /// The memberships of the words of both texts, those of the one first, in either text.
    fn memberships(&self, one: &Phrase<'_>, other: &Phrase<'_>, memory: &mut Memory) {
        self.products(&[one, other], one.words().len(), memory);
    }

    /// One text against one: all products of the words of both at once.
    fn pair(&self, one: &Phrase<'_>, other: &Phrase<'_>, memory: &mut Memory) -> f32 {
        self.memberships(one, other, memory);
        let [one, other] = sides(&memory.both, one.words().len());
        self.ratio.of(one, other)
    }

    /// Prepares what belongs to the one text: its rows, and its words' memberships in it.
    fn prepare(&self, one: &Phrase<'_>, memory: &mut Memory) {
        if memory.met.belongs_to(one, self.sif) {
            return memory.met.tidy();
        }
        self.within(one, memory);
        std::mem::swap(&mut memory.of_one[0], &mut memory.both[0]);
        rows::weighted(one, |word| self.weight(one, word), &mut memory.one);
        memory.met.begin(one, self.sif);
    }

    /// Multiplies the words of many texts that were not met yet with those of the one.
    fn meet(&self, one: &Phrase<'_>, many: &[Phrase<'_>], memory: &mut Memory) {
        let dims = one.model().vectors().dims();
        memory.rows.clear();
        memory.places.clear();
        for other in many {
            for word in other.bag() {
                let Some((place, new)) = word.id.map(|id| memory.met.place(id)) else {
                    memory.places.push(u32::MAX);
                    continue;
                };
                memory.places.push(place);
                if new {
                    let start = memory.rows.len();
                    memory.rows.resize(start + dims, 0.0);
                    let row = memory.rows.get_mut(start..).unwrap_or_default();
                    other.row(word).scale_to(self.weight(other, word), row);
                }
            }
        }
        pairwise::products(&memory.rows, &memory.one, dims, &mut memory.products);
        memory.met.learn(&memory.products);
    }

    /// One text against another of which all words were met: they have the places from `first` on.
    fn met(&self, other: &Phrase<'_>, first: usize, memory: &mut Memory) -> f32 {
        self.within(other, memory);
        std::mem::swap(&mut memory.of_other[0], &mut memory.both[0]);
        let places = memory.places.get(first..first + other.words().len()).unwrap_or_default();
        memory.met.memberships(places, [&mut memory.of_one[1], &mut memory.of_other[1]]);
        let [one, other] = [&memory.of_one, &memory.of_other]
            .map(|[own, other]| Side { own: own.as_slice(), other: other.as_slice() });
        self.ratio.of(one, other)
    }

    /// The memberships of a text's words in the text itself, as the first of `both`.
    fn within(&self, phrase: &Phrase<'_>, memory: &mut Memory) {
        self.products(&[phrase], phrase.words().len(), memory);
    }

    /// Multiplies all words of all texts with each other; `split` is where the first text ends.
    fn products(&self, texts: &[&Phrase<'_>], split: usize, memory: &mut Memory) {
        let dims = texts.first().map_or(1, |text| text.model().vectors().dims());
        let (columns, both) = (&mut memory.columns, &mut memory.both);
        let mut borrowed: Vec<&[f32]> = std::mem::take(&mut memory.borrowed);
        if !self.sif && texts.iter().all(|text| rows::borrowed(text, &mut borrowed)) {
            pairwise::memberships(borrowed.as_slice(), split, dims, columns, both);
        } else {
            memory.rows.clear();
            for text in texts {
                rows::append(text, |word| self.weight(text, word), &mut memory.rows);
            }
            let rows = Packed { values: &memory.rows, dims };
            pairwise::memberships(rows, split, dims, columns, both);
        }
        memory.borrowed = emptied(borrowed);
    }
}

/// The list's memory, which is kept from one text to the next, without what it held.
fn emptied(mut rows: Vec<&[f32]>) -> Vec<&'static [f32]> {
    rows.clear();
    // Collecting nothing in place is what hands the memory on to a list of another lifetime.
    rows.into_iter().map(|_| -> &'static [f32] { &[] }).collect()
}

/// The memberships of the words of both texts in either, seen from the words of the one, which are
/// the first so many, and from those of the other.
fn sides([of_one, of_other]: &[Vec<f32>; 2], words: usize) -> [Side<'_>; 2] {
    let (one_in_one, other_in_one) = of_one.split_at(words);
    let (one_in_other, other_in_other) = of_other.split_at(words);
    [
        Side { own: one_in_one, other: one_in_other },
        Side { own: other_in_other, other: other_in_one },
    ]
}

impl Compare for Dynamax {
    fn compare(
        &self,
        one: &Phrase<'_>,
        many: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let memory = &mut scratch.dynamax;
        let together = many.len() > 1 && one.words().len() <= words_met::MOST_WORDS;
        if together {
            self.prepare(one, memory);
            self.meet(one, many, memory);
        }
        let mut first = 0;
        for (other, score) in many.iter().zip(out) {
            *score = if one.same_bag(other) {
                1.0
            } else if together && other.words().iter().all(|word| word.id.is_some()) {
                self.met(other, first, memory)
            } else {
                self.pair(one, other, &mut scratch.dynamax_pair)
            };
            first += other.words().len();
        }
    }

    fn shares(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> Option<Shares> {
        let memory = &mut scratch.dynamax_pair;
        self.memberships(one, other, memory);
        let [side_one, side_other] = sides(&memory.both, one.words().len());
        let score = f64::from(self.ratio.of(side_one, side_other));
        let product = self.ratio == Ratio::Cosine;
        let above = |own: f32, other: f32| {
            if product { f64::from(own) * f64::from(other) } else { f64::from(own.min(other)) }
        };
        let whole: f64 = [side_one, side_other]
            .map(|side| side.sums(|own, other| [above(own, other), 0.0])[0])
            .iter()
            .sum();
        let shares = |side: Side<'_>| -> Vec<f32> {
            let words = side.own.iter().zip(side.other);
            let share = |(&own, &other): (&f32, &f32)| (score * above(own, other) / whole) as f32;
            words.map(|pair| if whole > 0.0 { share(pair) } else { 0.0 }).collect()
        };
        let pairs = |side: Side<'_>, turned: bool| -> Vec<[f32; 2]> {
            let words = side.own.iter().zip(side.other);
            words.map(|(&own, &other)| if turned { [other, own] } else { [own, other] }).collect()
        };
        let (shares_one, shares_other) = (shares(side_one), shares(side_other));
        let (pairs_one, pairs_other) = (pairs(side_one, false), pairs(side_other, true));
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

/// The products of all words of both texts, each taken once, and their maxima. A query remembers
/// the words of candidates, so that only their products with themselves are taken again.
pub(crate) const COST: Cost = Cost {
    pair: |n, m, d| products(n + m, d),
    candidate: |n, m, d| match n <= words_met::MOST_WORDS as u64 {
        true => n * m * d * 3 / 2 + products(m, d),
        false => products(n + m, d),
    },
    bound: None,
};

/// Of all pairs of so many words.
const fn products(words: u64, d: u64) -> u64 {
    words * words * (d / 2 + 16)
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
                cost: COST,
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
