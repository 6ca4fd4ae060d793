//! Text, of which word2vec's format begins with a header and GloVe's does not. Many files come under
//! the other's name, so the first line decides which reader takes them.

use super::header::{HEADER_BYTES, Header, is_header};
use super::input::{Input, shown};
use super::{Budget, Opened, Place, ReadError, VectorReader};

/// Opens text with or without header, whichever of the two names it came under; `input` stands at
/// its first byte.
pub fn open(mut input: Input, budget: Budget) -> Opened {
    input.skip_byte_order_mark()?;
    let with_header = input.peek_line(HEADER_BYTES)?.is_some_and(is_header);
    Ok(match with_header {
        true => Box::new(Word2VecTextReader::new(input, budget)?),
        false => Box::new(GloveTextReader::new(input, budget)?),
    })
}

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

/// Most bytes of text that one number of a row may take, with its separator.
const NUMBER_BYTES: usize = 32;

/// The rows of a text file, one a line.
pub(super) struct TextRows {
    pub(super) input: Input,
    pub(super) dims: usize,
    /// Rows handed over so far.
    pub(super) read: u64,
    budget: Budget,
}

impl TextRows {
    /// Rows of `dims` numbers, from where `input` stands.
    pub(super) fn new(input: Input, dims: usize, budget: Budget) -> Self {
        Self { input, dims, read: 0, budget }
    }

    /// Reads the next row; `false` at the end of the file.
    pub(super) fn next(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        word.clear();
        let limit = line_bytes(self.dims, self.budget);
        let mut blank = None;
        loop {
            let parsed = match self.input.read_line_bounded(limit)? {
                None => return Ok(false),
                Some(line) if line.iter().copied().all(is_separator) => None,
                Some(line) => Some(parse_row(line, self.dims, self.budget.word_bytes, word, row)),
            };
            let line = self.input.lines();
            match (parsed, blank) {
                // Blank lines are fine at the end of a file, where editors leave them.
                (None, _) => blank = blank.or(Some(line)),
                (Some(_), Some(blank)) => {
                    let problem = "a blank line between rows; expected a word and its numbers";
                    return Err(self.input.malformed(Place::Line(blank), problem));
                }
                (Some(Err(problem)), None) => {
                    return Err(self.input.malformed(Place::Line(line), problem));
                }
                (Some(Ok(())), None) => break,
            }
        }
        self.read = self.budget.admit_rows(self.read.saturating_add(1), &self.input)?;
        Ok(true)
    }

    /// Where the row last read began.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.input.lines())
    }
}

/// Longest line with `dims` numbers.
pub(super) fn line_bytes(dims: usize, budget: Budget) -> usize {
    dims.saturating_mul(NUMBER_BYTES).saturating_add(budget.word_bytes)
}

/// How many numbers a row has, judged by the first: as many pieces at its end as are numbers, but
/// one piece at least is the word. 0 if it does not look like a row.
pub(super) fn count_numbers(line: &[u8]) -> usize {
    let mut rest = trim_end(line);
    let mut numbers = 0;
    while let Some((before, piece)) = split_last(rest) {
        if number(piece).is_none() {
            break;
        }
        numbers += 1;
        rest = before;
    }
    numbers
}

/// The last part of a row's word, if that has several: what stands before its `numbers`.
pub(super) fn last_part(line: &[u8], numbers: usize) -> Option<&[u8]> {
    let mut word = trim_end(line);
    for _ in 0..numbers {
        (word, _) = split_last(word)?;
    }
    split_last(word).map(|(_, part)| part)
}

/// Takes a line apart into `word` and exactly `dims` numbers.
pub(super) fn parse_row(
    line: &[u8],
    dims: usize,
    word_bytes: usize,
    word: &mut Vec<u8>,
    row: &mut [f32],
) -> Result<(), String> {
    let mut rest = trim_end(line);
    for (index, slot) in row.iter_mut().take(dims).enumerate().rev() {
        let after = dims - 1 - index;
        let Some((before, piece)) = split_last(rest) else {
            return Err(format!("expected a word and {dims} numbers, found only {after} numbers"));
        };
        let Some(value) = number(piece) else {
            let found = shown(piece);
            return Err(format!(
                "expected a word and {dims} numbers, found {found} before the last {after}"
            ));
        };
        *slot = value;
        rest = before;
    }
    // A word may end in `nan` or `inf`, but one that ends in digits is more likely a number too
    // many, and taking that for a word would hide a damaged row.
    if let Some((_, piece)) = split_last(rest)
        && number(piece).is_some_and(f32::is_finite)
    {
        return Err(format!(
            "expected a word and {dims} numbers, found one more number, {}",
            shown(piece)
        ));
    }
    if rest.len() > word_bytes {
        return Err(format!("the word takes {} bytes, more than {word_bytes}", rest.len()));
    }
    word.extend_from_slice(rest);
    Ok(())
}

/// A number of any size: what is too large for a 32-bit float becomes infinite, as NaN stays NaN.
fn number(piece: &[u8]) -> Option<f32> {
    std::str::from_utf8(piece).ok()?.parse().ok()
}

/// The last piece, and what stands before the separators that precede it. `None` if no separator
/// is left, so that there would be nothing for the word.
fn split_last(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let separator = line.iter().rposition(|&byte| is_separator(byte))?;
    Some((trim_end(&line[..separator]), &line[separator + 1..]))
}

fn trim_end(line: &[u8]) -> &[u8] {
    let kept = line.iter().rposition(|&byte| !is_separator(byte)).map_or(0, |last| last + 1);
    &line[..kept]
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str, dims: usize) -> Result<(String, Vec<f32>), String> {
        let (mut word, mut row) = (Vec::new(), vec![7.0; dims]);
        parse_row(line.as_bytes(), dims, 16, &mut word, &mut row)?;
        Ok((String::from_utf8(word).unwrap(), row))
    }

    #[test]
    fn a_word_keeps_every_blank_but_ascii_space_and_tab_at_its_end() {
        assert_eq!(row("the 1 -2.5", 2), Ok(("the".into(), vec![1.0, -2.5])));
        assert_eq!(row("the\t1\t-2.5 \t", 2), Ok(("the".into(), vec![1.0, -2.5])));
        assert_eq!(row(". . . .5 1e-3", 2), Ok((". . .".into(), vec![0.5, 0.001])));
        assert_eq!(row("a\u{85} 1", 1), Ok(("a\u{85}".into(), vec![1.0])));
        assert_eq!(row("\u{a0} 1", 1), Ok(("\u{a0}".into(), vec![1.0])));
        assert_eq!(row("7 8 9", 2), Ok(("7".into(), vec![8.0, 9.0])));
        assert_eq!(row(" 8 9", 2), Ok((String::new(), vec![8.0, 9.0])));
    }

    #[test]
    fn rows_that_are_short_long_or_no_rows_say_what_was_expected() {
        let problem = |line, dims| row(line, dims).unwrap_err();
        assert!(problem("the 1", 2).contains("expected a word and 2 numbers, found only 1"));
        assert!(problem("1 2", 2).contains("found only 1 numbers"));
        assert!(problem("the 1 2 3", 2).contains("one more number, `1`"));
        assert!(problem("the one 2", 2).contains("found `one` before the last 1"));
        assert!(problem("a-word-of-17-byte 1", 1).contains("17 bytes, more than 16"));
    }

    #[test]
    fn values_are_handed_over_as_they_parse() {
        let (word, row) = row("my nan nan inf -inf 1e999 -1e999 1e-999", 6).unwrap();
        assert_eq!(word, "my nan");
        assert!(row[0].is_nan());
        let (up, down) = (f32::INFINITY, f32::NEG_INFINITY);
        assert_eq!(row[1..], [up, down, up, down, 0.0]);
    }

    #[test]
    fn the_first_row_tells_the_dimensions() {
        assert_eq!(count_numbers(b"the 0.1 0.2"), 2);
        assert_eq!(count_numbers(b". . . 0.1 0.2 "), 2);
        assert_eq!(count_numbers(b"5 0.1 0.2"), 2, "the first piece is the word");
        assert_eq!(count_numbers(b"just words"), 0);
        assert_eq!(count_numbers(b""), 0);
    }
}
