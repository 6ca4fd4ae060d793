//! How a word is cut into pieces: strings in, numbers out; no vectors and no files.

use std::ops::Range;

use crate::model::subword::LONGEST_WORD_BYTES;

/// The longest piece that [`PieceLengths`] can record, in bytes without its mark.
pub const LONGEST_PIECE_BYTES: usize = u32::BITS as usize - 1;
const LENGTH_BUCKETS: usize = 4096;

/// For each first two bytes, the lengths of the pieces that begin with them: other lengths need no look-up.
#[derive(Debug, Clone)]
pub struct PieceLengths {
    /// Bit `n` of a bucket: some piece of it has `n` bytes.
    buckets: Box<[u32]>,
}

impl PieceLengths {
    /// The lengths of pieces, marks included. `None` if one is longer than [`LONGEST_PIECE_BYTES`].
    pub fn new<'a>(pieces: impl Iterator<Item = &'a str>, mark: &str) -> Option<Self> {
        let mut buckets = vec![0; LENGTH_BUCKETS].into_boxed_slice();
        for piece in pieces {
            let (inside, bare) = match piece.strip_prefix(mark) {
                Some(bare) => (true, bare),
                None => (false, piece),
            };
            if bare.len() > LONGEST_PIECE_BYTES {
                return None;
            }
            let bit = 1 << bare.len();
            match bare.as_bytes() {
                // Any byte may follow a piece of one byte.
                [only] => {
                    (0..=u8::MAX).for_each(|next| buckets[bucket(inside, *only, next)] |= bit)
                }
                [first, second, ..] => buckets[bucket(inside, *first, *second)] |= bit,
                [] => {}
            }
        }
        Some(Self { buckets })
    }

    /// Lengths, as bits, of the pieces that the rest of a word may begin with.
    #[inline]
    fn before(&self, inside: bool, rest: &[u8]) -> u32 {
        let first = rest.first().copied().unwrap_or(0);
        let second = rest.get(1).copied().unwrap_or(0);
        let fits = u32::MAX >> LONGEST_PIECE_BYTES.saturating_sub(rest.len());
        self.buckets[bucket(inside, first, second)] & fits
    }
}

fn bucket(inside: bool, first: u8, second: u8) -> usize {
    let pair = usize::from(first) << 8 | usize::from(second);
    // Multiplication spreads letters, which differ in their low bits, over all buckets.
    (2 * pair + usize::from(inside)).wrapping_mul(0x9E37_79B1) >> 8 & (LENGTH_BUCKETS - 1)
}

/// Cuts `word` into the longest pieces from the left, as
/// [`wordpieces`](crate::model::subword::wordpieces) does, for pieces whose lengths are known; where no piece begins with the next
/// character, that character is passed over. Nothing if more than half of the characters are, since
/// the pieces then say little of the word, and nothing for a word of more than
/// [`LONGEST_WORD_BYTES`]. `find` is asked for the piece in a range of the word, which continues a word
/// where the range does not begin at 0.
pub fn longest_pieces(
    word: &str,
    lengths: &PieceLengths,
    mut find: impl FnMut(Range<usize>) -> Option<u32>,
    out: &mut Vec<u32>,
) {
    if word.len() > LONGEST_WORD_BYTES {
        return;
    }
    let (before, bytes, is_ascii) = (out.len(), word.as_bytes(), word.is_ascii());
    // If all bytes are ASCII, each is a character.
    let begins = |at: usize| is_ascii || word.is_char_boundary(at);
    let (mut at, mut found, mut passed) = (0, 0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let mut left = lengths.before(at > 0, rest);
        let end = loop {
            let Some(length) = left.checked_ilog2() else { break None };
            left &= !(1 << length);
            let end = at + length as usize;
            if begins(end)
                && let Some(number) = find(at..end)
            {
                out.push(number);
                break Some(end);
            }
        };
        let next = |at: usize| (at + 1..bytes.len()).find(|&at| begins(at)).unwrap_or(bytes.len());
        match end {
            Some(end) if is_ascii => found += end - at,
            Some(end) => found += word.get(at..end).map_or(0, |piece| piece.chars().count()),
            None => passed += 1,
        }
        at = end.unwrap_or_else(|| next(at));
    }
    if passed >= found {
        out.truncate(before);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn known_lengths_hide_no_piece(word in "[abcäé]{0,12}") {
            const ENTRIES: [&str; 8] = ["a", "ab", "bc", "c", "##a", "##b", "##ca", "##äé"];
            let find = |place: Range<usize>| {
                let mark = if place.start > 0 { "##" } else { "" };
                let piece = [mark, &word[place]].concat();
                ENTRIES.iter().position(|&entry| entry == piece).map(|at| at as u32)
            };
            let lengths = PieceLengths::new(ENTRIES.into_iter(), "##").unwrap();
            let every = PieceLengths { buckets: vec![u32::MAX; LENGTH_BUCKETS].into() };
            let pieces = |lengths: &PieceLengths| {
                let mut ids = Vec::new();
                longest_pieces(&word, lengths, find, &mut ids);
                ids
            };
            prop_assert_eq!(pieces(&lengths), pieces(&every));
        }
    }

    #[test]
    fn characters_that_begin_no_piece_are_passed_over() {
        let find = |word: &str, place: Range<usize>| match (place.start > 0, &word[place]) {
            (false, "un") => Some(1),
            (false, "unable") => Some(2),
            (true, "able") => Some(3),
            (false, "able") => Some(4),
            _ => None,
        };
        let lengths =
            PieceLengths::new(["un", "unable", "##able", "able"].into_iter(), "##").unwrap();
        let pieces = |word: &str| {
            let mut ids = vec![9];
            longest_pieces(word, &lengths, |place| find(word, place), &mut ids);
            ids[1..].to_vec()
        };
        assert_eq!(pieces("unxéable"), [1, 3]);
        assert_eq!(pieces("éable"), [3], "what follows a character does not begin the word");
        assert_eq!(pieces("unable"), [2]);
        assert_eq!(pieces("unablé"), [0; 0], "two of six characters are too few");
        assert_eq!(pieces("語語un"), [0; 0]);
        assert_eq!(pieces(&format!("un{}", "able".repeat(40))), [0; 0], "longer than any word");
        assert!(PieceLengths::new(["x".repeat(32).as_str()].into_iter(), "##").is_none());
    }
}
