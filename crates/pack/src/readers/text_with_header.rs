//! word2vec's text format, which is also fastText's `.vec`: a header `rows dims`, then a row a line.
//!
//! The rows are what counts: all of them are handed over, and a header that promised another
//! number of them is an error at the end of the file. A file without header is GloVe's format.

use super::header::Header;
use super::input::Input;
use super::text_rows::TextRows;
use super::{Budget, Place, ReadError, VectorReader};

/// Reads word2vec text.
pub struct Word2VecTextReader {
    rows: TextRows,
    promised: u64,
}

impl Word2VecTextReader {
    /// Takes the header; `input` stands at the first byte of a file.
    pub fn new(mut input: Input, budget: Budget) -> Result<Self, ReadError> {
        input.skip_byte_order_mark()?;
        // A word may be empty, but every number has a separator before it.
        let row_bytes = |dims: u64| dims.checked_mul(2)?.checked_add(1);
        let header = Header::read(&mut input, budget, row_bytes)?;
        Ok(Self { rows: TextRows::new(input, header.dims, budget), promised: header.rows })
    }
}

impl VectorReader for Word2VecTextReader {
    fn dims(&self) -> usize {
        self.rows.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        self.rows.input.packing().is_none().then_some(self.promised)
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        if self.rows.next(word, row)? {
            return Ok(true);
        }
        let (promised, read) = (self.promised, self.rows.read);
        if promised == read {
            return Ok(false);
        }
        let problem = format!(
            "the file ends here after {read} rows, but its header promises {promised}; correct \
             the first line or fetch the file again"
        );
        Err(self.rows.input.malformed(self.rows.place(), problem))
    }

    fn place(&self) -> Place {
        self.rows.place()
    }

    fn digest(&mut self) -> Result<String, ReadError> {
        self.rows.input.digest()
    }

    fn progress(&self) -> (u64, u64) {
        self.rows.input.progress()
    }
}
