//! For each couple of texts the products that its distance is made of, whatever the weights.
//!
//! With a row a rank, let `A` hold the sums of one text's word vectors, each times the share with
//! which its word stands at the rank and divided by the number of words, and `B` the same of the
//! other text. Under weights ω the texts' vectors are `Aᵀω` and `Bᵀω`, so with `D = A − B`
//!
//! - the squared Euclidean distance is `ωᵀ(DDᵀ)ω`,
//! - the cosine is `ωᵀ(ABᵀ)ω / sqrt(ωᵀ(AAᵀ)ω · ωᵀ(BBᵀ)ω)`,
//!
//! and an epoch never touches a word vector. Forms that are too many to be kept are made again each
//! time they are asked for; which it is follows from the counts alone and changes no bit.

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::model::{Model, Phrase};
use cognate_kernels::simd::Packed;
use cognate_kernels::{simd, vector};
use rayon::prelude::*;

use crate::weights::couples::Couple;

/// Most bytes of forms that are kept.
pub(super) const KEPT_BYTES: usize = 4 << 30;

/// The forms of some couples, by their places.
pub(super) struct Forms<'c> {
    model: &'c Model,
    measure: Measure,
    ranks: usize,
    couples: &'c [Couple],
    /// Every form, unless they would take too much room.
    kept: Option<Vec<f32>>,
}

pub(super) struct Block<'b> {
    numbers: &'b [f32],
    /// The places of the forms asked for, where all are there.
    places: Option<&'b [usize]>,
    size: usize,
}

impl Block<'_> {
    /// The form of the couple that was asked for as number `at`.
    pub(super) fn form(&self, at: usize) -> &[f32] {
        let place = self.places.map_or(at, |places| places[at]);
        &self.numbers[place * self.size..(place + 1) * self.size]
    }
}

/// What a form is made in.
struct Bench<'c> {
    phrase: Phrase<'c>,
    sides: [Vec<f32>; 2],
    products: Vec<f32>,
}

impl<'c> Forms<'c> {
    /// The forms of these couples for weights of `ranks` ranks, kept where they take at most
    /// `most_bytes`.
    pub(super) fn new(
        model: &'c Model,
        couples: &'c [Couple],
        (measure, ranks): (Measure, usize),
        most_bytes: usize,
    ) -> Self {
        let mut forms = Self { model, measure, ranks, couples, kept: None };
        if couples.len() <= most_bytes / bytes(measure, ranks) {
            let all: Vec<usize> = (0..couples.len()).collect();
            let mut kept = Vec::new();
            forms.make(&all, &mut kept);
            forms.kept = Some(kept);
        }
        forms
    }

    /// What distances are measured by.
    pub(super) fn measure(&self) -> Measure {
        self.measure
    }

    /// How many weights there are.
    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Whether the couple at a place is related.
    pub(super) fn related(&self, place: usize) -> bool {
        self.couples[place].related
    }

    fn size(&self) -> usize {
        numbers(self.measure, self.ranks)
    }

    /// The forms at these places; `made` is room for those that are not kept.
    pub(super) fn block<'b>(&'b self, places: &'b [usize], made: &'b mut Vec<f32>) -> Block<'b> {
        match &self.kept {
            Some(kept) => Block { numbers: kept, places: Some(places), size: self.size() },
            None => {
                self.make(places, made);
                Block { numbers: made, places: None, size: self.size() }
            }
        }
    }

    /// Every form in its own slot, so that no bit depends on the number of threads.
    fn make(&self, places: &[usize], out: &mut Vec<f32>) {
        out.resize(places.len() * self.size(), 0.0);
        let slots = out.par_chunks_mut(self.size()).zip(places);
        slots.for_each_init(
            || Bench::new(self.model),
            |bench, (slot, &place)| self.make_one(bench, &self.couples[place], slot),
        );
    }

    fn make_one(&self, bench: &mut Bench<'c>, couple: &Couple, out: &mut [f32]) {
        let dims = self.model.vectors().dims();
        bench.look_up(0, &couple.texts.0, (self.ranks, dims));
        bench.look_up(1, &couple.texts.1, (self.ranks, dims));
        let [one, other] = &mut bench.sides;
        match self.measure {
            Measure::Euclidean => {
                // Both sums are made before they meet, so that equal texts have no difference.
                one.iter_mut().zip(&*other).for_each(|(one, other)| *one -= other);
                simd::gram(Packed { values: one, dims }, dims, out);
            }
            Measure::Cosine => {
                let square = self.ranks * self.ranks;
                let (one_form, rest) = out.split_at_mut(square);
                let (cross, other_form) = rest.split_at_mut(square);
                simd::gram(Packed { values: one, dims }, dims, one_form);
                simd::gram(Packed { values: other, dims }, dims, other_form);
                vector::products(one, other, dims, &mut bench.products);
                mirrored(&bench.products, self.ranks, cross);
            }
        }
    }
}

impl<'c> Bench<'c> {
    fn new(model: &'c Model) -> Self {
        Self { phrase: Phrase::new(model), sides: Default::default(), products: Vec::new() }
    }

    /// Sums the vectors of a text's words at the ranks they stand at.
    fn look_up(&mut self, side: usize, text: &str, (ranks, dims): (usize, usize)) {
        self.phrase.read(text);
        let sums = &mut self.sides[side];
        sums.clear();
        sums.resize(ranks * dims, 0.0);
        let words = self.phrase.words();
        for (place, between) in learned_idf::standing(&self.phrase, ranks) {
            let row = self.phrase.row(&words[place]);
            let n = words.len() as f64;
            let mut add = |rank: usize, share: f64| {
                let sum = &mut sums[rank * dims..(rank + 1) * dims];
                vector::add_scaled(sum, (share / n) as f32, row);
            };
            add(between.lower, 1.0 - between.fraction);
            if between.fraction > 0.0 {
                add(between.lower + 1, between.fraction);
            }
        }
    }
}

/// The mean of a square matrix and its mirror image, which gives the same form.
fn mirrored(matrix: &[f32], side: usize, out: &mut [f32]) {
    for row in 0..side {
        for column in 0..side {
            let sum = matrix[row * side + column] + matrix[column * side + row];
            out[row * side + column] = 0.5 * sum;
        }
    }
}

/// Numbers of a couple's form.
fn numbers(measure: Measure, ranks: usize) -> usize {
    let matrices = match measure {
        Measure::Euclidean => 1,
        Measure::Cosine => 3,
    };
    matrices * ranks * ranks
}

/// Bytes of a couple's form.
pub(super) fn bytes(measure: Measure, ranks: usize) -> usize {
    numbers(measure, ranks) * size_of::<f32>()
}
