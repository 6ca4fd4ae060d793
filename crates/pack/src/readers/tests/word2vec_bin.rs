//! Binary rows: with newlines and without, cut, endless, and under headers that lie.

use super::{Row, all, bytes, fault, row, says};
use crate::readers::word2vec_bin::Word2VecBinReader;
use crate::readers::{Budget, Place, ReadError, VectorReader};

fn read(file: impl AsRef<[u8]>) -> Result<Word2VecBinReader, ReadError> {
    Word2VecBinReader::new(bytes(file), Budget::DEFAULT)
}

fn file(header: &str, rows: &[Row], row_end: &str) -> Vec<u8> {
    let mut file = format!("{header}\n").into_bytes();
    for (word, numbers) in rows {
        file.extend_from_slice(word.as_bytes());
        file.push(b' ');
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        file.extend_from_slice(row_end.as_bytes());
    }
    file
}

/// The newline 0x0a stands in the numbers too, where it ends nothing.
fn rows() -> Vec<Row> {
    vec![
        row("the", &[1.0, f32::from_le_bytes([b'\n'; 4])]),
        row("caf\u{e9}", &[-0.5, f32::INFINITY]),
    ]
}

#[test]
fn rows_are_read_with_a_newline_after_each_and_without() {
    for row_end in ["", "\n"] {
        let mut reader = read(file("2 2", &rows(), row_end)).unwrap();
        assert_eq!((reader.dims(), reader.rows_hint()), (2, Some(2)));
        let (mut word, mut numbers) = (Vec::new(), [0.0; 2]);
        reader.next_row(&mut word, &mut numbers).unwrap();
        assert_eq!(reader.place(), Place::Byte(4));
        assert_eq!(all(read(file("2 2", &rows(), row_end))).unwrap(), rows());
    }
}

#[test]
fn bytes_that_are_not_utf8_are_handed_over_for_the_caller_to_judge() {
    let file = [b"1 1\n\xff\xfe ".as_slice(), &1.0_f32.to_le_bytes()].concat();
    assert_eq!(all(read(file)).unwrap(), [row("\\xff\\xfe", &[1.0])]);
}

#[test]
fn headers_that_lie_are_refused_before_anything_is_reserved() {
    says(&fault(read("123456789012345678901234 300\n")), &["line 1", "absurd"]);
    for header in ["1000000000000000000 1000000000", "3 2", "2 4", "18446744073709551615 1"] {
        let lying = file(header, &rows(), "\n");
        says(&fault(read(lying)), &["line 1", "promises", "bytes that follow"]);
    }
    says(&fault(read("1 2")), &["line 1", "1 rows of 2 numbers"]);
    says(&fault(read("no header\n")), &["line 1", "expected a header", "`no header`"]);
    says(&fault(read("7".repeat(1000))), &["line 1", "longer than 256"]);
    let fewer = file("1 2", &rows(), "\n");
    says(&fault(read(fewer)), &["byte 17", "1 rows", "more bytes follow"]);
}

#[test]
fn a_word_without_end_is_given_up_after_a_kibibyte() {
    let endless = [b"1 1\n".as_slice(), &[b'x'; 5000]].concat();
    says(&fault(read(endless)), &["byte 4", "a word is not ended within 1024 bytes"]);
    let most = file("1 1", &[row(&"x".repeat(1024), &[1.0])], "");
    assert_eq!(all(read(most)).unwrap().len(), 1);
}

#[test]
fn a_cut_last_row_is_named_by_its_byte() {
    // The long first word pays for the bytes that the second row lacks.
    let long = [row(&"x".repeat(20), &[1.0, 2.0]), row("of", &[3.0, 4.0])];
    let whole = file("2 2", &long, "");
    let at = |length: usize| fault(read(&whole[..length]));
    says(&at(whole.len() - 1), &["byte 36", "expected 8 bytes of a row's numbers, found 7"]);
    says(&at(whole.len() - 9), &["byte 33", "the file ends 2 bytes into a word"]);
    says(&at(whole.len() - 11), &["byte 33", "after 1 rows", "promises 2"]);
}
