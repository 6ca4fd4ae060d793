//! Text formats: word2vec's begins with a header, GloVe's does not. Many files carry the other
//! format's name, so the first line decides which reader is used.

use super::input::{Input, shown};
use super::{Budget, Info, Mark, Opened, Place, Result, Source, VectorReader};

pub struct TextReader {
    input: Input,
    budget: Budget,
    dims: usize,
    read: u64,
    /// Number of rows in the header, if there is one.
    promised: Option<u64>,
    /// Without a header: the part before the numbers of the first row, if its word has several parts.
    before_numbers: Option<String>,
}

impl TextReader {
    pub fn new(mut input: Input, budget: Budget) -> Result<Self> {
        input.skip_byte_order_mark()?;
        if input.peek_line(HEADER_BYTES)?.is_some_and(is_header) {
            // A word may be empty, but every number has a separator before it.
            let row_bytes = |dims: u64| dims.checked_mul(2)?.checked_add(1);
            let Header { rows, dims } = Header::read(&mut input, budget, row_bytes)?;
            let promised = Some(rows);
            return Ok(Self { input, budget, dims, read: 0, promised, before_numbers: None });
        }
        let limit = line_bytes(budget.dims, budget);
        let empty = input.peek(1)?.is_empty();
        let mut before_numbers = None;
        let found = match input.peek_line(limit)? {
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
        Ok(Self { input, budget, dims, read: 0, promised: None, before_numbers })
    }

    /// Compares the number of numbers in the second row with that of the first.
    fn check_first_row(&mut self) -> Result<()> {
        let Some(part) = self.before_numbers.take() else { return Ok(()) };
        let (dims, limit) = (self.dims, line_bytes(self.budget.dims, self.budget));
        let next = self.input.peek_line(limit)?.map_or(0, count_numbers);
        if next <= dims {
            return Ok(());
        }
        let problem = format!(
            "expected a word and {next} numbers, as line 2 has them, found {part} before the last \
             {dims}"
        );
        Err(self.input.malformed(Place::Line(1), problem))
    }

    fn finish(&self) -> Result<bool> {
        let read = self.read;
        let Some(promised) = self.promised.filter(|&promised| promised != read) else {
            return Ok(false);
        };
        let problem = format!(
            "the file ends here after {read} rows, but its header promises {promised}; correct \
             the first line or fetch the file again"
        );
        Err(self.input.malformed(self.place(), problem))
    }
}

impl VectorReader for TextReader {
    fn dims(&self) -> usize {
        self.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        self.promised.filter(|_| self.input.packing().is_none())
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool> {
        if self.read == 1 {
            self.check_first_row()?;
        }
        word.clear();
        let limit = line_bytes(self.dims, self.budget);
        let mut blank = None;
        loop {
            let parsed = match self.input.read_line_bounded(limit)? {
                None => return self.finish(),
                Some(line) if line.iter().copied().all(is_separator) => None,
                Some(line) => Some(parse_row(line, self.dims, self.budget.word_bytes, word, row)),
            };
            let line = self.input.lines();
            match (parsed, blank) {
                // Blank lines are allowed at the end of a file, where editors leave them.
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

    fn place(&self) -> Place {
        Place::Line(self.input.lines())
    }

    fn digest(&mut self) -> Result<String> {
        self.input.digest()
    }

    fn progress(&self) -> (u64, u64) {
        self.input.progress()
    }
}

const NUMBER_BYTES: usize = 32;

pub(super) fn line_bytes(dims: usize, budget: Budget) -> usize {
    dims.saturating_mul(NUMBER_BYTES).saturating_add(budget.word_bytes)
}

/// Number of numbers in a row: as many parts at its end as are numbers, except that the first part
/// is always the word. 0 if the line is not a row.
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

/// The last part of a row's word, if the word has several: the part before its `numbers`.
fn last_part(line: &[u8], numbers: usize) -> Option<&[u8]> {
    let mut word = trim_end(line);
    for _ in 0..numbers {
        (word, _) = split_last(word)?;
    }
    split_last(word).map(|(_, part)| part)
}

fn parse_row(
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
    // A word may end in `nan` or `inf`, but if it ends in digits, the row probably has one number
    // too many; accepting it would hide a damaged row.
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

/// Parses a number of any size: values too large for a 32-bit float become infinite, NaN stays NaN.
fn number(piece: &[u8]) -> Option<f32> {
    std::str::from_utf8(piece).ok()?.parse().ok()
}

/// The last part, and the line before the separators that precede it. `None` if there is no
/// separator, so that nothing would remain for the word.
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

pub(crate) const WORD2VEC: Info =
    Info { name: "word2vec-text", mark: Mark::Lines(|lines| lines.header && lines.rows) };

pub(crate) const GLOVE: Info =
    Info { name: "glove", mark: Mark::Lines(|lines| !lines.header && lines.rows) };

pub(super) fn open(source: &Source) -> Opened {
    Ok(Box::new(TextReader::new(Input::open(&source.path)?, source.budget)?))
}

pub(super) const HEADER_BYTES: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) rows: u64,
    pub(super) dims: usize,
}

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
    /// Reads the header line. `row_bytes` returns the minimum bytes of a row with that many
    /// dimensions, `None` on overflow.
    pub(super) fn read(
        input: &mut Input,
        budget: Budget,
        row_bytes: fn(u64) -> Option<u64>,
    ) -> Result<Self> {
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
            // The last row may lack its line break.
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
    pub(super) fn admit_rows(self, rows: u64, input: &Input) -> Result<u64> {
        if rows <= self.words {
            return Ok(rows);
        }
        let problem = format!("it has {rows} rows or more; at most {} are read", self.words);
        Err(input.unsupported(problem))
    }

    /// Returns `dims` if rows of that length are accepted.
    pub(super) fn admit_dims(self, dims: u64, input: &Input) -> Result<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::Budget;
    use crate::readers::tests::{all, bytes, fault, row, says};

    fn parsed(line: &str, dims: usize) -> Result<(String, Vec<f32>), String> {
        let (mut word, mut row) = (Vec::new(), vec![7.0; dims]);
        parse_row(line.as_bytes(), dims, 16, &mut word, &mut row)?;
        Ok((String::from_utf8(word).unwrap(), row))
    }

    #[test]
    fn a_word_keeps_every_blank_but_ascii_space_and_tab_at_its_end() {
        assert_eq!(parsed("the 1 -2.5", 2), Ok(("the".into(), vec![1.0, -2.5])));
        assert_eq!(parsed("the\t1\t-2.5 \t", 2), Ok(("the".into(), vec![1.0, -2.5])));
        assert_eq!(parsed(". . . .5 1e-3", 2), Ok((". . .".into(), vec![0.5, 0.001])));
        assert_eq!(parsed("a\u{85} 1", 1), Ok(("a\u{85}".into(), vec![1.0])));
        assert_eq!(parsed("\u{a0} 1", 1), Ok(("\u{a0}".into(), vec![1.0])));
        assert_eq!(parsed("7 8 9", 2), Ok(("7".into(), vec![8.0, 9.0])));
        assert_eq!(parsed(" 8 9", 2), Ok((String::new(), vec![8.0, 9.0])));
    }

    #[test]
    fn values_are_handed_over_as_they_parse() {
        let (word, row) = parsed("my nan nan inf -inf 1e999 -1e999 1e-999", 6).unwrap();
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

    fn opened(file: impl AsRef<[u8]>) -> Opened {
        Ok(Box::new(TextReader::new(bytes(file), Budget::DEFAULT)?))
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
            assert_eq!(all(opened(file)).unwrap(), expected, "{file:?}");
        }
    }

    #[test]
    fn a_header_is_only_hinted_at_when_the_file_can_hold_its_rows() {
        let reader = opened("2 2\na 1 2\nb 3 4\n").unwrap();
        assert_eq!((reader.dims(), reader.rows_hint()), (2, Some(2)));
        assert_eq!(opened("a 1 2\n").unwrap().rows_hint(), None);
    }

    #[test]
    fn a_header_that_promises_too_many_rows_is_caught_where_the_file_ends() {
        let reader = opened("3 2\na 1 2\nb 3000 4000\n");
        says(&fault(reader), &["memory, line 3", "after 2 rows", "promises 3"]);
    }

    #[test]
    fn a_header_that_promises_too_few_rows_is_caught_once_all_were_handed_over() {
        let mut reader = opened("1 2\na 1 2\nb 3 4\n").unwrap();
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
        for file in ["1000000000000000000 1000000000\na 1\n", "18446744073709551615 4\na 1 2 3 4\n"]
        {
            says(&fault(opened(file)), &["memory, line 1", "promises", "bytes that follow"]);
        }
        says(&fault(opened("123456789012345678901 2\n")), &["line 1", "`123456789012345678901`"]);
        says(&fault(opened("3 0\na\nb\nc\n")), &["line 1", "0 numbers"]);
        says(&fault(opened("")), &["line 1", "empty"]);
        says(&fault(opened("no numbers here\n")), &["line 1", "`no numbers here`"]);
    }

    #[test]
    fn the_budget_holds_for_rows_dimensions_words_and_lines() {
        let budget = Budget { words: 2, dims: 3, word_bytes: 4 };
        let read = |file: &str| {
            fault(TextReader::new(bytes(file), budget).map(|reader| Box::new(reader) as _))
        };
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
            let read = |bad: &str| fault(opened(format!("{header}the 1 2\n{bad}\nof 1 2\n")));
            let line = format!("line {}:", first + 1);
            says(&read("a 1"), &[&line, "2 numbers, found only 1"]);
            says(&read("a 1 2 3"), &[&line, "2 numbers, found one more number, `1`"]);
            says(&read("a 1 2x"), &[&line, "found `2x` before the last 0"]);
            says(&read(""), &[&line, "blank line"]);
        }
    }

    #[test]
    fn words_may_hold_blanks_and_markup_and_be_numbers() {
        let file =
            "<unk> 1 2\n. . . 1 2\na\u{a0}b 1 2\n\u{85} 1 2\n10 1 2\nat name@domain.com 1 2\n";
        let words: Vec<String> =
            all(opened(file)).unwrap().into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["<unk>", ". . .", "a\u{a0}b", "\u{85}", "10", "at name@domain.com"]);
        let first = ". . . 0.1 0.2\nthe 0.1 0.2\n";
        assert_eq!(all(opened(first)).unwrap()[0], row(". . .", &[0.1, 0.2]));
    }

    #[test]
    fn a_first_word_that_ends_in_a_number_is_caught_by_the_second_line() {
        says(&fault(opened("version 2 0.1 0.2\nthe 0.1 0.2\n")), &["line 2", "3 numbers"]);
    }

    #[test]
    fn a_number_that_is_none_in_the_first_row_is_found_there() {
        for (file, found) in [
            ("the x 2 3\nof 1 2 3\n", "`x` before the last 2"),
            ("the 1 x 3\nof 1 2 3\n", "`x` before the last 1"),
            ("the 1 2 x\nof 1 2 3\n", "found `the 1 2 x`"),
        ] {
            says(&fault(opened(file)), &["memory, line 1", found]);
        }
        // A word of two parts is accepted if the next line agrees; else the first row is the one in
        // error.
        assert_eq!(all(opened("new york 1 2\nof 3 4\n")).unwrap().len(), 2);
        says(&fault(opened("new york 1 2\nof 3\n")), &["memory, line 2"]);
        // The number of numbers in the second row does not matter.
        let long = format!("the x 2\nof{}\n", " 1".repeat(900));
        says(&fault(opened(long)), &["memory, line 1", "a word and 900 numbers"]);
    }

    #[test]
    fn returns_alone_do_not_make_one_word_of_a_file() {
        for file in [
            "the 1 2\rof 3 4\r",
            "the 1 2\rof 3 4",
            "\u{feff}the 1 2\rof 3 4\r",
            "2 2\ra 1 2\rb 3 4",
        ] {
            says(
                &fault(opened(file)),
                &["memory, line 1", "carriage returns alone", "tr '\\r' '\\n'"],
            );
        }
        let long = format!("the{}\r", " 1".repeat(100)).repeat(4000);
        says(&fault(opened(&long)), &["memory, line 1", "carriage returns alone"]);
        // A single line may end in a carriage return alone.
        assert_eq!(all(opened("the 1 2\r")).unwrap(), [row("the", &[1.0, 2.0])]);
    }
}
