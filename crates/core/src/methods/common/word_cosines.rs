//! The cosines of the different words of two texts with each other, computed together.

use crate::methods::common::union::Union;
use crate::methods::common::unit_rows;
use crate::methods::common::unit_rows::{Products, UnitRows};
use crate::model::Phrase;

/// The words, their lengths and their cosines, with memory for the next two texts.
#[derive(Default)]
pub(crate) struct WordCosines {
    pub(crate) union: Union,
    memory: unit_rows::RowBuffers,
    products: unit_rows::Work,
    stride: usize,
    pub(crate) lengths: Vec<f32>,
    /// Whether they are computed since they were forgotten.
    are_known: bool,
}

impl WordCosines {
    pub(crate) fn forget(&mut self) {
        self.are_known = false;
    }

    /// Takes the words of two texts and multiplies each with every other once, unless they are known.
    pub(crate) fn know(&mut self, texts: [&Phrase<'_>; 2]) {
        if !std::mem::replace(&mut self.are_known, true) {
            self.union.unite(texts);
            let (words, dims) = (self.union.words(texts), texts[0].model().dims());
            let memory = std::mem::take(&mut self.memory);
            let rows = UnitRows::new(words, dims, memory, &mut self.lengths);
            self.stride = rows.gram(&mut self.products).stride();
            self.memory = rows.into_memory();
        }
    }

    /// The words, the matrix of their cosines, and their lengths.
    pub(crate) fn parts(&mut self) -> (&mut Union, Products<'_>, &[f32]) {
        let products = self.products.last(self.stride, self.lengths.len());
        (&mut self.union, products, &self.lengths)
    }

    /// The cosine of the words at two places.
    pub(crate) fn cosine(&self, one: usize, other: usize) -> f32 {
        let products = self.products.last(self.stride, self.lengths.len()).numbers();
        products.get(one * self.stride + other).map_or(0.0, |cosine| cosine.clamp(-1.0, 1.0))
    }
}
