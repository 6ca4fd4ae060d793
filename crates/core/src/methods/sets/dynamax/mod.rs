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

use cognate_kernels::simd::bytes;
use cognate_kernels::simd::bytes::ByteRows;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::methods::common::union::Union;
use crate::methods::common::unit_rows::Products;
use crate::methods::common::words_met::WordsMet;
use crate::methods::common::{unit_rows, words_met};
use crate::methods::sets::fuzzy;
use crate::methods::{Against, Compare, Cost, Info, Loaded, Parts, Scorer, Scratch, Shares};
use crate::model::phrase::Word;
use crate::model::{Model, Phrase};

struct Dynamax {
    ratio: Ratio,
    sif: bool,
}

#[derive(Default)]
pub(crate) struct Buffers {
    union: Union,
    /// Rows of words, if they have weights and are not bytes.
    rows: Vec<f32>,
    /// Rows of words where they lie, of floats or of bytes. Always empty here: only its memory is reused.
    borrowed: Vec<&'static [f32]>,
    bytes: ByteRows<'static>,
    products: Vec<f32>,
    /// Memberships of the first text's words in both texts.
    of_one: [Vec<f32>; 2],
    /// Memberships of the other text's words in both texts.
    of_other: [Vec<f32>; 2],
    /// Places of the texts' words in the table of seen words, one text after the other.
    places: Vec<u32>,
}

impl Dynamax {
    fn weight(&self, phrase: &Phrase<'_>, word: Word) -> f32 {
        if self.sif { unit_rows::sif_weight(phrase, word) } else { 1.0 }
    }

    /// Returns the memberships of the words of both texts, first in the set of `one`'s words, then in
    /// the set of `other`'s words.
    fn memberships<'b>(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        buffers: &'b mut Buffers,
    ) -> [Side<'b>; 2] {
        self.compare([one, other], buffers);
        let Buffers { union, of_one, of_other, .. } = buffers;
        for (side, memberships) in [&mut *of_one, &mut *of_other].into_iter().enumerate() {
            union.memberships(side, side, &mut memberships[0]);
            union.memberships(side, 1 - side, &mut memberships[1]);
        }
        let side = |[own, other]: &'b [Vec<f32>; 2]| Side { own, other };
        [side(of_one), side(of_other)]
    }

    /// One text against one: all products of the words of both at once.
    fn pair(&self, one: &Phrase<'_>, other: &Phrase<'_>, buffers: &mut Buffers) -> f32 {
        let [one, other] = self.memberships(one, other, buffers);
        self.ratio.of(one, other)
    }

    /// The memberships of a text's words in the text itself.
    fn within(&self, phrase: &Phrase<'_>, buffers: &mut Buffers, out: &mut Vec<f32>) {
        self.compare([phrase; 2], buffers);
        buffers.union.memberships(0, 0, out);
    }

    /// Multiplies all different words of two texts with each other.
    fn compare(&self, texts: [&Phrase<'_>; 2], buffers: &mut Buffers) {
        let Buffers { union, rows: floats, bytes: memory, products, .. } = buffers;
        let mut borrowed: Vec<&[f32]> = std::mem::take(&mut buffers.borrowed);
        let dims = texts[0].model().dims();
        union.unite(texts);
        let weight = |phrase: &Phrase<'_>, word: Word| self.weight(phrase, word);
        let mut rows: ByteRows<'_> = std::mem::take(memory);
        let count = union.words(texts).len();
        let stride = if unit_rows::bytes(union.words(texts), dims, weight, &mut rows) {
            bytes::gram(&rows, products);
            rows.stride()
        } else if !self.sif && unit_rows::borrowed(union.words(texts), &mut borrowed) {
            vector::gram_of(borrowed.as_slice(), dims, products);
            count
        } else {
            unit_rows::write(union.words(texts), dims, weight, floats);
            vector::gram(floats, dims, products);
            count
        };
        *memory = rows.emptied();
        buffers.borrowed = emptied(borrowed);
        union.compare(&Products::new(products, stride, count));
    }
}

/// The memory of a list, emptied for the next texts.
fn emptied(mut rows: Vec<&[f32]>) -> Vec<&'static [f32]> {
    rows.clear();
    // Collecting in place hands the memory on to a list of another lifetime.
    rows.into_iter().map(|_| -> &'static [f32] { &[] }).collect()
}

impl Compare for Dynamax {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> Prepared<'q> {
        Prepared { method: self, one, many: None }
    }

    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch) {
        parts.memberships.extend(many.iter().map(|text| {
            let mut own = Vec::new();
            // Of others all products are taken at once.
            if is_listed(text) {
                self.within(text, &mut scratch.dynamax, &mut own);
            }
            own
        }));
    }
}

fn is_listed(text: &Phrase<'_>) -> bool {
    text.words().iter().all(|&word| text.id(word).is_some())
}

/// A text. Preparing it pays only for several comparisons, so it is done when the second comes.
struct Prepared<'q> {
    method: &'q Dynamax,
    one: &'q Phrase<'q>,
    many: Option<ForMany<'q>>,
}

impl Prepared<'_> {
    /// Scores texts; the memberships of words in their own text are known, or are made here.
    fn score_with(
        &mut self,
        many: &[Phrase<'_>],
        memberships: &[Vec<f32>],
        out: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let (method, one) = (self.method, self.one);
        let together = many.len() > 1 && one.words().len() <= words_met::MAX_WORDS;
        let mut for_many =
            together.then(|| self.many.get_or_insert_with(|| ForMany::new(method, one, buffers)));
        if let Some(for_many) = &mut for_many {
            for_many.tidy();
            for_many.meet(method, many, buffers);
        }
        let mut first = 0;
        for (at, (other, score)) in many.iter().zip(out).enumerate() {
            *score = match &for_many {
                _ if one.same_bag(other) => 1.0,
                Some(for_many) if is_listed(other) => match memberships.get(at) {
                    Some(own) => for_many.score(method, other, own, first, buffers),
                    None => {
                        let mut own = std::mem::take(&mut buffers.of_other[0]);
                        method.within(other, buffers, &mut own);
                        let score = for_many.score(method, other, &own, first, buffers);
                        buffers.of_other[0] = own;
                        score
                    }
                },
                _ => method.pair(one, other, buffers),
            };
            first += other.words().len();
        }
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        self.score_with(many, &[], out, &mut scratch.dynamax);
    }

    fn score_prepared(
        &mut self,
        many: &[Phrase<'_>],
        parts: &Parts<'_>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.score_with(many, &parts.memberships, out, &mut scratch.dynamax);
    }

    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let (method, one, buffers) = (self.method, self.one, &mut scratch.dynamax);
        let [side_one, side_other] = method.memberships(one, other, buffers);
        let score = f64::from(method.ratio.of(side_one, side_other));
        let product = method.ratio == Ratio::Cosine;
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
        Some(Shares {
            one: unit_rows::in_text_order(one, &shares(side_one)),
            other: unit_rows::in_text_order(other, &shares(side_other)),
            memberships: Some(fuzzy::memberships(
                [one, other],
                [side_one.own, side_one.other],
                [side_other.other, side_other.own],
            )),
        })
    }
}

/// The products of all words of both texts, each taken once, and their maxima. A query remembers
/// the words of candidates, so that only their products with themselves are taken again.
pub(crate) const COST: Cost = Cost {
    pair: |n, m, d| products(n + m, d),
    candidate: |n, m, d| match n <= words_met::MAX_WORDS as u64 {
        true => n * m * d * 3 / 2 + products(m, d),
        false => products(n + m, d),
    },
    bound: None,
};

const fn products(words: u64, d: u64) -> u64 {
    words * words * (d / 2 + 16)
}

macro_rules! variant {
    ($module:ident, $name:literal, $ratio:ident, $sif:literal, $summary:literal) => {
        #[doc = $summary]
        pub mod $module {
            use super::*;

            pub(crate) const INFO: Info = Info {
                cost: COST,
                summary: $summary,
                paper: "Zhelezniak et al. 2019",
                range: (0.0, 1.0),
                weights_frequency: $sif,
                ..Info::new($name)
            };

            pub(crate) fn load(model: &Model) -> Loaded {
                if $sif && let Err(reason) = words_met::need_counts(model) {
                    return Ok(Err(reason));
                }
                Ok(Ok(Scorer::Compare(Box::new(Dynamax { ratio: Ratio::$ratio, sif: $sif }))))
            }
        }
    };
}

variant!(
    jaccard,
    "dynamax-jaccard",
    Jaccard,
    false,
    "Fuzzy sets over the words of both texts, compared by Jaccard's ratio."
);
variant!(
    otsuka,
    "dynamax-otsuka",
    Otsuka,
    false,
    "Fuzzy sets over the words of both texts, compared by Otsuka's ratio."
);
variant!(
    dice,
    "dynamax-dice",
    Dice,
    false,
    "Fuzzy sets over the words of both texts, compared by Dice's ratio."
);
variant!(
    cosine,
    "dynamax-cosine",
    Cosine,
    false,
    "Fuzzy sets over the words of both texts, their memberships compared by cosine."
);
variant!(
    sif,
    "dynamax-sif",
    Jaccard,
    true,
    "Fuzzy sets over the words of both texts, each weighted by how rare it is."
);

/// The state of a text that is compared with many.
struct ForMany<'q> {
    rows: Rows<'q>,
    own: Vec<f32>,
    met: WordsMet,
}

enum Rows<'q> {
    Floats(Vec<f32>),
    Bytes(ByteRows<'q>),
}

impl<'q> ForMany<'q> {
    fn new(method: &Dynamax, one: &'q Phrase<'q>, buffers: &mut Buffers) -> Self {
        let mut own = Vec::new();
        method.within(one, buffers, &mut own);
        let dims = one.model().dims();
        let (mut floats, mut of_bytes) = (Vec::new(), ByteRows::default());
        let weight = |phrase: &Phrase<'_>, word: Word| method.weight(phrase, word);
        let rows = if unit_rows::bytes(unit_rows::bag(one), dims, weight, &mut of_bytes) {
            Rows::Bytes(of_bytes)
        } else {
            unit_rows::write(unit_rows::bag(one), dims, weight, &mut floats);
            Rows::Floats(floats)
        };
        Self { rows, own, met: WordsMet::by(one.words().len()) }
    }

    fn tidy(&mut self) {
        self.met.tidy();
    }

    /// Multiplies those words of `many` that have no products yet with the words of `one`.
    fn meet(&mut self, method: &Dynamax, many: &[Phrase<'_>], buffers: &mut Buffers) {
        let dims = many.first().map_or(1, |other| other.model().dims());
        let (met, places) = (&mut self.met, &mut buffers.places);
        places.clear();
        let words =
            many.iter().flat_map(|other| other.bag().iter().map(move |&word| (other, word)));
        let new = words.filter_map(|(other, word)| {
            let place = other.id(word).map(|id| met.place(id));
            places.push(place.map_or(u32::MAX, |(place, _)| place));
            place.filter(|(_, new)| *new).map(|_| (other, word))
        });
        let stride = match &self.rows {
            Rows::Bytes(rows) => {
                let mut others: ByteRows<'_> = std::mem::take(&mut buffers.bytes);
                let of_bytes = new.filter_map(|(other, word)| match other.row(word) {
                    Row::I8(row, scale) => Some((row, method.weight(other, word) * scale)),
                    Row::F32(_) | Row::F16(_) => None,
                });
                others.fill(dims, of_bytes);
                bytes::products(&others, rows, &mut buffers.products);
                buffers.bytes = others.emptied();
                rows.stride()
            }
            Rows::Floats(rows) => {
                buffers.rows.clear();
                for (other, word) in new {
                    let start = buffers.rows.len();
                    buffers.rows.resize(start + dims, 0.0);
                    let row = buffers.rows.get_mut(start..).unwrap_or_default();
                    other.row(word).scale_to(method.weight(other, word), row);
                }
                vector::products(&buffers.rows, rows, dims, &mut buffers.products);
                rows.len() / dims
            }
        };
        self.met.learn(&buffers.products, stride);
    }

    /// Scores the text against another text whose words were all met: they have the positions from
    /// `first` on, and these memberships in their own text.
    fn score(
        &self,
        method: &Dynamax,
        other: &Phrase<'_>,
        own: &[f32],
        first: usize,
        buffers: &mut Buffers,
    ) -> f32 {
        let places = buffers.places.get(first..first + other.words().len()).unwrap_or_default();
        let into = [&mut buffers.of_one[1], &mut buffers.of_other[1]];
        self.met.memberships(places, into);
        let one = Side { own: &self.own, other: &buffers.of_one[1] };
        method.ratio.of(one, Side { own, other: &buffers.of_other[1] })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ratio {
    Jaccard,
    Otsuka,
    Dice,
    Cosine,
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
    /// The ratio over the words of both texts.
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
