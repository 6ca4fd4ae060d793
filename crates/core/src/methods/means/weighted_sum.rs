//! Vectors that are weighted sums of a text's rows: `t = Σ c_i v(w_i)`, with a coefficient a word.
//! Where the coefficients come from is each method's own; here they are added up and taken apart.

use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::methods::{Embed, Measure, Scorer};
use crate::model::Phrase;
use crate::model::phrase::Word;

/// A method that is nothing but a weighted sum. The function gives a coefficient for each word, in
/// the order of the bag.
struct WeightedSum<C> {
    coefficients: C,
    measure: Measure,
}

/// A scorer by weighted sums, compared by `measure` unless a query says otherwise.
pub(crate) fn scorer<C>(measure: Measure, coefficients: C) -> Scorer
where
    C: Fn(&Phrase<'_>) -> Vec<f32> + Send + Sync + 'static,
{
    Scorer::Embed(Box::new(WeightedSum { coefficients, measure }))
}

impl<C: Fn(&Phrase<'_>) -> Vec<f32> + Send + Sync> Embed for WeightedSum<C> {
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]) {
        add_up(phrase, &(self.coefficients)(phrase), out);
    }

    fn coefficients(&self, phrase: &Phrase<'_>, out: &mut Vec<f32>) -> Option<f32> {
        out.extend((self.coefficients)(phrase));
        Some(1.0)
    }

    fn measure(&self) -> Measure {
        self.measure
    }

    fn shares(&self, phrase: &Phrase<'_>, other: &[f32], shares: &mut [f32]) -> bool {
        take_apart(phrase, &(self.coefficients)(phrase), other, shares);
        true
    }
}

/// Returns the coefficient of each word in a weighted mean: `weight / n`.
pub(crate) fn coefficients(phrase: &Phrase<'_>, weight: impl Fn(Word) -> f32) -> Vec<f32> {
    let words = phrase.words().len() as f32;
    phrase.bag().iter().map(|&word| weight(word) / words).collect()
}

/// `out += Σ c_i v(w_i)`, in the order of the bag.
pub(crate) fn add_up(phrase: &Phrase<'_>, coefficients: &[f32], out: &mut [f32]) {
    let rows = phrase.bag().iter().zip(coefficients);
    vector::add_all(out, rows.map(|(&word, &coefficient)| (coefficient, phrase.row(word))));
}

/// For each word, in the order of the text, its part of the product of the sum with `other`.
pub(crate) fn take_apart(
    phrase: &Phrase<'_>,
    coefficients: &[f32],
    other: &[f32],
    shares: &mut [f32],
) {
    let bag = phrase.bag_order().into_iter().zip(phrase.bag());
    for ((place, &word), coefficient) in bag.zip(coefficients) {
        if let Some(share) = shares.get_mut(place) {
            *share = coefficient * vector::dot(phrase.row(word), Row::F32(other));
        }
    }
}
