//! Joins initials with full stops, `L.A.`, `U.S.`, `e.g.`, into one word instead of a word for each letter.

use super::classes::looked;
use super::normalisation::Contractions;
use super::scan::Scanner;
use super::spelling;
use super::tokens::Kind;

impl Scanner<'_> {
    /// Single ASCII letters from `at` on, at least two, with a full stop after each but perhaps the
    /// last. Makes one token of the letters and of an ending behind them, as in `L.A.'s`, and gives back
    /// where it ends.
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
        looked(end - at);
        let letters = (end - at).div_ceil(2);
        // `j.k@example.org` and `a.b_c` are no initials, nor is `a.b.example`.
        let goes_on = self.begins_word(end) || is(end, b'@') || is(end, b'_');
        if letters < 2 || goes_on {
            return None;
        }
        let joined = self.rules.contractions == Contractions::Keep && is(end, b'\'');
        let tail = if joined && self.joins(end) { self.word_end(end + 1) } else { end };
        let from = self.tokens.arena.len();
        for part in self.text[at..end].split('.') {
            spelling::fold(self.rules, part, &mut self.tokens.arena);
        }
        let ending = &self.text[end..tail];
        spelling::spell(self.rules, ending, &mut self.tokens.arena, &mut self.tokens.scratch);
        self.finish(from, at, tail, Kind::Word);
        Some(tail)
    }
}
