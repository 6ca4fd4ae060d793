//! Text with a header and without (word2vec and GloVe): what is read, and which line is at fault.

use super::{all, bytes, fault, row, says};
use crate::readers::text::{GloveTextReader, Word2VecTextReader};
use crate::readers::{Budget, Place, ReadError, VectorReader, text};

fn word2vec(file: impl AsRef<[u8]>) -> Result<Word2VecTextReader, ReadError> {
    Word2VecTextReader::new(bytes(file), Budget::DEFAULT)
}

fn glove(file: impl AsRef<[u8]>) -> Result<GloveTextReader, ReadError> {
    GloveTextReader::new(bytes(file), Budget::DEFAULT)
}

/// Both names of the format lead to the reader that fits the first line.
fn either(file: &str) -> Result<Box<dyn VectorReader>, ReadError> {
    text::open(bytes(file), Budget::DEFAULT)
}

#[test]
fn rows_are_the_same_with_header_without_with_returns_and_with_a_byte_order_mark() {
    let expected = [row("the", &[0.5, -1.0]), row("of", &[1e-3, 2.0])];
    for file in [
        "2 2\nthe 0.5 -1\nof 1e-3 2\n",
        "2 2 \r\nthe 0.5 -1 \r\nof 1e-3 2 \r\n",
        "the 0.5 -1\nof 1e-3 2",
        "\u{feff}2 2\nthe\t0.5\t-1\nof\t1e-3\t2\n\n\r\n",
        "\u{feff}the 0.5 -1\nof 1e-3 2\n",
    ] {
        assert_eq!(all(either(file)).unwrap(), expected, "{file:?}");
    }
}

#[test]
fn a_header_is_only_hinted_at_when_the_file_can_hold_its_rows() {
    let reader = word2vec("2 2\na 1 2\nb 3 4\n").unwrap();
    assert_eq!((reader.dims(), reader.rows_hint()), (2, Some(2)));
    assert_eq!(glove("a 1 2\n").unwrap().rows_hint(), None);
}

#[test]
fn a_header_that_promises_too_many_rows_is_caught_where_the_file_ends() {
    let reader = word2vec("3 2\na 1 2\nb 3000 4000\n");
    says(&fault(reader), &["memory, line 3", "after 2 rows", "promises 3"]);
}

#[test]
fn a_header_that_promises_too_few_rows_is_caught_once_all_were_handed_over() {
    let mut reader = word2vec("1 2\na 1 2\nb 3 4\n").unwrap();
    let (mut word, mut row) = (Vec::new(), [0.0; 2]);
    for _ in 0..2 {
        assert!(reader.next_row(&mut word, &mut row).unwrap());
    }
    assert_eq!((reader.place(), word.as_slice()), (Place::Line(3), b"b".as_slice()));
    let end = reader.next_row(&mut word, &mut row).unwrap_err().to_string();
    says(&end, &["line 3", "after 2 rows", "promises 1"]);
}

#[test]
fn absurd_headers_are_refused_before_anything_is_read() {
    for file in ["1000000000000000000 1000000000\na 1\n", "18446744073709551615 4\na 1 2 3 4\n"] {
        says(&fault(word2vec(file)), &["memory, line 1", "promises", "bytes that follow"]);
    }
    says(&fault(word2vec("123456789012345678901 2\n")), &["line 1", "`123456789012345678901`"]);
    says(&fault(word2vec("3 0\na\nb\nc\n")), &["line 1", "0 numbers"]);
    says(&fault(word2vec("the 0.1\n")), &["line 1", "expected a header", "`the 0.1`"]);
    says(&fault(word2vec("")), &["line 1", "empty"]);
    says(&fault(glove("")), &["line 1", "empty"]);
    says(&fault(glove("2 2\na 1 2\n")), &["line 1", "`2 2` is a header"]);
    says(&fault(glove("no numbers here\n")), &["line 1", "`no numbers here`"]);
}

#[test]
fn the_budget_holds_for_rows_dimensions_words_and_lines() {
    let budget = Budget { words: 2, dims: 3, word_bytes: 4 };
    let read = |file: &str| fault(text::open(bytes(file), budget));
    says(&read("3 1\na 1\nb 1\nc 1\n"), &["3 rows", "at most 2"]);
    says(&read("a 1\nb 1\nc 1\n"), &["3 rows", "at most 2"]);
    says(&read("1 4\na 1 2 3 4\n"), &["4 numbers", "at most 3"]);
    says(&read("a 1 2 3 4\n"), &["4 numbers", "at most 3"]);
    says(&read("words 1 2\n"), &["line 1", "5 bytes, more than 4"]);
    let endless = format!("a 1 2\n{}", "x".repeat(1_000_000));
    says(&read(&endless), &["line 2", "longer than 68 bytes"]);
    says(&read(&"x".repeat(1_000_000)), &["line 1", "longer than 100 bytes"]);
}

#[test]
fn short_and_long_rows_are_named_by_their_line() {
    for header in ["", "3 2\n"] {
        let first = usize::from(!header.is_empty()) + 1;
        let read = |bad: &str| fault(either(&format!("{header}the 1 2\n{bad}\nof 1 2\n")));
        let line = format!("line {}:", first + 1);
        says(&read("a 1"), &[&line, "2 numbers, found only 1"]);
        says(&read("a 1 2 3"), &[&line, "2 numbers, found one more number, `1`"]);
        says(&read("a 1 2x"), &[&line, "found `2x` before the last 0"]);
        says(&read(""), &[&line, "blank line"]);
    }
}

#[test]
fn words_may_hold_blanks_and_markup_and_be_numbers() {
    let file = "<unk> 1 2\n. . . 1 2\na\u{a0}b 1 2\n\u{85} 1 2\n10 1 2\nat name@domain.com 1 2\n";
    let words: Vec<String> = all(either(file)).unwrap().into_iter().map(|(word, _)| word).collect();
    assert_eq!(words, ["<unk>", ". . .", "a\u{a0}b", "\u{85}", "10", "at name@domain.com"]);
    let first = ". . . 0.1 0.2\nthe 0.1 0.2\n";
    assert_eq!(all(either(first)).unwrap()[0], row(". . .", &[0.1, 0.2]));
}

#[test]
fn a_first_word_that_ends_in_a_number_is_caught_by_the_second_line() {
    says(&fault(either("version 2 0.1 0.2\nthe 0.1 0.2\n")), &["line 2", "3 numbers"]);
}

#[test]
fn numbers_that_are_not_finite_and_words_that_occur_twice_are_handed_over() {
    let rows = all(either("the 1e999 -inf\nthe nan 1\n")).unwrap();
    assert_eq!(rows[0], row("the", &[f32::INFINITY, f32::NEG_INFINITY]));
    assert_eq!(rows[1].0, "the");
    assert!(rows[1].1[0].is_nan());
}

#[test]
fn a_number_that_is_none_in_the_first_row_is_found_there() {
    for (file, found) in [
        ("the x 2 3\nof 1 2 3\n", "`x` before the last 2"),
        ("the 1 x 3\nof 1 2 3\n", "`x` before the last 1"),
        ("the 1 2 x\nof 1 2 3\n", "found `the 1 2 x`"),
    ] {
        says(&fault(glove(file)), &["memory, line 1", found]);
    }
    // A word of two parts is a word where the next line agrees, or is the one at fault.
    assert_eq!(all(glove("new york 1 2\nof 3 4\n")).unwrap().len(), 2);
    says(&fault(glove("new york 1 2\nof 3\n")), &["memory, line 2"]);
    // However many numbers come after.
    let long = format!("the x 2\nof{}\n", " 1".repeat(900));
    says(&fault(glove(long)), &["memory, line 1", "a word and 900 numbers"]);
}

#[test]
fn returns_alone_do_not_make_one_word_of_a_file() {
    for file in
        ["the 1 2\rof 3 4\r", "the 1 2\rof 3 4", "\u{feff}the 1 2\rof 3 4\r", "2 2\ra 1 2\rb 3 4"]
    {
        says(&fault(either(file)), &["memory, line 1", "carriage returns alone", "tr '\\r' '\\n'"]);
    }
    let long = format!("the{}\r", " 1".repeat(100)).repeat(4000);
    says(&fault(either(&long)), &["memory, line 1", "carriage returns alone"]);
    // One line, however it ends, is one line.
    assert_eq!(all(either("the 1 2\r")).unwrap(), [row("the", &[1.0, 2.0])]);
}
