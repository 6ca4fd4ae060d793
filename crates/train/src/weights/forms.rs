//! The forms of a couple of texts, which are products that do not depend on the weights; and the
//! distance under given weights, with its derivative.
//!
//! Row r of the matrix `A` is the sum of one text's word vectors, each multiplied by the word's share
//! in rank r and divided by the number of words; `B` is the same for the other text. Under weights ω the
//! vectors of the texts are `Aᵀω` and `Bᵀω`, so with `D = A − B`
//!
//! - the squared Euclidean distance is `ωᵀ(DDᵀ)ω`,
//! - the cosine is `ωᵀ(ABᵀ)ω / sqrt(ωᵀ(AAᵀ)ω · ωᵀ(BBᵀ)ω)`,
//!
//! and an epoch needs no word vectors. The matrices are symmetric, so a form is the triangles of them.
//! Forms that do not fit into memory are computed again at each use; their number alone decides this, and it
//! changes no bit.

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::model::{Model, Phrase};
use cognate_kernels::simd::Packed;
use cognate_kernels::{simd, vector};
use cognate_stats::distribution::quantile;
use rayon::prelude::*;

use crate::weights::couples::Couple;

pub const KEPT_BYTES: usize = 4 << 30;

pub(super) struct PairForms<'c> {
    model: &'c Model,
    pub(super) measure: Measure,
    pub(super) ranks: usize,
    couples: &'c [Couple],
    kept: Option<Vec<f32>>,
}

pub(super) struct Block<'b> {
    numbers: &'b [f32],
    /// Positions of the requested forms, if all forms are held in memory.
    places: Option<&'b [usize]>,
    size: usize,
}

impl Block<'_> {
    pub(super) fn form(&self, at: usize) -> &[f32] {
        let place = self.places.map_or(at, |places| places[at]);
        &self.numbers[place * self.size..(place + 1) * self.size]
    }
}

struct FormScratch<'c> {
    phrase: Phrase<'c>,
    sides: [Vec<f32>; 2],
    products: Vec<f32>,
    square: Vec<f32>,
}

impl<'c> PairForms<'c> {
    /// Computes the forms of these couples for weights of `ranks` ranks; keeps them in memory if they take
    /// at most `most_bytes`.
    pub(super) fn new(
        model: &'c Model,
        couples: &'c [Couple],
        (measure, ranks): (Measure, usize),
        most_bytes: usize,
    ) -> Self {
        let mut forms = Self { model, measure, ranks, couples, kept: None };
        if couples.len() <= most_bytes / forms.bytes() {
            let all: Vec<usize> = (0..couples.len()).collect();
            let mut kept = Vec::new();
            forms.make(&all, &mut kept);
            forms.kept = Some(kept);
        }
        forms
    }

    pub(super) fn related(&self, place: usize) -> bool {
        self.couples[place].related
    }

    fn size(&self) -> usize {
        matrices(self.measure) * triangle(self.ranks)
    }

    pub(super) fn bytes(&self) -> usize {
        self.size() * size_of::<f32>()
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| size_of_val(kept.as_slice()))
    }

    /// The forms at these positions; `made` is a buffer for forms that are not held in memory.
    pub(super) fn block<'b>(&'b self, places: &'b [usize], made: &'b mut Vec<f32>) -> Block<'b> {
        match &self.kept {
            Some(kept) => Block { numbers: kept, places: Some(places), size: self.size() },
            None => {
                self.make(places, made);
                Block { numbers: made, places: None, size: self.size() }
            }
        }
    }

    /// Computes each form into its own slot, so that no bit depends on the number of threads.
    fn make(&self, places: &[usize], out: &mut Vec<f32>) {
        out.resize(places.len() * self.size(), 0.0);
        let slots = out.par_chunks_mut(self.size()).zip(places);
        slots.for_each_init(
            || FormScratch::new(self.model),
            |bench, (slot, &place)| self.make_one(bench, &self.couples[place], slot),
        );
    }

    fn make_one(&self, bench: &mut FormScratch<'c>, couple: &Couple, out: &mut [f32]) {
        let dims = self.model.dims();
        bench.look_up(0, &couple.texts.0, (self.ranks, dims));
        bench.look_up(1, &couple.texts.1, (self.ranks, dims));
        let FormScratch { sides: [one, other], products, square, .. } = bench;
        let mut gram = |rows: &[f32], out: &mut [f32]| {
            square.resize(self.ranks * self.ranks, 0.0);
            simd::gram(Packed { values: rows, dims }, dims, square);
            pack(square, self.ranks, out);
        };
        match self.measure {
            Measure::Euclidean => {
                // Both sums are complete before they are subtracted, so that equal texts give
                // exactly 0.
                one.iter_mut().zip(&*other).for_each(|(one, other)| *one -= other);
                gram(one, out);
            }
            Measure::Cosine => {
                let (one_form, rest) = out.split_at_mut(triangle(self.ranks));
                let (cross, other_form) = rest.split_at_mut(triangle(self.ranks));
                gram(one, one_form);
                gram(other, other_form);
                vector::products(one, other, dims, products);
                mirrored(products, self.ranks, cross);
            }
        }
    }
}

impl<'c> FormScratch<'c> {
    fn new(model: &'c Model) -> Self {
        Self {
            phrase: Phrase::new(model),
            sides: Default::default(),
            products: Vec::new(),
            square: Vec::new(),
        }
    }

    /// Sums the vectors of a text's words by rank.
    fn look_up(&mut self, side: usize, text: &str, (ranks, dims): (usize, usize)) {
        self.phrase.read(text);
        let sums = &mut self.sides[side];
        sums.clear();
        sums.resize(ranks * dims, 0.0);
        let words = self.phrase.words();
        for (place, between) in learned_idf::standing(&self.phrase, ranks) {
            let row = self.phrase.row(words[place]);
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

/// The places of a triangle of a symmetric matrix: row by row, from the diagonal on.
fn places(side: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..side).flat_map(move |row| (row..side).map(move |column| (row, column)))
}

fn triangle(side: usize) -> usize {
    side * (side + 1) / 2
}

fn pack(matrix: &[f32], side: usize, out: &mut [f32]) {
    for (number, (row, column)) in out.iter_mut().zip(places(side)) {
        *number = matrix[row * side + column];
    }
}

fn unpack(triangle: &[f32], side: usize, out: &mut Vec<f32>) {
    out.resize(side * side, 0.0);
    for (&number, (row, column)) in triangle.iter().zip(places(side)) {
        out[row * side + column] = number;
        out[column * side + row] = number;
    }
}

/// The triangle of the mean of a square matrix and its transpose, which has the same quadratic form.
fn mirrored(matrix: &[f32], side: usize, out: &mut [f32]) {
    for (number, (row, column)) in out.iter_mut().zip(places(side)) {
        *number = 0.5 * (matrix[row * side + column] + matrix[column * side + row]);
    }
}

fn matrices(measure: Measure) -> usize {
    match measure {
        Measure::Euclidean => 1,
        Measure::Cosine => 3,
    }
}

/// Bytes of whole matrices, by which the couples of a search are counted.
pub(super) fn square_bytes(measure: Measure, ranks: usize) -> usize {
    matrices(measure) * ranks * ranks * size_of::<f32>()
}

pub(super) const FIRST_WEIGHT: f64 = 0.5;
const BLOCK: usize = 4096;

/// Measures couples by their forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct DistanceScale {
    measure: Measure,
    pub(super) unit: f64,
}

#[derive(Debug, Default)]
pub(super) struct DistanceBuffers {
    images: [Vec<f64>; 3],
    square: Vec<f32>,
}

impl DistanceScale {
    /// Returns the scale whose unit is the median distance of the couples at `places` under the
    /// initial weights; `None` if that median is 0.
    pub(super) fn new(forms: &PairForms<'_>, places: &[usize]) -> Option<Self> {
        let bare = Self { measure: forms.measure, unit: 1.0 };
        let first = vec![FIRST_WEIGHT; forms.ranks];
        let unit = quantile(&bare.all(forms, places, &first), 0.5)?;
        (unit > 0.0).then_some(Self { unit, ..bare })
    }

    /// Returns the distance of a couple; writes its derivative by each weight into `slope`.
    pub(super) fn slope(
        &self,
        form: &[f32],
        weights: &[f64],
        bench: &mut DistanceBuffers,
        slope: &mut [f64],
    ) -> f64 {
        let (distance, factors) = self.measured(form, weights, bench);
        slope.fill(0.0);
        for (image, factor) in bench.images.iter().zip(factors) {
            slope.iter_mut().zip(image).for_each(|(slope, image)| *slope += factor * image);
        }
        distance
    }

    /// The distance, and the coefficient of each image in its derivative. All coefficients are 0
    /// where the derivative does not exist: at distance 0 and for a zero vector.
    fn measured(
        &self,
        form: &[f32],
        weights: &[f64],
        bench: &mut DistanceBuffers,
    ) -> (f64, [f64; 3]) {
        let ranks = weights.len();
        let mut squares = [0.0; 3];
        let forms = form.chunks_exact(triangle(ranks));
        for ((form, image), found) in forms.zip(&mut bench.images).zip(&mut squares) {
            unpack(form, ranks, &mut bench.square);
            *found = quadratic(&bench.square, weights, image);
        }
        let unit = self.unit;
        match self.measure {
            Measure::Euclidean => {
                let distance = squares[0].max(0.0).sqrt();
                let factor = if distance > 0.0 { 1.0 / (distance * unit) } else { 0.0 };
                (distance / unit, [factor, 0.0, 0.0])
            }
            Measure::Cosine => {
                let [one, cross, other] = squares;
                let lengths = (one.max(0.0) * other.max(0.0)).sqrt();
                if lengths <= 0.0 {
                    return (1.0 / unit, [0.0; 3]);
                }
                let cosine = (cross / lengths).clamp(-1.0, 1.0);
                let factors = [cosine / one, -2.0 / lengths, cosine / other];
                ((1.0 - cosine) / unit, factors.map(|factor| factor / unit))
            }
        }
    }

    pub(super) fn all(&self, forms: &PairForms<'_>, places: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut distances = vec![0.0; places.len()];
        let mut made = Vec::new();
        for (places, slots) in places.chunks(BLOCK).zip(distances.chunks_mut(BLOCK)) {
            let block = forms.block(places, &mut made);
            slots.par_iter_mut().enumerate().for_each_init(
                DistanceBuffers::default,
                |bench, (at, slot)| {
                    (*slot, _) = self.measured(block.form(at), weights, bench);
                },
            );
        }
        distances
    }
}

/// Returns `ωᵀFω` of a symmetric form; writes `Fω` into `image`.
fn quadratic(form: &[f32], weights: &[f64], image: &mut Vec<f64>) -> f64 {
    image.resize(weights.len(), 0.0);
    simd::image(form, weights, image);
    image.iter().zip(weights).map(|(image, weight)| image * weight).sum()
}
