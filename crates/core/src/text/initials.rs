//! Initials with full stops, `L.A.`, `U.S.`, `e.g.`: one word, not as many as there are letters.

use super::normalisation::Contractions;
use super::scan::Scanner;
use super::spelling;
use super::tokens::{Kind, Tokens};

impl Scanner<'_> {
    /// Single ASCII letters from `at` on, at least two, with a full stop after each but perhaps the
    /// last. Makes one token of the letters and gives back where they end.
    pub(super) fn initials(&mut self, at: usize) -> Option<usize> {
        let letter = |at: usize| self.bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        let is = |at: usize, byte: u8| self.bytes.get(at) == Some(&byte);
        // What follows a full stop goes on with something longer, as `example.a.b` does.
        if at > 0 && is(at - 1, b'.') {
            return None;
        }
        let mut end = at;
        while letter(end) && is(end + 1, b'.') {
            end += 2;
        }
        if letter(end) && self.word_end(end) == end + 1 {
            end += 1;
        }
        let letters = (end - at).div_ceil(2);
        // `j.k@example.org` and `a.b_c` are no initials, nor is `a.b.example`.
        let goes_on = self.begins_word(end) || is(end, b'@') || is(end, b'_');
        if letters < 2 || goes_on {
            return None;
        }
        let tail = match self.rules.contractions {
            Contractions::Keep if is(end, b'\'') && self.joins(end) => self.word_end(end + 1),
            _ => end,
        };
        let Tokens { arena, scratch, .. } = &mut *self.tokens;
        let from = arena.len();
        for part in self.text[at..end].split('.') {
            spelling::fold(self.rules, part, arena);
        }
        spelling::spell(self.rules, &self.text[end..tail], arena, scratch);
        let elongated = spelling::end(self.rules, arena, from);
        let span = self.span(at, tail);
        self.tokens.push(from, span.clone(), Kind::Word);
        if elongated {
            self.tokens.push_text("<elong>", span, Kind::Tag);
        }
        Some(tail)
    }
}
