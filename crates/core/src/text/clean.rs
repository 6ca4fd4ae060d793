//! Clean text: the input with entities decoded, what cannot be seen removed and NFKC applied,
//! and for each piece of it the bytes of the input that it came from. It does not cut words and
//! leaves the case alone, which the cutting of hashtags still needs.
//!
//! NFKC is applied by segment: a segment begins at a character whose decomposition begins with a
//! starter that never composes with what stands before it, so the segments' results joined are
//! the result of the whole. Stretches of ASCII are copied whole.

use cognate_kernels::simd::Kinds;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible, is_combining_mark,
};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::classes::{is_emoji, is_emoji_joiner, is_ignorable, looked};
use super::entities::entity;
use super::normalisation::{Controls, Emoji, Entities, Normalisation};

/// Further marks on one letter are dropped; no orthography needs as many.
const MARKS_PER_BASE: usize = 8;

/// The origin of a piece of clean text. The piece reaches to the next one.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// First byte of the piece in the clean text.
    pub(super) clean: u32,
    /// First byte of the piece in the input.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether the bytes are the same, so that positions inside can be mapped.
    pub(super) verbatim: bool,
}

/// Clean text with its origins, and the room to make it.
#[derive(Debug, Default)]
pub(super) struct Clean {
    text: String,
    origin: Vec<Origin>,
    /// The decomposed characters of the segment that is being read.
    segment: Vec<char>,
    /// Whether the segment is one character that is known to stay as it is.
    settled: bool,
    start: usize,
    end: usize,
    /// Marks since the last base, over segments: not every mark continues a segment.
    marks: usize,
}

/// The ASCII bytes that need cleaning under the rules; other bytes always do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unclean {
    ampersands: bool,
    controls: bool,
}

impl Unclean {
    /// No ASCII byte needs cleaning.
    #[cfg(test)]
    pub(super) const NONE: Self = Self { ampersands: false, controls: false };

    pub(super) fn by(rules: &Normalisation) -> Self {
        Self {
            ampersands: rules.entities == Entities::Decode,
            controls: rules.controls == Controls::Remove,
        }
    }

    #[inline]
    pub(super) fn is_in(self, kinds: &Kinds) -> bool {
        self.of(kinds) != 0
    }

    #[inline]
    pub(super) fn of(self, kinds: &Kinds) -> u64 {
        let ampersands = if self.ampersands { kinds.ampersands } else { 0 };
        let controls = if self.controls { kinds.controls } else { 0 };
        kinds.wide | ampersands | controls
    }
}

impl Clean {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn origin(&self) -> &[Origin] {
        &self.origin
    }

    pub(super) fn fill(&mut self, rules: &Normalisation, input: &str) {
        self.text.clear();
        self.origin.clear();
        self.segment.clear();
        self.marks = 0;
        let decode = rules.entities == Entities::Decode;
        let remove = rules.controls == Controls::Remove;
        let keeps_emoji = rules.emoji == Emoji::Keep;
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            let plain = rest
                .bytes()
                .position(|byte| {
                    !byte.is_ascii()
                        || (decode && byte == b'&')
                        || (remove && byte.is_ascii_control())
                })
                .unwrap_or(rest.len());
            looked(plain + 1);
            // The last character of the stretch may take marks that follow.
            if plain > 1 {
                self.copy(input, at, at + plain - 1);
                at += plain - 1;
                continue;
            }
            let Some(first) = rest.chars().next() else {
                break;
            };
            let (c, len) = (decode && first == '&')
                .then(|| entity(rest))
                .flatten()
                .unwrap_or((first, first.len_utf8()));
            let dropped = if c.is_control() {
                remove && !c.is_whitespace()
            } else {
                is_ignorable(c)
                    && !(keeps_emoji && is_emoji_joiner(c) && self.in_emoji(&rest[len..], c))
            };
            if !dropped {
                self.take(input, c, at, at + len);
            }
            at += len;
        }
        self.flush(input);
    }

    /// Whether a joiner belongs to an emoji, going by what stands before it. The scanner decides
    /// where clusters end and steps over joiners that turn out to join nothing.
    fn in_emoji(&self, rest: &str, joiner: char) -> bool {
        let Some(before) = self.segment.last().copied() else {
            return false;
        };
        is_emoji(before)
            || is_emoji_joiner(before)
            || (joiner == '\u{FE0F}'
                && matches!(before, '0'..='9' | '#' | '*')
                && rest.starts_with('\u{20E3}'))
    }

    fn copy(&mut self, input: &str, start: usize, end: usize) {
        self.flush(input);
        self.marks = 0;
        let at = self.text.len();
        self.text.push_str(&input[start..end]);
        self.note(at, start, end, true);
    }

    /// Adds a character to the segment that it continues, or begins the next one.
    fn take(&mut self, input: &str, c: char, start: usize, end: usize) {
        let c = written(c);
        if c.is_ascii() || is_settled(c) || is_outsize(c) {
            self.flush(input);
            self.segment.push(c);
            self.settled = true;
            self.marks = 0;
            (self.start, self.end) = (start, end);
            return;
        }
        // Nothing composes with a space, and no token's bytes reach back over one.
        if !continues(c) || self.segment == [' '] {
            self.flush(input);
        } else if self.settled {
            self.settled = false;
            let base = self.segment.pop();
            base.into_iter().for_each(|base| decompose_canonical(base, |c| self.add(c)));
        }
        if self.segment.is_empty() {
            self.start = start;
        }
        self.end = end;
        decompose_compatible(c, |c| self.add(written(c)));
    }

    fn add(&mut self, c: char) {
        if !is_combining_mark(c) {
            self.marks = 0;
        } else if self.marks == MARKS_PER_BASE {
            return;
        } else {
            self.marks += 1;
        }
        self.segment.push(c);
    }

    fn flush(&mut self, input: &str) {
        if self.segment.is_empty() {
            return;
        }
        looked(self.segment.len());
        let at = self.text.len();
        let segment = self.segment.iter().copied();
        match self.settled || self.segment.iter().all(char::is_ascii) {
            true => self.text.extend(segment),
            false => self.text.extend(segment.nfc()),
        }
        self.segment.clear();
        self.settled = false;
        let verbatim = self.text[at..] == input[self.start..self.end];
        self.note(at, self.start, self.end, verbatim);
    }

    /// Records which bytes of the source text became the clean text from `at` on.
    fn note(&mut self, at: usize, start: usize, end: usize, verbatim: bool) {
        let (clean, start, end) = (position(at), position(start), position(end));
        if let Some(last) = self.origin.last_mut()
            && verbatim
            && last.verbatim
            && last.end == start
        {
            last.end = end;
        } else {
            self.origin.push(Origin { clean, start, end, verbatim });
        }
    }
}

/// Turns every apostrophe into `'`, and leaves other characters as they are.
fn written(c: char) -> char {
    if matches!(c, '\u{2019}' | '\u{2BC}') { '\'' } else { c }
}

/// Whether a character can compose with the one before it, or be reordered with it.
fn continues(c: char) -> bool {
    let mut first = None;
    decompose_compatible(c, |c| first = first.or(Some(c)));
    first.is_some_and(|c| {
        canonical_combining_class(c) != 0 || is_nfc_quick(std::iter::once(c)) == IsNormalized::Maybe
    })
}

/// Whether a character stays as it is under NFKC and continues nothing: common letters, marks and
/// emoji, known without a look into the tables.
fn is_settled(c: char) -> bool {
    matches!(
        c,
        '\u{C0}'..='\u{131}'
            | '\u{134}'..='\u{13E}'
            | '\u{141}'..='\u{148}'
            | '\u{14A}'..='\u{17E}'
            | '\u{391}'..='\u{3A1}'
            | '\u{3A3}'..='\u{3C9}'
            | '\u{400}'..='\u{481}'
            | '\u{2012}'..='\u{2016}'
            | '\u{2018}'
            | '\u{201A}'..='\u{2023}'
            | '\u{3041}'..='\u{3094}'
            | '\u{30A1}'..='\u{30FA}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{AC00}'..='\u{D7A3}'
            | '\u{1F300}'..='\u{1F6D7}'
            | '\u{1F90C}'..='\u{1F9FF}'
    )
}

/// Whether a character would grow to more than four times its bytes: Arabic phrases and katakana
/// units in one character. They stay as they are, which bounds the output wherever they stand.
fn is_outsize(c: char) -> bool {
    matches!(
        c,
        '\u{3307}' | '\u{3315}'
            ..='\u{3317}'
                | '\u{3319}'
                | '\u{331A}'
                | '\u{3320}'
                | '\u{332B}'
                | '\u{332E}'
                | '\u{3332}'
                | '\u{3334}'
                | '\u{3336}'
                | '\u{3347}'
                | '\u{334A}'
                | '\u{3356}'
                | '\u{FDFA}'
                | '\u{FDFB}'
    )
}

/// A byte position as it is stored. `tokenise` cuts its input so that every position fits.
pub(super) fn position(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nfkc_of(c: char) -> String {
        std::iter::once(c).nfkc().collect()
    }

    #[test]
    fn settled_characters_need_no_normalisation() {
        let settled = ('\u{80}'..=char::MAX).filter(|&c| is_settled(c));
        for c in settled {
            assert_eq!(nfkc_of(c), c.to_string());
            assert!(!continues(c) && !is_ignorable(c) && written(c) == c && !c.is_control());
            assert!(!is_combining_mark(c), "{c}");
        }
    }

    #[test]
    fn no_character_grows_beyond_four_times_its_bytes() {
        for c in '\0'..=char::MAX {
            assert_eq!(nfkc_of(c).len() > 4 * c.len_utf8(), is_outsize(c), "{c}");
        }
    }

    #[test]
    fn clean_text_is_nfkc_and_its_origins_point_back() {
        let rules = Normalisation::preset("plain").unwrap();
        let mut clean = Clean::default();
        clean.fill(&rules, "ﬁne cafe\u{AD}\u{301} &amp; ½");
        assert_eq!(clean.text(), "fine café & 1\u{2044}2");
        let origins: Vec<_> =
            clean.origin().iter().map(|o| (o.clean, o.start, o.end, o.verbatim)).collect();
        let expected = [
            (0, 0, 3, false),
            (2, 3, 9, true),
            (8, 9, 14, false),
            (10, 14, 15, true),
            (11, 15, 20, false),
            (12, 20, 21, true),
            (13, 21, 23, false),
        ];
        assert_eq!(origins, expected);
        // A mark or a vowel has nothing to do with the space before it.
        clean.fill(&rules, " \u{200D}\u{1161} \u{301}");
        let origins: Vec<_> = clean.origin().iter().map(|o| (o.clean, o.start, o.end)).collect();
        assert_eq!((clean.text(), origins), (" \u{1161} \u{301}", vec![(0, 0, 1), (1, 4, 10)]));
    }
}
