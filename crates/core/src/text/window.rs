//! Sixty-four bytes of text at a time, seen as bit masks. Most words of most texts are runs of
//! ASCII letters between spaces or marks that are dropped, and with masks the end of a run is one
//! instruction away. It knows of the rules only what makes a byte part of a word or of a gap.

use cognate_kernels::simd::{BLOCK, Kinds, kinds};

use super::clean::Unclean;
use super::normalisation::{Contractions, Normalisation, Numbers, Punctuation};

/// What the rules say of single bytes of ASCII.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
    pub(super) unclean: Unclean,
    /// Digits are as much part of words as letters.
    digits: bool,
    /// An apostrophe between two parts of a word is part of it too.
    apostrophes: bool,
    /// Marks that begin nothing are dropped.
    marks: bool,
}

impl Plain {
    pub(super) fn of(rules: &Normalisation) -> Self {
        Self {
            unclean: Unclean::by(rules),
            digits: rules.numbers == Numbers::Keep,
            apostrophes: rules.contractions == Contractions::Keep,
            marks: rules.punctuation == Punctuation::Drop && !rules.writes_tags(),
        }
    }
}

/// A stretch of text as masks; bit `i` stands for byte `start + i`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    start: usize,
    letters: u64,
    digits: u64,
    /// What words are made of.
    words: u64,
    /// What stands between words and means nothing: spaces, dropped marks, the end of the text.
    gaps: u64,
}

impl Window {
    /// The window that begins at `start`, and whether all in it is clean.
    pub(super) fn new(plain: &Plain, text: &[u8], start: usize) -> (Self, bool) {
        let rest = text.get(start..).unwrap_or_default();
        let kinds = kinds(rest);
        let Kinds { letters, digits, apostrophes, spaces, stops, slashes, signs, printed, .. } =
            kinds;
        // What follows the last byte of the window is known if it is the end of the text.
        let known = if rest.len() <= BLOCK { !0 } else { !0 >> 1 };
        let mut words = if plain.digits { letters | digits } else { letters };
        let alphanumeric = letters | digits;
        if plain.apostrophes {
            words |= apostrophes & words << 1 & words >> 1;
        }
        let mut gaps = spaces;
        if plain.marks {
            gaps |= printed & !(alphanumeric | apostrophes | stops | signs);
            // A full stop before a letter may belong to an address, as may a colon before a slash.
            gaps |= stops & known & !(alphanumeric >> 1) & !(slashes >> 1);
        }
        (Self { start, letters, digits, words, gaps }, !plain.unclean.is_in(&kinds))
    }

    /// How many letters follow each other from `at` on. `None` if they may go on behind the window.
    #[inline]
    pub(super) fn letters(&self, at: usize) -> Option<usize> {
        let run = self.run(self.letters, at);
        (run < (self.start + BLOCK).saturating_sub(at)).then_some(run)
    }

    /// Where the window begins.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The words from `at` on up to the first byte that is part neither of a word nor of a gap.
    /// `None` where `at` lies outside.
    #[inline]
    pub(super) fn words(&self, at: usize) -> Option<Words> {
        let from = at.checked_sub(self.start).filter(|&from| from < BLOCK)?;
        let [mut words, gaps] = [self.words >> from, self.gaps >> from];
        // What stands before an apostrophe may have been taken for a hashtag.
        words &= !(u64::from((self.letters | self.digits) >> from & 1 == 0));
        // Bits that were shifted in are neither, and end it as well.
        let plain = (words | gaps).trailing_ones();
        let known = 1_u64.checked_shl(plain).map_or(!0, |bit| bit - 1);
        Some(Words {
            starts: words & !(words << 1),
            ends: gaps & words << 1 & known,
            digits: self.digits >> from,
            gaps,
            last: 0,
            reached_end: from + plain as usize == BLOCK,
        })
    }

    #[inline]
    fn run(&self, mask: u64, at: usize) -> usize {
        // Bits that are shifted in are zeros and end every run at the window's end.
        let from = at.wrapping_sub(self.start);
        if from < BLOCK { (mask >> from).trailing_ones() as usize } else { 0 }
    }
}

/// Words as the masks show them: each begins at a bit of `starts` and ends before one of `ends`.
#[derive(Debug)]
pub(super) struct Words {
    starts: u64,
    ends: u64,
    digits: u64,
    gaps: u64,
    /// The end of the last word.
    last: usize,
    reached_end: bool,
}

impl Words {
    /// How many are left.
    pub(super) fn len(&self) -> u32 {
        self.ends.count_ones()
    }

    /// Beginning and end of the next one, if there is one, and whether it is all digits.
    #[inline]
    pub(super) fn step(&mut self) -> (u32, u32, bool) {
        let (start, end) = (self.starts.trailing_zeros(), self.ends.trailing_zeros());
        self.starts &= self.starts.wrapping_sub(1);
        self.ends &= self.ends.wrapping_sub(1);
        self.last = end as usize;
        let digits = self.digits.checked_shr(start).unwrap_or(0).trailing_ones();
        (start, end, start.wrapping_add(digits) >= end)
    }

    /// Where no more is known: behind the last word and the gap after it.
    pub(super) fn stopped(&self) -> usize {
        self.last + (self.gaps >> self.last).trailing_ones() as usize
    }

    /// Whether it was the window's end that stopped it.
    pub(super) fn reached_end(&self) -> bool {
        self.reached_end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Plain =
        Plain { unclean: Unclean::NONE, digits: true, apostrophes: true, marks: true };

    fn window(plain: Plain, text: &[u8], start: usize) -> Window {
        Window::new(&plain, text, start).0
    }

    fn all(words: &mut Words) -> Vec<(usize, usize, bool)> {
        let each = (0..words.len()).map(|_| words.step());
        each.map(|(start, end, digits)| (start as usize, end as usize, digits)).collect()
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
                    prop_assert_eq!(seen.digits >> at & 1 == 1, byte.is_ascii_digit());
                    prop_assert_eq!(seen.gaps >> at & 1 == 1, *byte == b' ');
                }
                let seen_of_it = bytes.get(..BLOCK).unwrap_or(bytes);
                prop_assert_eq!(Window::new(&PLAIN, bytes, 0).1, seen_of_it.is_ascii());
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
            match seen.letters(at) {
                Some(run) => prop_assert_eq!(run, letters),
                None => prop_assert!(at + letters >= start + BLOCK || at >= start + BLOCK),
            }
            let mut last = 0;
            let mut words = seen.words(at);
            for (from, to, digits) in words.iter_mut().flat_map(all) {
                let letter = |byte: &u8| byte.is_ascii_alphabetic();
                prop_assert!(from >= last && rest.as_bytes()[from..to].iter().all(letter));
                prop_assert!(!rest[last..from].bytes().any(|byte| letter(&byte)) && !digits);
                prop_assert!(rest.as_bytes().get(to) .is_none_or(|&byte| byte == b' '));
                last = to;
            }
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
        let tag = window(PLAIN, b"#it's so", 0);
        assert_eq!(tag.words(3).unwrap().len(), 0, "no word begins with an apostrophe");
        assert_eq!(gaps(&format!("{long}com")).get(63..64), Some("x"), "it goes on behind it");
    }
}
