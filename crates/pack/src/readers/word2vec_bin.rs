//! word2vec's binary format: a header line `rows dims`, then for each row the word, a space and the
//! numbers as little-endian 32-bit floats.
//!
//! Some writers end each row with a newline, GoogleNews has none; a newline before a word is
//! skipped in both cases. Nothing marks the beginning of a row, so one wrong byte shifts all that
//! follows; the only check is that the promised rows end at the end of the file.

use super::input::Input;
use super::text::Header;
use super::{Budget, Info, Mark, Opened, Place, Result, Source, VectorReader};

const NUMBER_BYTES: u64 = 4;

pub(crate) const INFO: Info =
    Info { name: "word2vec-bin", mark: Mark::Lines(|lines| lines.header && !lines.rows) };

pub(super) fn open(source: &Source) -> Opened {
    Ok(Box::new(Word2VecBinReader::new(Input::open(&source.path)?, source.budget)?))
}

pub struct Word2VecBinReader {
    input: Input,
    header: Header,
    word_bytes: usize,
    row_bytes: usize,
    read: u64,
    began: u64,
}

impl Word2VecBinReader {
    pub fn new(mut input: Input, budget: Budget) -> Result<Self> {
        // Minimum word: one byte and the space after it.
        let shortest = |dims: u64| dims.checked_mul(NUMBER_BYTES)?.checked_add(2);
        let header = Header::read(&mut input, budget, shortest)?;
        let row_bytes = header.dims.saturating_mul(NUMBER_BYTES as usize);
        let began = input.position();
        Ok(Self { input, header, word_bytes: budget.word_bytes, row_bytes, read: 0, began })
    }

    /// The error for anything but a line break after the last row.
    fn finish(&mut self) -> Result<bool> {
        self.input.skip_prefix(b"\n")?;
        if self.input.peek(1)?.is_empty() {
            return Ok(false);
        }
        let problem = format!(
            "the {} rows that the header promises end here, but more bytes follow",
            self.header.rows
        );
        Err(self.input.malformed(Place::Byte(self.input.position()), problem))
    }
}

impl VectorReader for Word2VecBinReader {
    fn dims(&self) -> usize {
        self.header.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        self.input.packing().is_none().then_some(self.header.rows)
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool> {
        word.clear();
        if self.read == self.header.rows {
            return self.finish();
        }
        if self.read > 0 {
            self.input.skip_prefix(b"\n")?;
        }
        self.began = self.input.position();
        if self.input.peek(1)?.is_empty() {
            let (read, promised) = (self.read, self.header.rows);
            let problem =
                format!("the file ends after {read} rows, but its header promises {promised}");
            return Err(self.input.malformed(Place::Byte(self.began), problem));
        }
        word.extend_from_slice(self.input.read_until(b' ', self.word_bytes, "a word")?);
        let bytes = self.input.read_exact(self.row_bytes, "a row's numbers")?;
        for (slot, number) in row.iter_mut().zip(bytes.as_chunks().0) {
            *slot = f32::from_le_bytes(*number);
        }
        self.read = self.read.saturating_add(1);
        Ok(true)
    }

    fn place(&self) -> Place {
        Place::Byte(self.began)
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
    use crate::readers::tests::{Row, all, bytes, fault, row, says};
    use crate::readers::{Budget, Place};

    fn read(file: impl AsRef<[u8]>) -> Opened {
        Ok(Box::new(Word2VecBinReader::new(bytes(file), Budget::DEFAULT)?))
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

    /// Rows whose numbers contain the newline byte 0x0a, where it ends nothing.
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
        // The long first word makes up for the bytes that the second row lacks.
        let long = [row(&"x".repeat(20), &[1.0, 2.0]), row("of", &[3.0, 4.0])];
        let whole = file("2 2", &long, "");
        let at = |length: usize| fault(read(&whole[..length]));
        says(&at(whole.len() - 1), &["byte 36", "expected 8 bytes of a row's numbers, found 7"]);
        says(&at(whole.len() - 9), &["byte 33", "the file ends 2 bytes into a word"]);
        says(&at(whole.len() - 11), &["byte 33", "after 1 rows", "promises 2"]);
    }
}
