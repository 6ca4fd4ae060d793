//! Words that nothing has to be decided about: runs of ASCII letters that are no part of anything
//! longer. Their text is the text itself in the right case, which lies in the arena already.

use super::classes::{Byte, byte_class};
use super::scan::Scanner;
use super::tokens::{Kind, position};
use super::window::Window;

impl Scanner<'_> {
    /// Words from `at` on of which the masks say all, and the gaps before and after them: most of
    /// most texts. Gives back where it stopped.
    pub(super) fn plain_words(&mut self, mut at: usize, window: &mut Window) -> usize {
        if self.tags || !self.origin.is_empty() {
            return at;
        }
        while at < self.bytes.len() {
            let Some(mut words) = window.words(at) else {
                *window = self.window(at);
                continue;
            };
            self.tokens.extend(&mut words, position(at));
            let stopped = at + words.stopped();
            // What stopped it is a byte to be decided about, a word longer than the window, or the
            // window's end, behind which the text may go on as plainly.
            if !words.reached_end() || stopped == window.start() || stopped >= self.bytes.len() {
                return stopped;
            }
            at = stopped;
            *window = self.window(at);
        }
        at
    }

    /// The word from `at` on if nothing has to be decided about it: ASCII letters and then
    /// something that no word goes on with. Gives back its end.
    pub(super) fn letters(&mut self, at: usize, window: &mut Window) -> Option<usize> {
        let run = window.letters(at).or_else(|| {
            *window = self.window(at);
            window.letters(at)
        })?;
        let end = at + run;
        if self.bytes.get(end).is_some_and(|&next| self.may_join(end, next)) {
            return None;
        }
        if self.tags && self.may_earn_tags(at, end) {
            return None;
        }
        let span = self.span(at, end);
        self.tokens.push_range(position(at)..position(end), span, Kind::Word);
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
