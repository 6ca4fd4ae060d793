//! A matrix of numbers in one file and its words in another, read side by side row by row.
//!
//! The header of the format ([`npy`](super::npy), [`safetensors`](super::safetensors)) says where
//! the matrix begins and how its numbers are encoded; from there on all formats are the same.

use half::{bf16, f16};

use super::input::Input;
use super::{Budget, Place, ReadError, Result, VectorReader};

/// Encoding of a number; all are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    F16,
    /// The upper half of an IEEE single.
    Bf16,
    F32,
    F64,
}

impl Number {
    fn bytes(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    fn decode(self, bytes: &[u8], row: &mut [f32]) {
        fn each<const N: usize>(bytes: &[u8], row: &mut [f32], number: fn([u8; N]) -> f32) {
            for (slot, bytes) in row.iter_mut().zip(bytes.as_chunks().0) {
                *slot = number(*bytes);
            }
        }
        match self {
            Self::F16 => each(bytes, row, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Self::Bf16 => each(bytes, row, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Self::F32 => each(bytes, row, f32::from_le_bytes),
            Self::F64 => each(bytes, row, |bytes| f64::from_le_bytes(bytes) as f32),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub number: Number,
    pub rows: u64,
    pub dims: u64,
}

impl Shape {
    /// Size of the whole matrix; `None` if it overflows.
    pub(super) fn bytes(self) -> Option<u64> {
        self.rows.checked_mul(self.dims)?.checked_mul(self.number.bytes())
    }
}

pub struct MatrixReader {
    input: Input,
    words: Input,
    number: Number,
    rows: u64,
    dims: usize,
    row_bytes: usize,
    word_bytes: usize,
    read: u64,
}

impl MatrixReader {
    /// `input` stands at the first number and contains the whole matrix; `words` has a word a line.
    pub fn new(input: Input, mut words: Input, shape: Shape, budget: Budget) -> Result<Self> {
        if shape.dims == 0 {
            return Err(input.malformed(Place::Byte(0), "its rows have 0 numbers"));
        }
        let rows = budget.admit_rows(shape.rows, &input)?;
        let dims = budget.admit_dims(shape.dims, &input)?;
        words.skip_byte_order_mark()?;
        let number = shape.number;
        // Cannot overflow: the budget limits the dimensions.
        let row_bytes = dims.saturating_mul(number.bytes() as usize);
        let word_bytes = budget.word_bytes;
        Ok(Self { input, words, number, rows, dims, row_bytes, word_bytes, read: 0 })
    }

    fn next_word(&mut self, word: &mut Vec<u8>) -> Result<bool> {
        let line = self.words.read_line_bounded(self.word_bytes)?;
        line.inspect(|line| word.extend_from_slice(line));
        Ok(line.is_some())
    }

    fn unequal(&self) -> ReadError {
        let (words, rows) = (self.words.lines(), self.rows);
        let matrix = self.input.path().display();
        let problem =
            format!("the vocabulary ends after {words} words, but {matrix} has {rows} rows");
        self.words.malformed(Place::Line(words), problem)
    }
}

impl VectorReader for MatrixReader {
    fn dims(&self) -> usize {
        self.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool> {
        word.clear();
        let more_words = self.next_word(word)?;
        if self.read == self.rows {
            if !more_words {
                return Ok(false);
            }
            while self.words.read_line_bounded(self.word_bytes)?.is_some() {}
            return Err(self.unequal());
        }
        if !more_words {
            return Err(self.unequal());
        }
        let bytes = self.input.read_exact(self.row_bytes, "a row's numbers")?;
        self.number.decode(bytes, row);
        self.read = self.read.saturating_add(1);
        Ok(true)
    }

    fn place(&self) -> Place {
        Place::Row(self.read.saturating_sub(1))
    }

    fn digest(&mut self) -> Result<String> {
        self.input.digest()
    }

    fn progress(&self) -> (u64, u64) {
        self.input.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::input::Input;
    use crate::readers::tests::{all, bytes, fault, row, says};
    use crate::readers::{Budget, Opened};

    #[test]
    fn every_kind_of_number_is_decoded_and_what_is_too_large_becomes_infinite() {
        let decode = |number: Number, bytes: &[u8]| {
            let mut row = [0.0; 2];
            number.decode(bytes, &mut row);
            row
        };
        assert_eq!(decode(Number::F16, &[0x00, 0x3c, 0x00, 0x7c]), [1.0, f32::INFINITY]);
        assert_eq!(decode(Number::Bf16, &[0x80, 0x3f, 0x20, 0xc0]), [1.0, -2.5]);
        let wide = [1.5_f64.to_le_bytes(), (-1e300_f64).to_le_bytes()].concat();
        assert_eq!(decode(Number::F64, &wide), [1.5, f32::NEG_INFINITY]);
        assert!(decode(Number::F32, &[f32::NAN.to_le_bytes(); 2].concat())[1].is_nan());
    }

    fn read(words: &str) -> Opened {
        let matrix = [1.0_f32, 2.0, 3.0, f32::INFINITY].map(f32::to_le_bytes).concat();
        let shape = Shape { number: Number::F32, rows: 2, dims: 2 };
        let words = Input::from_bytes("vocab.txt", words.into()).unwrap();
        let budget = Budget { word_bytes: 8, ..Budget::DEFAULT };
        Ok(Box::new(MatrixReader::new(bytes(matrix), words, shape, budget)?))
    }

    #[test]
    fn each_row_gets_the_word_of_its_line() {
        let expected = [row("the", &[1.0, 2.0]), row("of it", &[3.0, f32::INFINITY])];
        for words in ["the\nof it\n", "the\nof it", "\u{feff}the\r\nof it\r\n"] {
            assert_eq!(all(read(words)).unwrap(), expected);
        }
    }

    #[test]
    fn a_vocabulary_of_another_length_is_refused_with_both_numbers() {
        says(&fault(read("the\n")), &["vocab.txt, line 1", "1 words", "memory has 2 rows"]);
        says(&fault(read("")), &["vocab.txt, line 0", "0 words"]);
        says(&fault(read("a\nb\nc\nd\n")), &["vocab.txt, line 4", "4 words", "memory has 2 rows"]);
        says(&fault(read("a\nmuch too long\n")), &["vocab.txt, line 2", "longer than 8"]);
    }
}
