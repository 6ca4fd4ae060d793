//! Words that nothing has to be decided about: runs of ASCII letters that are no part of anything
//! longer. Their text is the text itself in the right case, which lies in the arena already.

use std::ops::Range;

use cognate_kernels::simd::{BLOCK, kinds};

use super::classes::{Byte, byte_class};
use super::clean::position;
use super::normalisation::{Case, Normalisation};
use super::scan::{Bases, Scanner};
use super::tokens::{Kind, Tokens};
use super::window::{Plain, Window};

/// Cuts a text into `tokens`, which begin with it. Words of which the masks say all are most of most
/// texts; what stands between two spaces and holds a byte to be decided about is cut alone, because no
/// rule but those that write tags looks across a space.
pub(super) fn cut(rules: &Normalisation, plain: &Plain, text: &str, tokens: &mut Tokens) {
    let bytes = text.as_bytes();
    let (mut at, mut settled) = (0, 0);
    while at < bytes.len() {
        let window = Window::new(plain, bytes, at);
        let words = window.words();
        tokens.extend(&words, position(at));
        at = match words.next() {
            Some(next) => at + next,
            None => {
                let stretch = window.stretch(bytes, at + words.stopped());
                tokens.take_back(settled, position(stretch.start));
                scan(rules, plain, text, stretch.clone(), tokens);
                settled = tokens.len();
                stretch.end
            }
        };
    }
}

/// Cuts a part of the text that `tokens` begin with, by all rules.
pub(super) fn scan(
    rules: &Normalisation,
    plain: &Plain,
    text: &str,
    part: Range<usize>,
    tokens: &mut Tokens,
) {
    let start = part.start;
    let text = &text[part];
    if !text.as_bytes().chunks(BLOCK).any(|block| plain.unclean.is_in(&kinds(block))) {
        let bases = Bases { arena: start, input: start };
        return Scanner::new(rules, text, &[], bases, tokens, *plain).run();
    }
    // The clean text is read while tokens are written, so it leaves `tokens` for that time.
    let mut clean = std::mem::take(&mut tokens.clean);
    clean.fill(rules, text);
    let bases = Bases { arena: tokens.arena.len(), input: start };
    tokens.arena.push_str(clean.text());
    if rules.case == Case::Lower {
        tokens.arena[bases.arena..].make_ascii_lowercase();
    }
    Scanner::new(rules, clean.text(), clean.origin(), bases, tokens, *plain).run();
    tokens.clean = clean;
}

impl Scanner<'_> {
    /// The word from `at` on if nothing has to be decided about it: ASCII letters and then
    /// something that no word goes on with. Gives back its end.
    pub(super) fn letters(&mut self, at: usize, window: &mut Option<Window>) -> Option<usize> {
        let known = window.as_ref().and_then(|window| window.letters(at));
        let run = known.or_else(|| window.insert(self.window(at)).letters(at))?;
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
