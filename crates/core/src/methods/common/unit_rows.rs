//! The rows of a text, each brought to length 1, and their products: of bytes in whole numbers where the
//! model's rows are bytes, else of f32. Products come as matrices with a row for each word.

use cognate_kernels::simd::bytes;
use cognate_kernels::simd::bytes::{ByteRows, Columns};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::methods::common::unit_rows;
use crate::methods::{Embed, Shares};
use crate::model::Phrase;
use crate::model::phrase::Word;

/// Memory of the rows, reused for the next text.
#[derive(Default)]
pub(crate) struct RowBuffers {
    floats: Vec<f32>,
    bytes: ByteRows<'static>,
}

/// The rows of a text, in the order of its bag. A row without length is all zeros.
#[derive(Default)]
pub(crate) struct UnitRows<'p> {
    dims: usize,
    of_bytes: bool,
    floats: Vec<f32>,
    bytes: ByteRows<'p>,
}

#[derive(Default)]
pub(crate) struct Work {
    matrix: Vec<f32>,
    columns: Columns,
}

impl Work {
    /// The products that were computed last, in rows of this stride and with this many columns.
    pub(crate) fn last(&self, stride: usize, columns: usize) -> Products<'_> {
        Products { numbers: &self.matrix, stride, columns }
    }
}

/// A row of products for each word of a text.
pub(crate) struct Products<'w> {
    numbers: &'w [f32],
    stride: usize,
    columns: usize,
}

impl<'w> Products<'w> {
    /// A matrix whose rows are `stride` numbers apart; the first `columns` of each count.
    pub(crate) fn new(numbers: &'w [f32], stride: usize, columns: usize) -> Self {
        Self { numbers, stride, columns }
    }

    pub(crate) fn numbers(&self) -> &'w [f32] {
        self.numbers
    }

    pub(crate) fn of<'n>(&self, numbers: &'n [f32]) -> Products<'n> {
        Products { numbers, stride: self.stride, columns: self.columns }
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &'w [f32]> + use<'w> {
        let columns = self.columns;
        self.numbers.chunks_exact(self.stride.max(1)).filter_map(move |row| row.get(..columns))
    }
}

impl<'p> UnitRows<'p> {
    /// The rows of words; writes the lengths that they had.
    pub(crate) fn new(
        words: impl ExactSizeIterator<Item = (&'p Phrase<'p>, Word)> + Clone,
        dims: usize,
        memory: RowBuffers,
        lengths: &mut Vec<f32>,
    ) -> Self {
        let RowBuffers { mut floats, bytes } = memory;
        let mut bytes: ByteRows<'p> = bytes;
        let of_bytes = unit_rows::bytes(words.clone(), dims, |_, _| 1.0, &mut bytes);
        if of_bytes {
            bytes.to_unit_length(lengths);
        } else {
            lengths.clear();
            floats.resize(words.len() * dims, 0.0);
            for ((phrase, word), unit) in words.zip(floats.chunks_exact_mut(dims)) {
                let row = phrase.row(word);
                let length = vector::norm(row);
                lengths.push(length);
                row.scale_to(unit_rows::inverse(length), unit);
            }
        }
        Self { dims, of_bytes, floats, bytes }
    }

    pub(crate) fn into_memory(self) -> RowBuffers {
        RowBuffers { floats: self.floats, bytes: self.bytes.emptied() }
    }

    pub(crate) fn gram<'w>(&self, work: &'w mut Work) -> Products<'w> {
        let words = if self.of_bytes {
            bytes::gram(&self.bytes, &mut work.matrix);
            (self.bytes.stride(), self.bytes.count())
        } else {
            vector::gram(&self.floats, self.dims, &mut work.matrix);
            let words = self.floats.len() / self.dims;
            (words, words)
        };
        Products { numbers: &work.matrix, stride: words.0, columns: words.1 }
    }

    /// The products of the rows with those of another text, whose rows are of the same type.
    pub(crate) fn products<'w>(&self, other: &UnitRows<'_>, work: &'w mut Work) -> Products<'w> {
        let words = if self.of_bytes {
            bytes::products(&self.bytes, &other.bytes, &mut work.matrix);
            (other.bytes.stride(), other.bytes.count())
        } else {
            vector::products(&self.floats, &other.floats, self.dims, &mut work.matrix);
            let words = other.floats.len() / self.dims;
            (words, words)
        };
        Products { numbers: &work.matrix, stride: words.0, columns: words.1 }
    }

    /// For each row its largest product with all rows; 0 if all are below.
    pub(crate) fn largest_within(&self, work: &mut Work, out: &mut Vec<f32>) {
        if self.of_bytes {
            bytes::within(&self.bytes, &mut work.columns, out);
        } else {
            vector::gram(&self.floats, self.dims, &mut work.matrix);
            vector::row_maxima(&work.matrix, (self.floats.len() / self.dims).max(1), out);
        }
    }

    /// Writes for each row of either text its largest product with the rows of the other text; 0 if all
    /// products are negative. The rows of both texts must have the same type.
    pub(crate) fn largest_across(
        &self,
        other: &UnitRows<'_>,
        work: &mut Work,
        [of_one, of_other]: [&mut Vec<f32>; 2],
    ) {
        if self.of_bytes {
            bytes::across(&self.bytes, &other.bytes, &mut work.columns, [of_one, of_other]);
        } else {
            vector::products(&self.floats, &other.floats, self.dims, &mut work.matrix);
            let columns = other.floats.len() / self.dims;
            vector::row_maxima(&work.matrix, columns.max(1), of_one);
            vector::column_maxima(&work.matrix, columns.max(1), of_other);
        }
    }
}

/// What each word adds to the cosine of two texts' vectors, if the vectors come apart into words.
/// A cosine comes apart twice, into the words of either text, so half of it is laid on each.
pub(crate) fn shares(
    embedder: &dyn Embed,
    texts: [&Phrase<'_>; 2],
    vectors: [&[f32]; 2],
) -> Option<Shares> {
    let [one, other] = texts;
    let lengths = vector::norm(Row::F32(vectors[0])) * vector::norm(Row::F32(vectors[1]));
    let mut shares = Shares {
        one: vec![0.0; one.words().len()],
        other: vec![0.0; other.words().len()],
        memberships: None,
    };
    let apart = embedder.shares(one, vectors[1], &mut shares.one)
        && embedder.shares(other, vectors[0], &mut shares.other);
    if !apart || lengths <= 0.0 {
        return None;
    }
    let all = shares.one.iter_mut().chain(&mut shares.other);
    all.for_each(|share| *share /= 2.0 * lengths);
    Some(shares)
}

/// Arora et al. 2017: how quickly a word's weight falls as it gets more frequent.
pub(crate) const SIF_A: f64 = 1e-3;

/// The SIF weight of a word (SCIENCE: Arora et al. 2017, equation 1): `a / (a + p(w))`; 1 for a
/// word that was not counted.
pub(crate) fn sif_weight(phrase: &Phrase<'_>, word: Word) -> f32 {
    (SIF_A / (SIF_A + phrase.probability(word))) as f32
}

/// Writes the rows of a text one after another.
pub(crate) fn plain(phrase: &Phrase<'_>, out: &mut Vec<f32>) {
    write(bag(phrase), phrase.model().dims(), |_, _| 1.0, out);
}

/// The words of a text's bag, each with its text.
pub(crate) fn bag<'p>(
    phrase: &'p Phrase<'p>,
) -> impl ExactSizeIterator<Item = (&'p Phrase<'p>, Word)> + Clone {
    phrase.bag().iter().map(move |&word| (phrase, word))
}

/// Takes the rows of words where they lie, each with its scale times its weight, if they are all of
/// bytes; `false` if one is not.
pub(crate) fn bytes<'p>(
    words: impl Iterator<Item = (&'p Phrase<'p>, Word)>,
    dims: usize,
    weight: impl Fn(&Phrase<'_>, Word) -> f32,
    out: &mut ByteRows<'p>,
) -> bool {
    let mut all = true;
    let rows = words.map_while(|(phrase, word)| match phrase.row(word) {
        Row::I8(row, scale) => Some((row, weight(phrase, word) * scale)),
        Row::F32(_) | Row::F16(_) => {
            all = false;
            None
        }
    });
    out.fill(dims, rows);
    all
}

/// Lists the rows of words where they lie, if they are all of f32; `false` if one is not.
pub(crate) fn borrowed<'p>(
    mut words: impl Iterator<Item = (&'p Phrase<'p>, Word)>,
    out: &mut Vec<&'p [f32]>,
) -> bool {
    words.all(|(phrase, word)| match phrase.row(word) {
        Row::F32(row) => {
            out.push(row);
            true
        }
        Row::F16(_) | Row::I8(..) => false,
    })
}

/// Writes the rows of words one after another, each times its weight.
pub(crate) fn write<'p>(
    words: impl ExactSizeIterator<Item = (&'p Phrase<'p>, Word)>,
    dims: usize,
    weight: impl Fn(&Phrase<'_>, Word) -> f32,
    out: &mut Vec<f32>,
) {
    out.resize(words.len() * dims, 0.0);
    for ((phrase, word), row) in words.zip(out.chunks_exact_mut(dims)) {
        phrase.row(word).scale_to(weight(phrase, word), row);
    }
}

/// Writes the rows of a text one after another, each brought to length 1. A row without length
/// becomes zeros.
pub(crate) fn unit(phrase: &Phrase<'_>, out: &mut Vec<f32>) {
    let dims = phrase.model().dims();
    write(bag(phrase), dims, |_, word| inverse(vector::norm(phrase.row(word))), out);
}

/// The factor that brings a row of this length to length 1; 0 for a row without length.
pub(crate) fn inverse(norm: f32) -> f32 {
    let factor = 1.0 / norm;
    if factor.is_finite() { factor } else { 0.0 }
}

/// Puts numbers that stand in the order of the bag into the order of the text.
pub(crate) fn in_text_order<T: Copy + Default>(phrase: &Phrase<'_>, of_bag: &[T]) -> Vec<T> {
    let mut of_text = vec![T::default(); phrase.words().len()];
    for (place, &number) in phrase.bag_order().into_iter().zip(of_bag) {
        of_text[place] = number;
    }
    of_text
}
