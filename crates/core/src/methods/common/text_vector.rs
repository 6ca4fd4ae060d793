//! The vector of a text that others are compared with by cosine. Where a vector is a weighted sum of
//! rows, neither it nor that of the other text need be written down for one comparison; for many, the
//! text's own is.

use cognate_kernels::simd::Picked;
use cognate_kernels::simd::sums::{Rows, Sum};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::methods::Embed;
use crate::model::Phrase;

/// The weights of both texts' words, reused for the next comparison.
pub(crate) type Weights = [Vec<f32>; 2];

/// A text whose vector is made when it is needed.
pub(crate) struct TextVector<'q> {
    embedder: &'q dyn Embed,
    one: &'q Phrase<'q>,
    /// The text's vector, and room for another.
    vectors: [Vec<f32>; 2],
    made: bool,
}

impl<'q> TextVector<'q> {
    pub(crate) fn new(
        embedder: &'q dyn Embed,
        one: &'q Phrase<'q>,
        vectors: [Vec<f32>; 2],
    ) -> Self {
        Self { embedder, one, vectors, made: false }
    }

    pub(crate) fn text(&self) -> &'q Phrase<'q> {
        self.one
    }

    pub(crate) fn with(&mut self, other: &Phrase<'_>) -> [&[f32]; 2] {
        self.make();
        let [own, of_other] = &mut self.vectors;
        embed(self.embedder, other, of_other);
        [own, of_other]
    }

    /// The cosine with the vector of another text, the only one there is to compare or one of many:
    /// the bits are the same.
    pub(crate) fn cosine(
        &mut self,
        other: &Phrase<'_>,
        only: bool,
        [weights, of_other]: &mut Weights,
    ) -> f32 {
        let apart = only && !self.made;
        let own = if apart { sum(self.embedder, self.one, weights) } else { None };
        let other_sum = sum(self.embedder, other, of_other);
        if let (Some(own), Some(other)) = (own, other_sum) {
            return vector::cosine_of_sums(own, other);
        }
        self.make();
        if let Some(other) = other_sum {
            let vector = self.vectors[0].as_slice();
            let tables = [vector, &[]];
            let rows = Rows::F32(Picked { tables, numbers: &[0], dims: vector.len() });
            return vector::cosine_of_sums(Sum { rows, weights: &[1.0], share: 1.0 }, other);
        }
        let [own, of_other] = self.with(other);
        vector::cosine(Row::F32(own), Row::F32(of_other))
    }

    /// The cosine with a vector that was made before.
    pub(crate) fn cosine_with(&mut self, other: &[f32]) -> f32 {
        self.make();
        vector::cosine(Row::F32(&self.vectors[0]), Row::F32(other))
    }

    /// The memory of the vectors, which are made again if they are needed again.
    pub(crate) fn take_memory(&mut self) -> [Vec<f32>; 2] {
        self.made = false;
        std::mem::take(&mut self.vectors)
    }

    fn make(&mut self) {
        if !self.made {
            embed(self.embedder, self.one, &mut self.vectors[0]);
            self.made = true;
        }
    }
}

/// The vector of a text as a sum of rows; `None` if it is none of rows of one type.
fn sum<'p>(
    embedder: &dyn Embed,
    phrase: &'p Phrase<'_>,
    weights: &'p mut Vec<f32>,
) -> Option<Sum<'p>> {
    weights.clear();
    let share = embedder.coefficients(phrase, weights)?;
    phrase.scale(weights);
    Some(Sum { rows: phrase.bag_rows()?, weights, share })
}

pub(crate) fn embed(embedder: &dyn Embed, phrase: &Phrase<'_>, out: &mut Vec<f32>) {
    out.clear();
    out.resize(embedder.dims(phrase.model().dims()), 0.0);
    embedder.embed(phrase, out);
}
