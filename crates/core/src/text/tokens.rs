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
    /// Its kind.
    pub kind: Kind,
}

impl Token {
    /// Whether it is a word.
    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    /// Whether it is punctuation.
    pub fn is_punctuation(&self) -> bool {
        self.kind == Kind::Punctuation
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
    ascii: bool,
    /// The bytes of it that are capitals of ASCII, a bit each.
    capitals: Vec<u64>,
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
        (self.length, self.ascii) = (text.len(), text.is_ascii());
        self.capitals.clear();
        self.capitals.extend(text.as_bytes().chunks(BLOCK).map(capitals));
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

    /// The byte between the token at `index` and the one before, if nothing else parts them in the text.
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
    pub(crate) fn capitals_in(&self, part: &Range<u32>) -> usize {
        let (from, to) = (part.start as usize, part.end as usize);
        let block = |at: usize| self.capitals.get(at).copied().unwrap_or(0);
        let of_block = |at: usize| {
            let (first, shift) = (at / BLOCK, at % BLOCK);
            let bits = block(first) >> shift | (block(first + 1) << 1) << (BLOCK - 1 - shift);
            let behind = BLOCK.saturating_sub(to.saturating_sub(at)) as u32;
            (bits & u64::MAX.checked_shr(behind).unwrap_or(0)).count_ones() as usize
        };
        if self.ascii && to <= from + BLOCK {
            return of_block(from);
        }
        let source = self.source().get(from..to).unwrap_or_default();
        let wide = source.chars().filter(|c| !c.is_ascii() && c.is_uppercase());
        (from..to).step_by(BLOCK).map(of_block).sum::<usize>() + wide.count()
    }

    /// The bytes of the text that a token was made from.
    pub(crate) fn span(&self, index: usize) -> Option<Range<u32>> {
        let told = self.told.binary_search_by_key(&index, |(place, _)| *place as usize);
        match told.ok().and_then(|at| self.told.get(at)) {
            Some((_, token)) => Some(token.span.clone()),
            None => Some(*self.starts.get(index)?..*self.ends.get(index)?),
        }
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

    /// Takes out the words behind `at` that were added by [`Tokens::extend`], as all were after the first
    /// `settled` tokens.
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

/// The capitals among the bytes of a block, a bit each; found eight at a time, as most texts are.
fn capitals(block: &[u8]) -> u64 {
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let from = |byte: u8| u64::from_ne_bytes([0x80 - byte; 8]);
    let eight = |(at, bytes): (usize, &[u8])| {
        let mut eight = [0; 8];
        eight.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let (word, low) = (u64::from_le_bytes(eight), u64::from_le_bytes(eight) & !HIGH);
        let found = ((low + from(b'A')) ^ (low + from(b'Z' + 1))) & HIGH & !word;
        // The highest bits of all bytes, gathered in one.
        ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at)
    };
    block.chunks(8).enumerate().map(eight).fold(0, |bits, eight| bits | eight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_of_a_part_are_counted_as_they_were_written() {
        let mut tokens = Tokens::new();
        let ascii: String = ('\0'..='\x7F').collect();
        let text = "Éa".to_owned() + &ascii + &"aB".repeat(40) + "ÀÖ C";
        tokens.begin(&text, true);
        for (from, _) in text.char_indices() {
            for (to, _) in text.char_indices().filter(|(to, _)| *to >= from) {
                let expected = text[from..to].chars().filter(|c| c.is_uppercase()).count();
                let part = from as u32..to as u32;
                assert_eq!(tokens.capitals_in(&part), expected, "{part:?}");
            }
        }
    }
}
