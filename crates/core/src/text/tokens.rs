//! Tokens: the words of one text, kept in one growing string that is used again for the next
//! text. It knows where a token lies, not what it means.

use std::ops::Range;

use cognate_kernels::simd::BLOCK;

use super::clean::Clean;
use super::window::Words;

/// Spaces behind a text in the arena, so that it can be gone over by whole blocks, and some bytes
/// can be read from the beginning of every token.
const PADDING: &str = "                                                                ";
const _: () = assert!(PADDING.len() == BLOCK);

/// What a token was in the text.
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
    /// What it was.
    pub kind: Kind,
    text: Range<u32>,
}

/// The tokens of one text, with room that is kept for the next.
///
/// After a few texts nothing is allocated any more, except for texts with many combining marks
/// on one letter.
#[derive(Debug, Default)]
pub struct Tokens {
    pub(super) arena: String,
    tokens: Vec<Token>,
    pub(super) clean: Clean,
    pub(super) scratch: String,
}

impl Tokens {
    /// No tokens, and no room yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the tokens and keeps their room.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.tokens.clear();
    }

    /// Forgets the tokens and begins the arena with a text, padded so that blocks of it can be read.
    pub(super) fn begin(&mut self, text: &str) {
        self.clear();
        self.arena.reserve(text.len() + 2 * BLOCK);
        self.arena.push_str(text);
        self.arena.push_str(PADDING);
    }

    /// Makes the padded text of `length` bytes that the arena begins with lower case.
    pub(super) fn lower(&mut self, length: usize) {
        // By whole blocks, which leave nothing to be done byte by byte.
        if let Some(text) = self.arena.get_mut(..length.next_multiple_of(BLOCK)) {
            text.make_ascii_lowercase();
        }
    }

    /// Pads what was written behind a text of `length` bytes.
    pub(super) fn end(&mut self, length: usize) {
        if self.arena.len() > length + BLOCK {
            self.arena.push_str(PADDING);
        }
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The text of the token at `index`.
    ///
    /// # Panics
    ///
    /// Where `index` is not below [`Tokens::len`].
    pub fn text(&self, index: usize) -> &str {
        self.text_of(&self.tokens[index])
    }

    /// The tokens in order, each with its text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Token)> + DoubleEndedIterator {
        self.tokens.iter().map(|token| (self.text_of(token), token))
    }

    /// The texts of the tokens in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.tokens.iter().map(|token| self.text_of(token))
    }

    /// Bytes that hold the texts of all tokens, with some more behind the last, and for each token
    /// where its text begins and ends in them.
    pub(crate) fn places(&self) -> (&[u8], impl ExactSizeIterator<Item = [usize; 2]> + Clone) {
        let place = |token: &Token| [token.text.start as usize, token.text.end as usize];
        (self.arena.as_bytes(), self.tokens.iter().map(place))
    }

    fn text_of(&self, token: &Token) -> &str {
        &self.arena[token.text.start as usize..token.text.end as usize]
    }

    /// Makes a token of what the arena holds from `from` on.
    pub(super) fn push(&mut self, from: usize, span: Range<u32>, kind: Kind) {
        self.push_range(position(from)..position(self.arena.len()), span, kind);
    }

    /// Makes a token of this part of the arena.
    #[inline]
    pub(super) fn push_range(&mut self, text: Range<u32>, span: Range<u32>, kind: Kind) {
        self.tokens.push(Token { span, kind, text });
    }

    /// Makes tokens of words that stand in the arena as they stand in the text, from `at` on.
    #[inline]
    pub(super) fn extend(&mut self, words: &mut Words, at: u32) {
        // By number: room is made once, and none is looked for with every token.
        self.tokens.extend((0..words.len()).map(|_| {
            let (start, end, digits) = words.step();
            let place = at.wrapping_add(start)..at.wrapping_add(end);
            let kind = if digits { Kind::Number } else { Kind::Word };
            Token { span: place.clone(), kind, text: place }
        }));
    }

    /// A token with a text of its own.
    pub(super) fn push_text(&mut self, text: &str, span: Range<u32>, kind: Kind) {
        let from = self.arena.len();
        self.arena.push_str(text);
        self.push(from, span, kind);
    }
}

/// A byte position as it is stored. `tokenise` cuts its input so that every position fits.
pub(super) fn position(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
