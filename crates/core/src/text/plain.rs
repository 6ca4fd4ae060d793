//! Words that nothing has to be decided about: runs of ASCII letters that are no part of anything
//! longer. Their text is the text itself in the right case, which lies in the arena already.

use std::ops::Range;

use cognate_kernels::simd::{BLOCK, kinds};

use super::classes::{Byte, byte_class};
use super::clean::position;
use super::normalisation::{Case, Normalisation};
use super::scan::{Bases, Scanner};
use super::tokens::{Kind, Tokens};
use super::window::{Letters, Plain, Window};

/// Cuts a text from `start` on into `tokens`, which begin with it. Words of which the masks say all are most of most
/// texts; what stands between two spaces and holds a byte to be decided about is cut alone, because no
/// rule but those that write tags looks across a space.
pub(super) fn cut(
    rules: &Normalisation,
    plain: &Plain,
    text: &str,
    start: usize,
    tokens: &mut Tokens,
) {
    let bytes = text.as_bytes();
    let (mut at, mut settled) = (start, 0);
    while at < bytes.len() {
        // The text as it lies in the arena, where blocks of it can be read.
        let window = Window::new(plain, tokens.arena.as_bytes(), at, bytes.len());
        let words = window.words();
        tokens.extend(&words, position(at));
        at = match words.next() {
            Some(next) => at + next,
            None => {
                let stretch = window.stretch(bytes, at + words.stopped());
                tokens.take_back(settled, position(stretch.start));
                match window.part(&stretch) {
                    Some((letters, false)) => {
                        scan(rules, text, stretch.clone(), tokens, Some(letters));
                    }
                    Some((_, true)) => scan_unclean(rules, text, stretch.clone(), tokens),
                    None => scan_part(rules, plain, text, stretch.clone(), tokens),
                }
                settled = tokens.len();
                stretch.end
            }
        };
    }
}

/// Cuts a part of the text that `tokens` begin with, by all rules.
pub(super) fn scan_part(
    rules: &Normalisation,
    plain: &Plain,
    text: &str,
    part: Range<usize>,
    tokens: &mut Tokens,
) {
    let mut blocks = text.as_bytes()[part.clone()].chunks(BLOCK);
    match blocks.any(|block| plain.unclean.is_in(&kinds(block))) {
        true => scan_unclean(rules, text, part, tokens),
        false => scan(rules, text, part, tokens, None),
    }
}

/// Cuts a part that is clean already; its first letters, if they are known.
fn scan(
    rules: &Normalisation,
    text: &str,
    part: Range<usize>,
    tokens: &mut Tokens,
    letters: Option<Letters>,
) {
    let bases = Bases { arena: part.start, input: part.start };
    Scanner::new(rules, &text[part], &[], bases, tokens).run(letters);
}

/// Cleans a part of the text into a copy, and cuts the copy into tokens.
fn scan_unclean(rules: &Normalisation, text: &str, part: Range<usize>, tokens: &mut Tokens) {
    // The clean text is read while tokens are written, so it leaves `tokens` for that time.
    let mut clean = std::mem::take(&mut tokens.clean);
    let input = part.start;
    clean.fill(rules, &text[part]);
    let bases = Bases { arena: tokens.arena.len(), input };
    tokens.arena.push_str(clean.text());
    if rules.case == Case::Lower {
        tokens.arena[bases.arena..].make_ascii_lowercase();
    }
    Scanner::new(rules, clean.text(), clean.origin(), bases, tokens).run(None);
    tokens.clean = clean;
}

impl Scanner<'_> {
    /// The word from `at` on if nothing has to be decided about it: ASCII letters and then
    /// something that no word goes on with. Gives back its end.
    pub(super) fn letters(&mut self, at: usize, letters: &mut Option<Letters>) -> Option<usize> {
        let known = letters.as_ref().and_then(|letters| letters.run(at));
        let run = known.or_else(|| letters.insert(Letters::new(self.bytes, at)).run(at))?;
        let end = at + run;
        if self.bytes.get(end).is_some_and(|&next| self.may_join(end, next)) {
            return None;
        }
        if self.tags && self.may_earn_tags(at, end) {
            return None;
        }
        let span = self.span(at, end);
        let place = position(self.bases.arena + at)..position(self.bases.arena + end);
        self.tokens.push_range(place, span, Kind::Word);
        Some(end)
    }

    /// Whether the word that ended in letters before the byte at `at` may be part of more: of a
    /// longer word, a contraction, an address.
    fn may_join(&self, at: usize, byte: u8) -> bool {
        match byte_class(byte) {
            Byte::Gap | Byte::At | Byte::Letter => false,
            Byte::Digit | Byte::Apostrophe | Byte::Hash | Byte::Wide => true,
            Byte::Mark => match byte {
                b'.' => self.bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
                b':' => self.bytes.get(at + 1) == Some(&b'/'),
                _ => false,
            },
        }
    }

    /// Whether the letters `start..end` may be all in capitals, or drawn out at the end.
    fn may_earn_tags(&self, start: usize, end: usize) -> bool {
        let word = &self.bytes[start..end];
        let drawn_out = || match word {
            [.., a, b, c] => a.eq_ignore_ascii_case(b) && b.eq_ignore_ascii_case(c),
            _ => false,
        };
        word.iter().take(2).all(u8::is_ascii_uppercase) || drawn_out()
    }
}
