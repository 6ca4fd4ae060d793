//! GloVe's text format: a row a line and no header.
//!
//! How many numbers a row has is read off the first line: as many pieces at its end as are
//! numbers. If the first word has several parts and the last of them is a number, that counts one
//! too many, and the second line is then refused as too short. Every other row must be as long; if
//! the second has more numbers and the first a word of several parts, it is likely the first whose
//! numbers were not all read as such, and its line is named.

use super::header::is_header;
use super::input::{Input, shown};
use super::text_rows::{TextRows, count_numbers, last_part, line_bytes};
use super::{Budget, Place, ReadError, VectorReader};

pub struct GloveTextReader {
    rows: TextRows,
    /// What stands before the numbers of the first row, where its word has several parts.
    before_numbers: Option<String>,
    /// Longest line that can be a row.
    limit: usize,
}

impl GloveTextReader {
    /// Measures the first row; `input` stands at the first byte of a file.
    pub fn new(mut input: Input, budget: Budget) -> Result<Self, ReadError> {
        input.skip_byte_order_mark()?;
        let limit = line_bytes(budget.dims, budget);
        let empty = input.peek(1)?.is_empty();
        let mut before_numbers = None;
        let found = match input.peek_line(limit)? {
            Some(line) if is_header(line) => {
                Err(format!("{} is a header; the file is word2vec text", shown(line)))
            }
            Some(line) => match count_numbers(line) {
                0 => Err(format!("expected a word and its numbers, found {}", shown(line))),
                dims => {
                    before_numbers = last_part(line, dims).map(shown);
                    Ok(dims as u64)
                }
            },
            None if empty => Err("the file is empty".into()),
            None => return Err(input.too_long(limit)),
        };
        let dims = found.map_err(|problem| input.malformed(Place::Line(1), problem))?;
        let dims = budget.admit_dims(dims, &input)?;
        Ok(Self { rows: TextRows::new(input, dims, budget), before_numbers, limit })
    }

    /// Compares the second row, which is about to be read, with the first.
    fn check_first_row(&mut self) -> Result<(), ReadError> {
        let Some(part) = self.before_numbers.take() else { return Ok(()) };
        let (input, dims) = (&mut self.rows.input, self.rows.dims);
        let next = input.peek_line(self.limit)?.map_or(0, count_numbers);
        if next <= dims {
            return Ok(());
        }
        let problem = format!(
            "expected a word and {next} numbers, as line 2 has them, found {part} before the last \
             {dims}"
        );
        Err(input.malformed(Place::Line(1), problem))
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
        if self.rows.read == 1 {
            self.check_first_row()?;
        }
        self.rows.next(word, row)
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
