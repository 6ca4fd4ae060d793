//! Lines out of a stream of bytes, each with its number; a line that is too long is passed over
//! without being kept.

use std::collections::VecDeque;

/// Longest line that is kept.
pub const MOST_LINE_BYTES: usize = 64 << 10;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes without the end of the line; none if it was too long.
    pub bytes: Option<Vec<u8>>,
}

/// Lines that are complete, and the beginning of the next one.
#[derive(Debug, Default)]
pub struct Lines {
    complete: VecDeque<Line>,
    partial: Vec<u8>,
    /// Whether the line being read is too long already.
    overlong: bool,
    seen: u64,
}

impl Lines {
    /// Takes more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.keep(line);
            self.end();
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    /// Takes what stands after the last end of a line as a line.
    pub fn finish(&mut self) {
        if self.overlong || !self.partial.is_empty() {
            self.end();
        }
    }

    /// The next complete lines, at most so many. Lines of white space have a number and no answer.
    pub fn take(&mut self, most: usize) -> Vec<Line> {
        self.complete.drain(..self.complete.len().min(most)).collect()
    }

    /// Lines that were complete so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.overlong || self.partial.len() + bytes.len() > MOST_LINE_BYTES {
            self.overlong = true;
            self.partial.clear();
            return;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn end(&mut self) {
        self.seen += 1;
        let overlong = std::mem::take(&mut self.overlong);
        let bytes = std::mem::take(&mut self.partial);
        if overlong || !bytes.iter().all(u8::is_ascii_whitespace) {
            let bytes = (!overlong).then_some(bytes);
            self.complete.push_back(Line { number: self.seen, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(pieces: &[&[u8]]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Lines::default();
        pieces.iter().for_each(|piece| lines.push(piece));
        lines.finish();
        lines.take(usize::MAX).into_iter().map(|line| (line.number, line.bytes)).collect()
    }

    #[test]
    fn blank_lines_count_and_overlong_ones_are_not_kept() {
        let long = vec![b'x'; MOST_LINE_BYTES + 1];
        let fits = vec![b'y'; MOST_LINE_BYTES];
        let text = [b"a\n\n \r\nb\r\n".as_slice(), &long, b"\n", &fits, b"\nlast"].concat();
        let expected = vec![
            (1, Some(b"a".to_vec())),
            (4, Some(b"b\r".to_vec())),
            (5, None),
            (6, Some(fits)),
            (7, Some(b"last".to_vec())),
        ];
        assert_eq!(all(&[&text]), expected);
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            text in "[ab\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(all(&pieces), all(&[text.as_bytes()]));
        }
    }
}
