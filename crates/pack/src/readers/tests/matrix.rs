//! A matrix and its words must be equally many.

use super::{all, bytes, fault, row, says};
use crate::readers::input::Input;
use crate::readers::matrix::{MatrixReader, Number, Shape};
use crate::readers::{Budget, ReadError};

fn read(words: &str) -> Result<MatrixReader, ReadError> {
    let matrix = [1.0_f32, 2.0, 3.0, f32::INFINITY].map(f32::to_le_bytes).concat();
    let shape = Shape { number: Number::F32, rows: 2, dims: 2 };
    let words = Input::from_bytes("vocab.txt", words.into()).unwrap();
    MatrixReader::new(bytes(matrix), words, shape, Budget { word_bytes: 8, ..Budget::DEFAULT })
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
