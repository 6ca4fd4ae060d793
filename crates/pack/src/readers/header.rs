//! The line `rows dims` that word2vec, in text and in binary, puts before the rows.
//!
//! Its numbers are claims. They are checked against the file's size and the budget before anybody
//! relies on them.

use super::input::{Input, shown};
use super::{Budget, Place, ReadError};

/// Longest header line read: two numbers of any sane length with some space around.
pub(super) const HEADER_BYTES: usize = 256;

/// What a header claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) rows: u64,
    pub(super) dims: usize,
}

/// Whether `line` is two whole numbers and nothing else.
pub(super) fn is_header(line: &[u8]) -> bool {
    numbers(line).is_some()
}

fn numbers(line: &[u8]) -> Option<[&str; 2]> {
    let mut parts = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|part| !part.is_empty());
    let pair = [parts.next()?, parts.next()?];
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if parts.next().is_some() || !pair.iter().all(|part| digits(part)) {
        return None;
    }
    Some([std::str::from_utf8(pair[0]).ok()?, std::str::from_utf8(pair[1]).ok()?])
}

impl Header {
    /// Takes the header line. `row_bytes` gives the fewest bytes a row of that many dimensions can
    /// take, `None` if that is beyond counting.
    pub(super) fn read(
        input: &mut Input,
        budget: Budget,
        row_bytes: fn(u64) -> Option<u64>,
    ) -> Result<Self, ReadError> {
        let parsed = match input.read_line_bounded(HEADER_BYTES)? {
            None => Err("the file is empty; expected a header `rows dims`".into()),
            Some(line) => Self::parse(line),
        };
        let place = Place::Line(1);
        let (rows, dims) = parsed.map_err(|problem: String| input.malformed(place, problem))?;
        if dims == 0 {
            return Err(input.malformed(place, "the header promises rows of 0 numbers"));
        }
        if let Some(left) = input.bytes_left() {
            // The last row may lack its line end.
            let needed = row_bytes(dims).and_then(|bytes| bytes.checked_mul(rows));
            if needed.is_none_or(|needed| needed > left.saturating_add(1)) {
                let problem = format!(
                    "the header promises {rows} rows of {dims} numbers, too many for the {left} \
                     bytes that follow"
                );
                return Err(input.malformed(place, problem));
            }
        }
        Ok(Self { rows: budget.admit_rows(rows, input)?, dims: budget.admit_dims(dims, input)? })
    }

    fn parse(line: &[u8]) -> Result<(u64, u64), String> {
        let Some([rows, dims]) = numbers(line) else {
            return Err(format!("expected a header `rows dims`, found {}", shown(line)));
        };
        let number = |digits: &str| {
            let problem = |_| format!("the header's number {} is absurd", shown(digits.as_bytes()));
            digits.parse().map_err(problem)
        };
        Ok((number(rows)?, number(dims)?))
    }
}

impl Budget {
    /// `rows` if that many are accepted.
    pub(super) fn admit_rows(self, rows: u64, input: &Input) -> Result<u64, ReadError> {
        if rows <= self.words {
            return Ok(rows);
        }
        let problem = format!("it has {rows} rows or more; at most {} are read", self.words);
        Err(input.unsupported(problem))
    }

    /// `dims` if rows of that length are accepted.
    pub(super) fn admit_dims(self, dims: u64, input: &Input) -> Result<usize, ReadError> {
        match usize::try_from(dims) {
            Ok(dims) if dims <= self.dims => Ok(dims),
            _ => {
                let most = self.dims;
                let problem = format!("its rows have {dims} numbers; at most {most} are read");
                Err(input.unsupported(problem))
            }
        }
    }
}
