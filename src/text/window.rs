//! Sixty-four bytes of text at a time, seen as bit masks. Most words of most texts are runs of
//! ASCII letters between spaces or marks that are dropped, and with masks the end of a run is one
//! instruction away. It knows of the rules only what makes a byte part of a word or of a gap.

use wide::u8x16;

use super::normalisation::Contractions;
use super::normalisation::Normalisation;
use super::normalisation::Numbers;
use super::normalisation::Punctuation;

/// Bytes of a window.
const BYTES: usize = 64;
/// Bytes that masks are made of at a time.
const CHUNK: usize = 16;

/// What the rules say of single bytes of ASCII.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
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
            digits: rules.numbers == Numbers::Keep,
            apostrophes: rules.contractions == Contractions::Keep,
            marks: rules.punctuation == Punctuation::Drop && !rules.writes_tags(),
        }
    }
}

/// A stretch of text as masks; bit `i` stands for byte `start + i`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    start: usize,
    letters: u64,
    digits: u64,
    /// What words are made of.
    words: u64,
    /// What stands between words and means nothing: spaces, dropped marks, the end of the text.
    gaps: u64,
}

/// Masks of single kinds of bytes.
#[derive(Default)]
struct Kinds {
    letters: u64,
    digits: u64,
    apostrophes: u64,
    spaces: u64,
    /// Full stops and colons.
    stops: u64,
    slashes: u64,
    /// Every other mark but `#` and `@`.
    marks: u64,
}

impl Kinds {
    /// Takes in bytes of the window, from number `at` of it on.
    #[inline(always)]
    fn see(&mut self, bytes: [u8; CHUNK], at: usize) {
        let bytes = u8x16::new(bytes);
        let within = |from: u8, to: u8, bytes: u8x16| {
            let offset = bytes - u8x16::splat(from);
            offset.min(u8x16::splat(to - from)).simd_eq(offset)
        };
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let letters = within(b'a', b'z', bytes | u8x16::splat(0x20));
        let digits = within(b'0', b'9', bytes);
        let (apostrophes, spaces) = (is(b'\''), is(b' '));
        let stops = is(b'.') | is(b':');
        let others = letters | digits | apostrophes | stops | is(b'#') | is(b'@');
        let marks = within(b'!', b'~', bytes) & !others;
        let put = |mask: &mut u64, found: u8x16| *mask |= u64::from(found.to_bitmask()) << at;
        put(&mut self.letters, letters);
        put(&mut self.digits, digits);
        put(&mut self.apostrophes, apostrophes);
        put(&mut self.spaces, spaces);
        put(&mut self.stops, stops);
        put(&mut self.slashes, is(b'/'));
        put(&mut self.marks, marks);
    }
}

impl Window {
    /// The window that begins at `start`.
    pub(super) fn new(plain: Plain, text: &[u8], start: usize) -> Self {
        let rest = &text[start.min(text.len())..];
        let seen = rest.get(..BYTES).unwrap_or(rest);
        let mut kinds = Kinds::default();
        for (place, chunk) in seen.as_chunks::<CHUNK>().0.iter().enumerate() {
            kinds.see(*chunk, CHUNK * place);
        }
        if let Some(last) = seen.last_chunk::<CHUNK>() {
            // Bytes that are seen twice set the same bits twice.
            kinds.see(*last, seen.len() - CHUNK);
        } else {
            let mut last = [0; CHUNK];
            last.iter_mut().zip(seen).for_each(|(to, from)| *to = *from);
            kinds.see(last, 0);
        }
        let after_end = (!0_u64).checked_shl(seen.len() as u32).unwrap_or(0);
        // What follows the last byte of the window is known if it is the end of the text.
        let known = if rest.len() <= BYTES { !0 } else { !0 >> 1 };
        Self::of(plain, start, kinds, [after_end, known])
    }

    fn of(plain: Plain, start: usize, kinds: Kinds, [after_end, known]: [u64; 2]) -> Self {
        let Kinds { letters, digits, apostrophes, spaces, stops, slashes, marks } = kinds;
        let mut words = if plain.digits { letters | digits } else { letters };
        let alphanumeric = letters | digits;
        if plain.apostrophes {
            words |= apostrophes & words << 1 & words >> 1;
        }
        let mut gaps = spaces | after_end;
        if plain.marks {
            // A full stop before a letter may belong to an address, as may a colon before a slash.
            gaps |= marks | stops & known & !(alphanumeric >> 1) & !(slashes >> 1);
        }
        Self { start, letters, digits, words, gaps }
    }

    /// How many letters follow each other from `at` on. `None` if they may go on behind the window.
    #[inline]
    pub(super) fn letters(&self, at: usize) -> Option<usize> {
        let run = self.run(self.letters, at);
        (run < (self.start + BYTES).saturating_sub(at)).then_some(run)
    }

    /// Where the window begins.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The words from `at` on up to the first byte that is part neither of a word nor of a gap.
    /// `None` where `at` lies outside.
    #[inline]
    pub(super) fn words(&self, at: usize) -> Option<Words> {
        let from = at.checked_sub(self.start).filter(|&from| from < BYTES)?;
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
            reached_end: from + plain as usize == BYTES,
        })
    }

    #[inline]
    fn run(&self, mask: u64, at: usize) -> usize {
        // Bits that are shifted in are zeros and end every run at the window's end.
        let from = at.wrapping_sub(self.start);
        if from < BYTES { (mask >> from).trailing_ones() as usize } else { 0 }
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
    /// Where no more is known: behind the last word and the gap after it.
    pub(super) fn stopped(&self) -> usize {
        self.last + (self.gaps >> self.last).trailing_ones() as usize
    }

    /// Whether it was the window's end that stopped it.
    pub(super) fn reached_end(&self) -> bool {
        self.reached_end
    }
}

/// Beginning, end, and whether it is all digits.
impl Iterator for Words {
    type Item = (usize, usize, bool);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ends == 0 {
            return None;
        }
        let (start, end) = (self.starts.trailing_zeros(), self.ends.trailing_zeros());
        self.starts &= self.starts.wrapping_sub(1);
        self.ends &= self.ends.wrapping_sub(1);
        self.last = end as usize;
        let digits = (self.digits >> start).trailing_ones() >= end - start;
        Some((start as usize, end as usize, digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: Plain = Plain { digits: true, apostrophes: true, marks: true };

    proptest! {
        #[test]
        fn masks_are_what_the_bytes_say(
            bytes in prop::collection::vec(any::<u8>(), 0..70), text in "[a-zA-Z0-9 '@.\\[`{é]{0,70}",
        ) {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                let window = Window::new(Plain { marks: false, ..PLAIN }, bytes, 0);
                for (at, byte) in bytes.iter().enumerate().take(BYTES) {
                    prop_assert_eq!(window.letters >> at & 1 == 1, byte.is_ascii_alphabetic());
                    prop_assert_eq!(window.digits >> at & 1 == 1, byte.is_ascii_digit());
                    prop_assert_eq!(window.gaps >> at & 1 == 1, *byte == b' ');
                }
                let behind = bytes.len().min(BYTES) as u32;
                prop_assert_eq!(window.words.checked_shr(behind).unwrap_or(0), 0);
                prop_assert_eq!(window.gaps.checked_shr(behind).unwrap_or(!0), (!0_u64).checked_shr(behind).unwrap_or(!0));
            }
        }

        #[test]
        fn runs_end_where_letters_end(text in "[a-z ]{0,150}", start in 0usize..160, at in 0usize..80) {
            let window = Window::new(PLAIN, text.as_bytes(), start);
            let at = start + at;
            let rest = text.get(at..).unwrap_or_default();
            let letters = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic()).count();
            match window.letters(at) {
                Some(run) => prop_assert_eq!(run, letters),
                None => prop_assert!(at + letters >= start + BYTES || at >= start + BYTES),
            }
            let mut last = 0;
            for (from, to, digits) in window.words(at).into_iter().flatten() {
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
            let window = Window::new(PLAIN, text.as_bytes(), 0);
            (0..text.len().min(BYTES))
                .map(|at| if window.gaps >> at & 1 == 1 { '_' } else { 'x' })
                .collect::<String>()
        };
        assert_eq!(gaps("one, two. (3)"), "xxx__xxx___x_");
        assert_eq!(gaps("www.x http://y a:b."), "xxxxx_xxxxx__x_xxx_");
        assert_eq!(gaps("#a @b it's 'so'"), "xx_xx_xxxx_xxxx");
        let long = format!("{}.", "x".repeat(63));
        assert_eq!(gaps(&long).chars().last(), Some('_'), "the text ends with the window");
        let tag = Window::new(PLAIN, b"#it's so", 0);
        assert_eq!(tag.words(3).unwrap().next(), None, "no word begins with an apostrophe");
        assert_eq!(gaps(&format!("{long}com")).get(63..64), Some("x"), "it goes on behind it");
    }
}
