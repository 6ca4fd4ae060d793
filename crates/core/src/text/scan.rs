//! The scanner: one pass over clean text that decides where tokens begin and end. Words are cut
//! here; addresses, names and hashtags in `web`, smileys and tags in `cues`, clusters in `emoji`.
//!
//! It looks back one character at most. It looks ahead a bounded way, except that the last group
//! after a number and the end of a word around a name or scheme can be read a second time.

use std::ops::Range;

use super::classes::{Byte, Wide, byte_class, cluster, is_han, keycap, looked, wide_class};
use super::clean::Origin;
use super::clean::position;
use super::contractions::{ending_len, lone_ending, stem_end};
use super::normalisation::{
    Case, Cjk, Contractions, Cues, Emoji, Initials, Normalisation, Numbers, Punctuation,
};
use super::spelling;
use super::tokens::{Kind, Tokens};
use super::window::Letters;

#[derive(Clone, Copy)]
pub(super) struct Bases {
    /// Its beginning in the arena of the tokens, where its letters have their case already.
    pub(super) arena: usize,
    /// The place in the input of what it was made from.
    pub(super) input: usize,
}

pub(super) struct Scanner<'a> {
    pub(super) rules: &'a Normalisation,
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    /// Origins of the clean text; empty if it is the input itself.
    origin: &'a [Origin],
    pub(super) bases: Bases,
    /// The origin of the last token's beginning.
    cursor: usize,
    pub(super) tokens: &'a mut Tokens,
    pub(super) tags: bool,
    /// Whether nothing but the case of an ASCII word is ever changed.
    as_written: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(
        rules: &'a Normalisation,
        text: &'a str,
        origin: &'a [Origin],
        bases: Bases,
        tokens: &'a mut Tokens,
    ) -> Self {
        let tags = rules.writes_tags();
        let as_written =
            !tags && rules.numbers == Numbers::Keep && rules.contractions != Contractions::DropMark;
        let bytes = text.as_bytes();
        Self { rules, text, bytes, origin, bases, cursor: 0, tokens, tags, as_written }
    }

    /// Cuts the whole text; its first letters, if they are known.
    pub(super) fn run(&mut self, first: Option<Letters>) {
        let (mut letters, mut at) = (first, 0);
        while let Some(&byte) = self.bytes.get(at) {
            at = match byte_class(byte) {
                Byte::Gap => at + 1,
                Byte::Letter => self.letters(at, &mut letters).unwrap_or_else(|| self.word(at)),
                Byte::Digit => self.keycap(at).unwrap_or_else(|| self.word(at)),
                Byte::Apostrophe => self.apostrophe(at),
                Byte::Hash => self.keycap(at).unwrap_or_else(|| self.hash(at)),
                Byte::At => self.mention(at),
                Byte::Mark => self.keycap(at).unwrap_or_else(|| self.mark(at)),
                Byte::Wide => self.wide(at),
            };
        }
    }

    /// A word from `at` on, or the address or the initials that it turns out to begin.
    pub(super) fn word(&mut self, at: usize) -> usize {
        if self.rules.initials == Initials::Join
            && let Some(end) = self.initials(at)
        {
            return end;
        }
        let mut end = self.word_end(at);
        if let Some(address) = self.address(at, end) {
            return address;
        }
        if matches!(self.rules.numbers, Numbers::Zero | Numbers::Tag) {
            end = self.number_end(at, end);
            if self.is_grouped(at, end) {
                self.number(at, end);
                return end;
            }
        }
        self.emit(at, end);
        end
    }

    pub(super) fn word_end(&self, start: usize) -> usize {
        self.word_end_before(start, self.bytes.len())
    }

    /// The end of the word that begins at `start`, looked for no further than `limit`.
    fn word_end_before(&self, start: usize, limit: usize) -> usize {
        let mut at = start;
        while at < limit
            && let Some(&byte) = self.bytes.get(at)
        {
            match byte_class(byte) {
                Byte::Letter | Byte::Digit => at += 1,
                Byte::Apostrophe if self.joins(at) => at += 1,
                Byte::Hash if self.hidden_digits(at) => {
                    while self.bytes.get(at) == Some(&b'#') {
                        at += 1;
                    }
                }
                Byte::Wide => {
                    let Some(c) = self.char_at(at) else { break };
                    if self.is_single(c) {
                        return if at == start { at + c.len_utf8() } else { at };
                    }
                    match wide_class(c) {
                        Wide::Letter | Wide::Digit | Wide::Accent => at += c.len_utf8(),
                        _ => break,
                    }
                }
                _ => break,
            }
        }
        at
    }

    /// Whether the apostrophe at `at`, after a word character or initials, is inside the word.
    pub(super) fn joins(&self, at: usize) -> bool {
        self.rules.contractions != Contractions::Apart
            && self.begins_word(at + 1)
            && !self.char_at(at + 1).is_some_and(|c| self.is_single(c))
    }

    pub(super) fn begins_word(&self, at: usize) -> bool {
        match self.bytes.get(at).map(|&byte| byte_class(byte)) {
            Some(Byte::Letter | Byte::Digit) => true,
            Some(Byte::Hash) => self.hidden_digits(at),
            Some(Byte::Wide) => self
                .char_at(at)
                .is_some_and(|c| matches!(wide_class(c), Wide::Letter | Wide::Digit)),
            _ => false,
        }
    }

    /// Whether the `#` at `at` is a placeholder for digits.
    pub(super) fn hidden_digits(&self, at: usize) -> bool {
        self.rules.numbers == Numbers::Hashes && self.bytes[at..].starts_with(b"##")
    }

    fn is_single(&self, c: char) -> bool {
        self.rules.cjk == Cjk::Single && is_han(c)
    }

    pub(super) fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Where the number ends whose first digits are `start..end`, if it is one: digits with single
    /// marks between them. A group that goes on as a word is left out.
    fn number_end(&self, start: usize, end: usize) -> usize {
        let mut end = end;
        looked(end - start);
        if !self.text[start..end].chars().all(char::is_numeric) {
            return end;
        }
        while let Some(b'.' | b',' | b':') = self.bytes.get(end) {
            if self.bytes[end] == b':' && self.rules.numbers != Numbers::Tag {
                break;
            }
            let group = end + 1;
            if !self.char_at(group).is_some_and(char::is_numeric) {
                break;
            }
            let next = self.word_end(group);
            looked(next - group);
            if !self.text[group..next].chars().all(char::is_numeric) {
                break;
            }
            end = next;
        }
        end
    }

    /// Whether `number_end` joined several groups: no word holds these marks.
    fn is_grouped(&self, at: usize, end: usize) -> bool {
        looked(end - at);
        self.bytes[at..end].iter().any(|byte| matches!(byte, b'.' | b',' | b':'))
    }

    fn number(&mut self, at: usize, end: usize) {
        let span = self.span(at, end);
        if self.rules.numbers == Numbers::Tag {
            self.tokens.push_text("<number>", span, Kind::Tag);
        } else {
            self.tokens.push_text("0", span, Kind::Number);
        }
    }

    /// The words in a piece of a name or hashtag.
    pub(super) fn words(&mut self, piece: Range<usize>) {
        let mut at = piece.start;
        while at < piece.end {
            if self.begins_word(at) {
                // In a hashtag of many words each is looked at once, not all that follow it.
                let end = self.word_end_before(at, piece.end);
                self.emit(at, end);
                at = end;
            } else {
                at += self.char_at(at).map_or(1, char::len_utf8);
            }
        }
    }

    fn emit(&mut self, start: usize, end: usize) {
        looked(end - start);
        if self.rules.contractions != Contractions::Split {
            return self.piece(start, end);
        }
        let mut at = start + stem_end(&self.bytes[start..end]);
        self.piece(start, at);
        while at < end {
            let next = at + ending_len(&self.bytes[at..end]);
            self.plain(at, next, Kind::Word);
            at = next;
        }
    }

    /// Pushes one token for a word that holds no contraction, and the tags that belong to it.
    fn piece(&mut self, start: usize, end: usize) {
        let rules = self.rules;
        let word = &self.text[start..end];
        if self.as_written && word.is_ascii() {
            // The arena has it in its case already.
            let number = word.bytes().all(|byte| byte.is_ascii_digit());
            let kind = if number { Kind::Number } else { Kind::Word };
            let (span, base) = (self.span(start, end), self.bases.arena);
            let place = position(base + start)..position(base + end);
            return self.tokens.push_range(place, span, kind);
        }
        let from = self.tokens.arena.len();
        spelling::spell(rules, word, &mut self.tokens.arena, &mut self.tokens.scratch);
        let spelled = &self.tokens.arena[from..];
        let number = !spelled.starts_with(|c: char| c.is_ascii_alphabetic())
            && spelled.chars().all(|c| c.is_numeric() || c == '#');
        if number && matches!(rules.numbers, Numbers::Zero | Numbers::Tag) {
            self.tokens.arena.truncate(from);
            return self.number(start, end);
        }
        self.finish(from, start, end, if number { Kind::Number } else { Kind::Word });
    }

    /// Makes a token of the word `start..end`, which is spelled from `from` on in the arena, and the tags
    /// that it earns.
    pub(super) fn finish(&mut self, from: usize, start: usize, end: usize, kind: Kind) {
        let rules = self.rules;
        let elongated = spelling::finish(rules, &mut self.tokens.arena, from);
        let span = self.span(start, end);
        self.tokens.push(from, span.clone(), kind);
        if rules.cues == Cues::Tag && rules.case == Case::Lower && self.in_capitals(start, end) {
            self.tokens.push_text("<allcaps>", span.clone(), Kind::Tag);
        }
        if elongated {
            self.tokens.push_text("<elong>", span, Kind::Tag);
        }
    }

    /// Makes a token of clean text with nothing but its case and accents changed.
    pub(super) fn plain(&mut self, start: usize, end: usize, kind: Kind) {
        looked(end - start);
        let from = self.tokens.arena.len();
        spelling::fold(self.rules, &self.text[start..end], &mut self.tokens.arena);
        let span = self.span(start, end);
        self.tokens.push(from, span, kind);
    }

    /// An apostrophe that is not inside a word: the beginning of a split ending, or a mark.
    fn apostrophe(&mut self, at: usize) -> usize {
        if self.rules.contractions == Contractions::Split
            && let Some(len) = lone_ending(&self.bytes[at..])
            && self.word_end(at + 1) == at + len
        {
            self.plain(at, at + len, Kind::Word);
            return at + len;
        }
        self.punctuation(at, at + 1);
        at + 1
    }

    fn wide(&mut self, at: usize) -> usize {
        let Some(c) = self.char_at(at) else {
            return self.bytes.len();
        };
        let end = at + c.len_utf8();
        match wide_class(c) {
            Wide::Letter | Wide::Digit => return self.word(at),
            Wide::Emoji => {
                let end = at + cluster(&self.text[at..], c);
                self.emoji(at, end);
                return end;
            }
            Wide::Mark => self.punctuation(at, end),
            Wide::Accent | Wide::Gap => {}
        }
        end
    }

    fn keycap(&mut self, at: usize) -> Option<usize> {
        let wide = self.bytes.get(at + 1).is_some_and(|byte| !byte.is_ascii());
        if !wide || self.rules.emoji == Emoji::Drop {
            return None;
        }
        let end = at + keycap(&self.text[at..])?;
        self.emoji(at, end);
        Some(end)
    }

    fn emoji(&mut self, at: usize, end: usize) {
        if self.rules.emoji == Emoji::Keep {
            let span = self.span(at, end);
            self.tokens.push_text(&self.text[at..end], span, Kind::Emoji);
        }
    }

    pub(super) fn punctuation(&mut self, at: usize, end: usize) {
        if self.rules.punctuation == Punctuation::Keep {
            let span = self.span(at, end);
            self.tokens.push_text(&self.text[at..end], span, Kind::Punctuation);
        }
    }

    /// The bytes of the input that clean text `from..to` was made from. Tokens come in order, so
    /// the search goes on where the last one began.
    pub(super) fn span(&mut self, from: usize, to: usize) -> Range<u32> {
        let (from, to, base) = (position(from), position(to), position(self.bases.input));
        let Some(mut last) = self.origin.get(self.cursor) else {
            return base + from..base + to;
        };
        while let Some(next) = self.origin.get(self.cursor + 1).filter(|next| next.clean <= from) {
            looked(1);
            self.cursor += 1;
            last = next;
        }
        let start = if last.verbatim { last.start + (from - last.clean) } else { last.start };
        let rest = self.origin[self.cursor..].iter().skip(1);
        for next in rest.take_while(|next| next.clean < to) {
            looked(1);
            last = next;
        }
        let end = if last.verbatim { last.start + (to - last.clean) } else { last.end };
        base + start..base + end
    }
}
