//! word2vec's binary format: a header line `rows dims`, then for each row the word, a space and
//! the numbers as little-endian 32-bit floats.
//!
//! Some writers end each row with a newline, GoogleNews has none: a newline before a word is
//! passed over either way. Nothing marks where a row begins, so one wrong byte shifts all that
//! follows; what can be checked is that the promised rows end where the file does.

use super::format::Source;
use super::header::Header;
use super::input::Input;
use super::{Budget, Info, Mark, Opened, Place, ReadError, VectorReader};

/// Bytes of a number.
const NUMBER_BYTES: u64 = 4;

/// How it is called and recognised.
pub(crate) const INFO: Info =
    Info { name: "word2vec-bin", mark: Mark::Lines(|lines| lines.header && !lines.rows) };

pub(super) fn open(source: &Source) -> Opened {
    Ok(Box::new(Word2VecBinReader::new(Input::open(&source.path)?, source.budget)?))
}

/// Reads word2vec binary.
pub struct Word2VecBinReader {
    input: Input,
    header: Header,
    word_bytes: usize,
    row_bytes: usize,
    read: u64,
    began: u64,
}

impl Word2VecBinReader {
    /// Takes the header; `input` stands at the first byte of a file.
    pub fn new(mut input: Input, budget: Budget) -> Result<Self, ReadError> {
        // Two bytes for the shortest word and the space after it.
        let shortest = |dims: u64| dims.checked_mul(NUMBER_BYTES)?.checked_add(2);
        let header = Header::read(&mut input, budget, shortest)?;
        let row_bytes = header.dims.saturating_mul(NUMBER_BYTES as usize);
        let began = input.position();
        Ok(Self { input, header, word_bytes: budget.word_bytes, row_bytes, read: 0, began })
    }

    /// The error if anything but a line end follows the last row.
    fn finish(&mut self) -> Result<bool, ReadError> {
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

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
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

    fn digest(&mut self) -> Result<String, ReadError> {
        self.input.digest()
    }

    fn progress(&self) -> (u64, u64) {
        self.input.progress()
    }
}
