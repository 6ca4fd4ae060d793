//! The vector of a text that others are compared with by cosine. Where a vector is a weighted sum of
//! rows, neither it nor that of the other text need be written down for one comparison; for many, the
//! text's own is.

use cognate_kernels::row_sum::RowSum;
use cognate_kernels::vector::Row;
use cognate_kernels::{row_sum, vector};

use crate::methods::Embed;
use crate::model::Phrase;

/// What sums are made in; kept from one comparison to the next.
#[derive(Default)]
pub(crate) struct Sums {
    rows: [RowSum<'static>; 2],
    coefficients: Vec<f32>,
}

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

    /// The vectors of the text and of another.
    pub(crate) fn with(&mut self, other: &Phrase<'_>) -> [&[f32]; 2] {
        self.make();
        let [own, of_other] = &mut self.vectors;
        embed(self.embedder, other, of_other);
        [own, of_other]
    }

    /// The cosine with the vector of another text, the only one there is to compare or one of many:
    /// the bits are the same.
    pub(crate) fn cosine(&mut self, other: &Phrase<'_>, only: bool, sums: &mut Sums) -> f32 {
        let Sums { rows, coefficients } = sums;
        let [mut own, mut of_other]: [RowSum<'_>; 2] = std::mem::take(rows);
        let mut summed = take_sum(self.embedder, other, coefficients, &mut of_other);
        if only && !self.made {
            summed = summed && take_sum(self.embedder, self.one, coefficients, &mut own);
        } else {
            self.make();
            let vector = (1.0, Row::F32(self.vectors[0].as_slice()));
            summed = summed && own.fill(1.0, std::iter::once(vector));
        }
        let cosine = summed.then(|| row_sum::cosine(&own, &of_other));
        *rows = [own.emptied(), of_other.emptied()];
        cosine.unwrap_or_else(|| {
            let [own, of_other] = self.with(other);
            vector::cosine(Row::F32(own), Row::F32(of_other))
        })
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

/// Takes the rows that the vector of a text is a sum of; `false` if it is none of rows of one type.
fn take_sum<'p>(
    embedder: &dyn Embed,
    phrase: &'p Phrase<'_>,
    coefficients: &mut Vec<f32>,
    out: &mut RowSum<'p>,
) -> bool {
    coefficients.clear();
    let share = embedder.coefficients(phrase, coefficients);
    share.is_some_and(|share| {
        let rows = coefficients.iter().zip(phrase.bag());
        out.fill(share, rows.map(|(&coefficient, word)| (coefficient, phrase.row(word))))
    })
}

/// Writes the vector of a text.
pub(crate) fn embed(embedder: &dyn Embed, phrase: &Phrase<'_>, out: &mut Vec<f32>) {
    out.clear();
    out.resize(embedder.dims(phrase.model().vectors().dims()), 0.0);
    embedder.embed(phrase, out);
}
