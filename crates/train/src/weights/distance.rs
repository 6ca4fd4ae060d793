//! The distance of a couple under given weights, and how it changes with them.
//!
//! Distances are in units of the median distance under the untrained weights, a departure from the
//! paper: learning rate, κ and λ then mean the same for word vectors of any length.

use cognate::methods::Measure;
use cognate_kernels::simd;
use cognate_stats::distribution::quantile;
use rayon::prelude::*;

use crate::weights::forms::Forms;

/// The weight that every rank begins with.
pub(super) const FIRST_WEIGHT: f64 = 0.5;
/// Couples measured at a time where forms are not kept.
const BLOCK: usize = 4096;

/// Measures couples by their forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ruler {
    measure: Measure,
    unit: f64,
}

/// What a measurement is made in.
#[derive(Debug, Default)]
pub(super) struct Bench {
    images: [Vec<f64>; 3],
}

impl Ruler {
    /// A ruler whose unit is the median distance of these couples under the untrained weights;
    /// `None` if that is 0.
    pub(super) fn of(forms: &Forms<'_>, places: &[usize]) -> Option<Self> {
        let bare = Self { measure: forms.measure(), unit: 1.0 };
        let first = vec![FIRST_WEIGHT; forms.ranks()];
        let unit = quantile(&bare.all(forms, places, &first), 0.5)?;
        (unit > 0.0).then_some(Self { unit, ..bare })
    }

    /// What distances are in.
    pub(super) fn unit(&self) -> f64 {
        self.unit
    }

    /// The distance of a couple.
    pub(super) fn distance(&self, form: &[f32], weights: &[f64], bench: &mut Bench) -> f64 {
        self.measured(form, weights, bench).0
    }

    /// The distance of a couple; its derivative by each weight goes into `slope`.
    pub(super) fn slope(
        &self,
        form: &[f32],
        weights: &[f64],
        bench: &mut Bench,
        slope: &mut [f64],
    ) -> f64 {
        let (distance, factors) = self.measured(form, weights, bench);
        slope.fill(0.0);
        for (image, factor) in bench.images.iter().zip(factors) {
            slope.iter_mut().zip(image).for_each(|(slope, image)| *slope += factor * image);
        }
        distance
    }

    /// The distance, and what each image counts in its derivative. Where it has none, at 0 and for
    /// a text without direction, all count nothing.
    fn measured(&self, form: &[f32], weights: &[f64], bench: &mut Bench) -> (f64, [f64; 3]) {
        let square = weights.len() * weights.len();
        let mut squares = [0.0; 3];
        for ((form, image), found) in
            form.chunks_exact(square).zip(&mut bench.images).zip(&mut squares)
        {
            *found = quadratic(form, weights, image);
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

    /// The distances of the couples at these places, each in its own slot.
    pub(super) fn all(&self, forms: &Forms<'_>, places: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut distances = vec![0.0; places.len()];
        let mut made = Vec::new();
        for (places, slots) in places.chunks(BLOCK).zip(distances.chunks_mut(BLOCK)) {
            let block = forms.block(places, &mut made);
            slots.par_iter_mut().enumerate().for_each_init(Bench::default, |bench, (at, slot)| {
                *slot = self.distance(block.form(at), weights, bench);
            });
        }
        distances
    }
}

/// `ωᵀFω` of a symmetric form; `Fω` goes into `image`.
fn quadratic(form: &[f32], weights: &[f64], image: &mut Vec<f64>) -> f64 {
    image.resize(weights.len(), 0.0);
    simd::image(form, weights, image);
    image.iter().zip(weights).map(|(image, weight)| image * weight).sum()
}
