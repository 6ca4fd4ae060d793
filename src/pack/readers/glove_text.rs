//! GloVe's text format: a row a line and no header.
//!
//! How many numbers a row has is read off the first line: as many pieces at its end as are
//! numbers. If the first word has several parts and the last of them is a number, that counts one
//! too many, and the second line is then refused as too short. Every other row must be as long.

use super::Budget;
use super::Place;
use super::ReadError;
use super::VectorReader;
use super::header::is_header;
use super::input::Input;
use super::input::shown;
use super::text_rows::TextRows;
use super::text_rows::count_numbers;
use super::text_rows::line_bytes;

/// Reads GloVe text.
pub struct GloveTextReader {
    rows: TextRows,
}

impl GloveTextReader {
    /// Measures the first row; `input` stands at the first byte of a file.
    pub fn new(mut input: Input, budget: Budget) -> Result<Self, ReadError> {
        input.skip_byte_order_mark()?;
        let limit = line_bytes(budget.dims, budget);
        let empty = input.peek(1)?.is_empty();
        let found = match input.peek_line(limit)? {
            Some(line) if is_header(line) => {
                Err(format!("{} is a header; the file is word2vec text", shown(line)))
            }
            Some(line) => match count_numbers(line) {
                0 => Err(format!("expected a word and its numbers, found {}", shown(line))),
                dims => Ok(dims as u64),
            },
            None if empty => Err("the file is empty".into()),
            None => Err(format!("the line is longer than {limit} bytes")),
        };
        let dims = found.map_err(|problem| input.malformed(Place::Line(1), problem))?;
        let dims = budget.admit_dims(dims, &input)?;
        Ok(Self { rows: TextRows::new(input, dims, budget) })
    }
}

impl VectorReader for GloveTextReader {
    fn dims(&self) -> usize {
        self.rows.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        None
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        self.rows.next(word, row)
    }

    fn place(&self) -> Place {
        self.rows.place()
    }

    fn progress(&self) -> (u64, u64) {
        self.rows.input.progress()
    }
}
