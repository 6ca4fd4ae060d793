//! Sixty-four bytes of text at a time, seen as bit masks. Most words of most texts are runs of
//! ASCII letters between spaces or marks that are dropped, and with masks the end of a run is one
//! instruction away. It knows of the rules only what makes a byte part of a word or of a gap.

use std::ops::Range;

use cognate_kernels::simd::{BLOCK, Kinds, kinds};

use super::clean::Unclean;
use super::normalisation::{Contractions, Normalisation, Numbers, Punctuation};

/// The rules for single bytes of ASCII.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
    pub(super) unclean: Unclean,
    /// Digits are as much part of words as letters.
    digits: bool,
    /// An apostrophe between two parts of a word is part of it too.
    apostrophes: bool,
    /// Whether punctuation marks that start no token are dropped.
    marks: bool,
}

impl Plain {
    pub(super) fn from_rules(rules: &Normalisation) -> Self {
        Self {
            unclean: Unclean::by(rules),
            digits: rules.numbers == Numbers::Keep,
            apostrophes: rules.contractions == Contractions::Keep,
            marks: rules.punctuation == Punctuation::Drop && !rules.writes_tags(),
        }
    }
}

/// A block of text as masks; bit `i` is byte `start + i`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    start: usize,
    letters: u64,
    words: u64,
    /// Bytes that separate words: spaces, dropped punctuation marks, the end of the text.
    gaps: u64,
    spaces: u64,
    /// Bytes whose kind is known only after the text is cleaned.
    unclean: u64,
}

impl Window {
    /// Returns the window that begins at `start`, which must not lie inside a word, of the first `end` bytes
    /// of `text`. Fastest if a whole block can be read; bytes after the end must be spaces.
    pub(super) fn new(plain: &Plain, text: &[u8], start: usize, end: usize) -> Self {
        let kinds = kinds(text.get(start..).unwrap_or_default());
        let Kinds { letters, digits, apostrophes, spaces, stops, slashes, signs, printed, .. } =
            kinds;
        // The byte behind the window is known if it is the end of the text.
        let known = if end <= start + BLOCK { !0 } else { !0 >> 1 };
        let mut words = if plain.digits { letters | digits } else { letters };
        let alphanumeric = letters | digits;
        if plain.apostrophes {
            words |= apostrophes & words << 1 & words >> 1;
        }
        let unclean = plain.unclean.of(&kinds);
        let (mut gaps, mut marks) = (spaces, 0);
        if plain.marks {
            gaps |= printed & !(alphanumeric | apostrophes | stops | signs);
            // A full stop before a letter may belong to an address, as may a colon before a slash.
            gaps |= stops & known & !(alphanumeric >> 1) & !(slashes >> 1);
            if kinds.wide != 0 {
                marks = wide_marks(text.get(start..).unwrap_or_default(), kinds.wide);
            }
        }
        gaps = gaps & !unclean | marks;
        Self { start, letters, words, gaps, spaces, unclean }
    }

    /// The letters of a range of the text, counted from its beginning, and whether it has to be cleaned;
    /// `None` where the range is not all in the window.
    pub(super) fn part(&self, range: &Range<usize>) -> Option<(Letters, bool)> {
        let from = range.start.checked_sub(self.start).filter(|&from| from < BLOCK)?;
        if range.end > self.start + BLOCK {
            return None;
        }
        let within = below(range.len() as u32);
        let unclean = self.unclean >> from & within != 0;
        Some((Letters { start: 0, mask: self.letters >> from & within }, unclean))
    }

    /// The words up to the first byte that is part neither of a word nor of a gap.
    #[inline]
    pub(super) fn words(&self) -> Words {
        let plain = (self.words | self.gaps).trailing_ones();
        let ends = self.gaps & self.words << 1 & below(plain);
        let last = ends.checked_ilog2().unwrap_or(0);
        let starts = self.words & !(self.words << 1) & below(last);
        Words { starts, ends, certain: last + (self.gaps >> last).trailing_ones(), plain }
    }

    /// What stands between two spaces around a byte: where it begins and ends in the text.
    pub(super) fn stretch(&self, text: &[u8], at: usize) -> Range<usize> {
        let within = below(at.saturating_sub(self.start).min(BLOCK) as u32);
        let before = (self.spaces & within).checked_ilog2().map(|last| self.start + last as usize);
        let before = || before.or_else(|| text.get(..at)?.iter().rposition(|&byte| byte == b' '));
        let start = before().map_or(0, |space| space + 1);
        let next = (self.spaces & !within).trailing_zeros() as usize;
        let behind = || text.iter().skip(self.start + BLOCK).position(|&byte| byte == b' ');
        let length = if next < BLOCK { Some(next) } else { behind().map(|next| BLOCK + next) };
        start..length.map_or(text.len(), |length| (self.start + length).min(text.len()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Letters {
    start: usize,
    mask: u64,
}

impl Letters {
    /// The letters of the block that begins at `start`.
    pub(super) fn new(text: &[u8], start: usize) -> Self {
        Self { start, mask: kinds(text.get(start..).unwrap_or_default()).letters }
    }

    /// Number of letters in a row from `at` on. `None` if they may continue behind the block.
    #[inline]
    pub(super) fn run(&self, at: usize) -> Option<usize> {
        // Bits that are shifted in are zeros and end every run at the block's end.
        let from = at.wrapping_sub(self.start);
        let run = if from < BLOCK { (self.mask >> from).trailing_ones() as usize } else { 0 };
        (run < (self.start + BLOCK).saturating_sub(at)).then_some(run)
    }
}

/// The bytes of the commonest marks outside ASCII that are all in the block: dashes, quotation marks and the
/// ellipsis. Between words of which nothing is to be decided they are dropped as ASCII's marks are; what
/// else stands beside them is cleaned with them, because an ellipsis is three full stops then. An apostrophe
/// is none of them.
fn wide_marks(block: &[u8], wide: u64) -> u64 {
    let (mut marks, mut left) = (0, wide);
    while left != 0 {
        let at = left.trailing_zeros();
        let mut found = 1;
        if let Some([0xE2, 0x80, 0x93 | 0x94 | 0x98 | 0x9C | 0x9D | 0xA6]) =
            block.get(at as usize..).and_then(|rest| rest.first_chunk())
            && at as usize + 3 <= BLOCK
        {
            (marks, found) = (marks | 0b111 << at, 0b111);
        }
        left &= !(found << at);
    }
    marks
}

#[inline]
fn below(bit: u32) -> u64 {
    1_u64.checked_shl(bit).map_or(!0, |bit| bit - 1)
}

/// Words as the masks show them: each begins at a bit of `starts` and ends before one of `ends`.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) starts: u64,
    pub(super) ends: u64,
    /// Where certainty ends: behind the last word and the gap after it.
    certain: u32,
    /// Where the first byte stands that is part neither of a word nor of a gap.
    plain: u32,
}

impl Words {
    /// Where to go on. `None` where something has to be decided about the byte at [`Words::stopped`]:
    /// it is part neither of a word nor of a gap, or of a word that is longer than the window.
    pub(super) fn next(&self) -> Option<usize> {
        (self.plain as usize == BLOCK && self.certain > 0).then_some(self.certain as usize)
    }

    pub(super) fn stopped(&self) -> usize {
        (self.plain as usize).min(BLOCK - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Plain =
        Plain { unclean: Unclean::NONE, digits: true, apostrophes: true, marks: true };

    fn window(plain: Plain, text: &[u8], start: usize) -> Window {
        Window::new(&plain, text, start, text.len())
    }

    fn all(words: &Words) -> Vec<(usize, usize)> {
        let bits = |mask: u64| (0..BLOCK).filter(move |at| mask >> at & 1 == 1);
        assert_eq!(words.starts.count_ones(), words.ends.count_ones());
        bits(words.starts).zip(bits(words.ends)).collect()
    }

    proptest! {
        #[test]
        fn masks_are_what_the_bytes_say(
            bytes in prop::collection::vec(any::<u8>(), 0..70), text in "[a-zA-Z0-9 '@.\\[`{é]{0,70}",
        ) {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                let seen = window(Plain { marks: false, ..PLAIN }, bytes, 0);
                for (at, byte) in bytes.iter().enumerate().take(BLOCK) {
                    prop_assert_eq!(seen.letters >> at & 1 == 1, byte.is_ascii_alphabetic());
                    prop_assert_eq!(seen.gaps >> at & 1 == 1, *byte == b' ');
                }
                let seen_of_it = bytes.get(..BLOCK).unwrap_or(bytes);
                let behind = seen_of_it.len() as u32;
                prop_assert_eq!(seen.words.checked_shr(behind).unwrap_or(0), 0);
                prop_assert_eq!(seen.gaps.checked_shr(behind).unwrap_or(!0), (!0_u64).checked_shr(behind).unwrap_or(!0));
            }
        }

        #[test]
        fn runs_end_where_letters_end(text in "[a-z ]{0,150}", start in 0usize..160, at in 0usize..80) {
            let seen = window(PLAIN, text.as_bytes(), start);
            let at = start + at;
            let rest = text.get(at..).unwrap_or_default();
            let letters = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic()).count();
            match Letters::new(text.as_bytes(), start).run(at) {
                Some(run) => prop_assert_eq!(run, letters),
                None => prop_assert!(at + letters >= start + BLOCK || at >= start + BLOCK),
            }
            let (mut last, rest) = (0, text.as_bytes().get(start..).unwrap_or_default());
            for (from, to) in all(&seen.words()) {
                prop_assert!(from >= last && rest[from..to].iter().all(u8::is_ascii_alphabetic));
                prop_assert!(!rest[last..from].iter().any(u8::is_ascii_alphabetic));
                prop_assert!(rest.get(to).is_none_or(|&byte| byte == b' '));
                last = to;
            }
        }

        #[test]
        fn a_stretch_is_what_stands_between_spaces(
            text in "[a&é ]{0,150}", start in 0usize..150, at in 0usize..64,
        ) {
            let (bytes, at) = (text.as_bytes(), start + at);
            prop_assume!(bytes.get(at).is_some_and(|&byte| byte != b' '));
            let found = window(PLAIN, bytes, start).stretch(bytes, at);
            prop_assert!(found.contains(&at) && !bytes[found.clone()].contains(&b' '));
            prop_assert!(found.start == 0 || bytes[found.start - 1] == b' ');
            prop_assert!(found.end == bytes.len() || bytes[found.end] == b' ');
        }
    }

    #[test]
    fn only_what_cannot_go_on_is_a_gap() {
        let gaps = |text: &str| {
            let seen = window(PLAIN, text.as_bytes(), 0);
            (0..text.len().min(BLOCK))
                .map(|at| if seen.gaps >> at & 1 == 1 { '_' } else { 'x' })
                .collect::<String>()
        };
        assert_eq!(gaps("one, two. (3)"), "xxx__xxx___x_");
        assert_eq!(gaps("www.x http://y a:b."), "xxxxx_xxxxx__x_xxx_");
        assert_eq!(gaps("#a @b it's 'so'"), "xx_xx_xxxx_xxxx");
        let long = format!("{}.", "x".repeat(63));
        assert_eq!(gaps(&long).chars().last(), Some('_'), "the text ends with the window");
        let from_apostrophe = window(PLAIN, b"'s so", 0).words();
        assert_eq!(all(&from_apostrophe), [], "an apostrophe has to be decided about");
        assert_eq!(gaps(&format!("{long}com")).get(63..64), Some("x"), "it goes on behind it");
    }
}
