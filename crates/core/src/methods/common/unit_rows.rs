//! The rows of a text, each brought to length 1, and their products: of bytes in whole numbers where the
//! model's rows are bytes, else of f32. Products come as matrices with a row for each word.

use cognate_kernels::simd::bytes;
use cognate_kernels::simd::bytes::{ByteRows, Columns};
use cognate_kernels::{pairwise, vector};

use crate::methods::common::rows;
use crate::model::Phrase;

/// What rows lie in; kept from one text to the next.
#[derive(Default)]
pub(crate) struct Memory {
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

/// What products are made in.
#[derive(Default)]
pub(crate) struct Work {
    matrix: Vec<f32>,
    columns: Columns,
}

/// A row of products for each word of a text.
pub(crate) struct Products<'w> {
    numbers: &'w [f32],
    stride: usize,
    columns: usize,
}

impl<'w> Products<'w> {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'w [f32]> + use<'w> {
        let columns = self.columns;
        self.numbers.chunks_exact(self.stride.max(1)).filter_map(move |row| row.get(..columns))
    }
}

impl<'p> UnitRows<'p> {
    /// The rows of a text; writes the lengths that they had.
    pub(crate) fn of(phrase: &'p Phrase<'_>, memory: Memory, lengths: &mut Vec<f32>) -> Self {
        let Memory { mut floats, bytes } = memory;
        let mut bytes: ByteRows<'p> = bytes;
        let dims = phrase.model().vectors().dims();
        let of_bytes = rows::bytes(phrase, |_| 1.0, &mut bytes);
        if of_bytes {
            bytes.to_unit_length(lengths);
        } else {
            lengths.clear();
            floats.resize(phrase.words().len() * dims, 0.0);
            for (word, unit) in phrase.bag().zip(floats.chunks_exact_mut(dims)) {
                let row = phrase.row(word);
                let length = vector::norm(row);
                lengths.push(length);
                row.scale_to(rows::inverse(length), unit);
            }
        }
        Self { dims, of_bytes, floats, bytes }
    }

    /// The memory, for another text.
    pub(crate) fn into_memory(self) -> Memory {
        Memory { floats: self.floats, bytes: self.bytes.emptied() }
    }

    /// The products of the rows with themselves.
    pub(crate) fn gram<'w>(&self, work: &'w mut Work) -> Products<'w> {
        let words = if self.of_bytes {
            bytes::gram(&self.bytes, &mut work.matrix);
            (self.bytes.stride(), self.bytes.count())
        } else {
            pairwise::gram(&self.floats, self.dims, &mut work.matrix);
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
            pairwise::products(&self.floats, &other.floats, self.dims, &mut work.matrix);
            let words = other.floats.len() / self.dims;
            (words, words)
        };
        Products { numbers: &work.matrix, stride: words.0, columns: words.1 }
    }

    /// For each row its largest product with all of them; 0 where all are below.
    pub(crate) fn largest_within(&self, work: &mut Work, out: &mut Vec<f32>) {
        if self.of_bytes {
            bytes::within(&self.bytes, &mut work.columns, out);
        } else {
            pairwise::gram(&self.floats, self.dims, &mut work.matrix);
            pairwise::row_maxima(&work.matrix, (self.floats.len() / self.dims).max(1), out);
        }
    }

    /// For each row its largest product with those of another text, whose rows are of the same type,
    /// and the other way round; 0 where all are below.
    pub(crate) fn largest_across(
        &self,
        other: &UnitRows<'_>,
        work: &mut Work,
        [of_one, of_other]: [&mut Vec<f32>; 2],
    ) {
        if self.of_bytes {
            bytes::across(&self.bytes, &other.bytes, &mut work.columns, [of_one, of_other]);
        } else {
            pairwise::products(&self.floats, &other.floats, self.dims, &mut work.matrix);
            let columns = other.floats.len() / self.dims;
            pairwise::row_maxima(&work.matrix, columns.max(1), of_one);
            pairwise::column_maxima(&work.matrix, columns.max(1), of_other);
        }
    }
}
