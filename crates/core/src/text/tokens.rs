//! Tokens: the words of one text, kept in one growing string that is used again for the next
//! text. It knows where a token lies, not what it means.

use std::ops::Range;

use cognate_kernels::simd;
use cognate_kernels::simd::BLOCK;

use super::clean::{Clean, position};
use super::window::Words;

/// Spaces behind a text in the arena, so that it can be gone over by whole blocks, and some bytes
/// can be read from the beginning of every token.
const PADDING: &str = "                                                                ";
const _: () = assert!(PADDING.len() == BLOCK);

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Letters, perhaps with digits and inner apostrophes.
    Word,
    /// Digits only, or what the rules put in their place (`0`, `##`).
    Number,
    /// A web address.
    Url,
    /// A user name kept with its `@`.
    Mention,
    /// A hashtag kept with its `#`.
    Hashtag,
    /// One emoji cluster.
    Emoji,
    /// One mark or symbol.
    Punctuation,
    /// A tag such as `<url>`, written by the rules or found in the text.
    Tag,
}

/// One token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The bytes of the input that it was made from. Spans never go backwards: neither starts nor
    /// ends decrease. They overlap where one piece of input gives several tokens (`½`, tags).
    pub span: Range<u32>,
    /// The token's kind.
    pub kind: Kind,
}

impl Token {
    /// Whether it is a word.
    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }
}

/// The tokens of one text, with room that is kept for the next.
///
/// After a few texts nothing is allocated any more, except for texts with many combining marks
/// on one letter.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The text, lower-cased if the rules say so, and behind it the texts of tokens that are not part
    /// of it as they are.
    pub(super) arena: String,
    /// Bytes of the text, which the arena begins with.
    length: usize,
    /// The text with its capitals.
    written: String,
    /// Where the text of each token begins and ends in the arena.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// What the arena does not tell of a token: for the others their place is their span, and a word of
    /// digits is a number. By place, in order.
    told: Vec<(u32, Token)>,
    pub(super) clean: Clean,
    pub(super) scratch: String,
}

impl Tokens {
    /// Without any token.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the tokens and keeps their room.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.length = 0;
        self.starts.clear();
        self.ends.clear();
        self.told.clear();
    }

    /// Forgets the tokens and begins the arena with a text, padded so that blocks of it can be read.
    pub(super) fn begin(&mut self, text: &str, lower: bool) {
        self.clear();
        self.arena.reserve(text.len() + 2 * BLOCK);
        self.arena.push_str(text);
        self.arena.push_str(PADDING);
        self.length = text.len();
        self.written.clear();
        self.written.push_str(text);
        if lower {
            // By whole blocks, so that no bytes remain.
            let length = text.len().next_multiple_of(BLOCK);
            self.arena[..length].make_ascii_lowercase();
        }
    }

    /// Adds padding behind the texts of tokens that were added to the arena after a text of `length`
    /// bytes.
    pub(super) fn end(&mut self, length: usize) {
        if self.arena.len() > length + BLOCK {
            self.arena.push_str(PADDING);
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The text of the token at `index`.
    ///
    /// # Panics
    ///
    /// Where `index` is not below [`Tokens::len`].
    pub fn text(&self, index: usize) -> &str {
        &self.arena[self.starts[index] as usize..self.ends[index] as usize]
    }

    /// Returns the byte between the token at `index` and the token before it; `None` unless exactly one byte
    /// separates them in the text.
    pub(crate) fn joint(&self, index: usize) -> Option<u8> {
        let end = self.span(index.checked_sub(1)?)?.end as usize;
        let start = self.span(index)?.start as usize;
        // The arena begins with the text.
        let between = self.arena.as_bytes().get(end..start)?;
        if let [byte] = between { Some(*byte) } else { None }
    }

    /// The text that the tokens were cut from, lower-cased if the rules say so.
    pub(crate) fn source(&self) -> &str {
        self.arena.get(..self.length).unwrap_or_default()
    }

    /// How many capitals stand in a part of the text, as it was written.
    pub(crate) fn capitals_in(&self, part: Range<u32>) -> usize {
        let part = self.written.get(part.start as usize..part.end as usize).unwrap_or_default();
        part.chars().filter(|c| c.is_uppercase()).count()
    }

    /// Whether the text has only ASCII characters.
    pub(crate) fn is_ascii(&self) -> bool {
        self.written.is_ascii()
    }

    /// Which of the first 64 tokens have a capital, a bit each.
    pub(crate) fn capitals(&self) -> u64 {
        let spans = self.spans().take(64).enumerate();
        if !self.is_ascii() {
            let has = |span| u64::from(self.capitals_in(span) > 0);
            return spans.fold(0, |found, (place, span)| found | has(span) << place);
        }
        let mut blocks = self.written.as_bytes().chunks(BLOCK).map(simd::capitals);
        // The capitals of a block that are not before the token, and the block's number.
        let (mut capitals, mut block, mut found) = (blocks.next().unwrap_or(0), 0, 0);
        for (place, Range { start, end }) in spans {
            loop {
                let behind = (start as usize).saturating_sub(block * BLOCK);
                capitals &= u64::MAX.checked_shl(behind as u32).unwrap_or(0);
                if capitals != 0 {
                    break;
                }
                let Some(next) = blocks.next() else { return found };
                (capitals, block) = (next, block + 1);
            }
            let first = block * BLOCK + capitals.trailing_zeros() as usize;
            found |= u64::from(first < end as usize) << place;
        }
        found
    }

    /// The bytes of the text that a token was made from.
    pub(crate) fn span(&self, index: usize) -> Option<Range<u32>> {
        let told = self.told.binary_search_by_key(&index, |(place, _)| *place as usize);
        match told.ok().and_then(|at| self.told.get(at)) {
            Some((_, token)) => Some(token.span.clone()),
            None => Some(*self.starts.get(index)?..*self.ends.get(index)?),
        }
    }

    /// Returns the [`Tokens::span`] of each token, in order.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Range<u32>> {
        let mut told = self.told.iter().peekable();
        (0..).zip(self.starts.iter().zip(&self.ends)).map(move |(index, (&start, &end))| match told
            .next_if(|(place, _)| *place == index)
        {
            Some((_, token)) => token.span.clone(),
            None => start..end,
        })
    }

    /// The tokens in order, each with its text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Token)> {
        let mut told = self.told.iter().peekable();
        self.texts().zip(&self.starts).enumerate().map(move |(index, (text, &start))| {
            let token = told.next_if(|(place, _)| *place as usize == index);
            let token = token.map(|(_, token)| token.clone()).unwrap_or_else(|| {
                let number = text.bytes().all(|byte| byte.is_ascii_digit());
                let kind = if number { Kind::Number } else { Kind::Word };
                Token { span: start..start + position(text.len()), kind }
            });
            (text, token)
        })
    }

    /// The texts of the tokens in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.places().1.map(|[start, end]| &self.arena[start..end])
    }

    /// Bytes that hold the texts of all tokens, with some more behind the last, and for each token
    /// where its text begins and ends in them.
    pub(crate) fn places(
        &self,
    ) -> (&[u8], impl ExactSizeIterator<Item = [usize; 2]> + DoubleEndedIterator + Clone) {
        let places = self.starts.iter().zip(&self.ends);
        (self.arena.as_bytes(), places.map(|(&start, &end)| [start as usize, end as usize]))
    }

    /// Adds a token: the bytes of the arena from `from` on.
    pub(super) fn push(&mut self, from: usize, span: Range<u32>, kind: Kind) {
        self.push_range(position(from)..position(self.arena.len()), span, kind);
    }

    /// Makes a token of this part of the arena.
    #[inline]
    pub(super) fn push_range(&mut self, text: Range<u32>, span: Range<u32>, kind: Kind) {
        self.told.push((position(self.starts.len()), Token { span, kind }));
        self.starts.push(text.start);
        self.ends.push(text.end);
    }

    /// Makes tokens of words that stand in the arena as they stand in the text, from `at` on.
    #[inline]
    pub(super) fn extend(&mut self, words: &Words, at: u32) {
        simd::push_places(words.starts, at, &mut self.starts);
        simd::push_places(words.ends, at, &mut self.ends);
    }

    /// Takes out the words behind `at`, if [`Tokens::extend`] added them: it added all words after the
    /// first `settled` tokens.
    pub(super) fn take_back(&mut self, settled: usize, at: u32) {
        let since = self.starts.get(settled..).unwrap_or_default();
        let behind = since.iter().rev().take_while(|start| **start >= at).count();
        self.starts.truncate(self.starts.len() - behind);
        self.ends.truncate(self.starts.len());
    }

    /// A token with a text of its own.
    pub(super) fn push_text(&mut self, text: &str, span: Range<u32>, kind: Kind) {
        let from = self.arena.len();
        self.arena.push_str(text);
        self.push(from, span, kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Normalisation, tokenise};

    #[test]
    fn capitals_of_tokens_are_those_that_were_written() {
        let rules = Normalisation::preset("plain").unwrap();
        let mut tokens = Tokens::new();
        let text =
            "Éa ab aB U.S. #NewYork2020 &Eacute; aé aÉ it's IT’S ".to_owned() + &"Ab c ".repeat(40);
        tokenise(&rules, &text, &mut tokens);
        assert!(tokens.len() > 64);
        for (place, span) in tokens.spans().enumerate() {
            assert_eq!(tokens.span(place), Some(span.clone()));
            let part = &text[span.start as usize..span.end as usize];
            let capitals = part.chars().filter(|c| c.is_uppercase()).count();
            if place < 64 {
                assert_eq!(tokens.capitals() >> place & 1, u64::from(capitals > 0), "{part}");
            }
            assert_eq!(tokens.capitals_in(span), capitals, "{part}");
        }
    }
}
