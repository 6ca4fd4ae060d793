//! Short strings with their numbers, made when a model is opened for words and pieces that are few
//! enough: a look-up costs one short hash and one line of memory, which holds the string itself.
//!
//! A filter says of nearly every string that is not there that it is not, without asking for its line.

use std::hint::select_unpredictable;

use cognate_kernels::simd;

/// The number of no string.
pub(crate) const EMPTY: u32 = u32::MAX;

/// Maximum number of strings in lines: placing a hundred times as many would take longer than opening
/// a model.
const MAX: usize = 1 << 17;

/// Maximum number of lines between a string's own line and the line that stores it. Few words are stored
/// ten lines away; the limit bounds the search among strings that were chosen to share a line.
const FURTHEST: usize = 64;

/// Bytes of the longest string that a line holds.
pub(crate) const LONGEST: usize = 15;

/// Strings of a line.
const WIDTH: usize = 3;

/// Bytes that are compared at once.
pub(super) const WIDE: usize = 16;

/// For each length the mask of the bytes of a string of that length.
pub(super) const MASKS: [u128; WIDE + 1] = {
    let mut masks = [u128::MAX; WIDE + 1];
    let mut length = 0;
    while length < WIDE {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// A string of at most [`LONGEST`] bytes and its length, so that no two strings are the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Key(u128);

impl Key {
    /// The key of the string in a range of `text`; the key of no string if it is too long or empty.
    #[inline]
    pub(crate) fn at(text: &[u8], [start, end]: [usize; 2]) -> Self {
        let length = end.wrapping_sub(start);
        let chunk = text.get(start..).and_then(|rest| rest.first_chunk());
        match (chunk, MASKS[..=LONGEST].get(length)) {
            (Some(chunk), Some(mask)) => {
                Self(u128::from_le_bytes(*chunk) & mask | (length as u128) << (8 * LONGEST))
            }
            _ => Self::new(text.get(start..end).unwrap_or_default()),
        }
    }

    #[inline]
    pub(crate) fn new(string: &[u8]) -> Self {
        let length = string.len();
        // The two loads together hold every byte; where they overlap they agree.
        let bytes = match (string.first_chunk::<8>(), string.last_chunk::<8>()) {
            _ if length > LONGEST => return Self::default(),
            (Some(first), Some(last)) => {
                let [first, last] =
                    [first, last].map(|bytes| u128::from(u64::from_le_bytes(*bytes)));
                first | last << (8 * (length - 8))
            }
            _ => match (string.first_chunk::<4>(), string.last_chunk::<4>()) {
                (Some(first), Some(last)) => {
                    let [first, last] =
                        [first, last].map(|bytes| u128::from(u32::from_le_bytes(*bytes)));
                    first | last << (8 * (length - 4))
                }
                _ => string.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u128::from(byte)),
            },
        };
        Self(bytes | (length as u128) << (8 * LONGEST))
    }

    /// The key of two bytes and then this string, which is of at most [`LONGEST`] - 2 bytes.
    #[inline]
    pub(crate) fn behind(self, mark: [u8; 2]) -> Self {
        let length = (self.0 >> (8 * LONGEST)) + mark.len() as u128;
        let string = self.0 & MASKS[LONGEST - mark.len()];
        Self(string << 16 | u128::from(u16::from_le_bytes(mark)) | length << (8 * LONGEST))
    }

    /// One wide multiplication: no branch on the length, which a processor cannot guess.
    #[inline]
    fn hash(self) -> u64 {
        let low = (self.0 as u64 ^ 0x243F_6A88_85A3_08D3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let high = (self.0 >> 64) as u64 ^ 0x1319_8A2E_0370_7345;
        let wide = u128::from(low ^ high) * 0xD6E8_FEB8_6659_FD93;
        wide as u64 ^ (wide >> 64) as u64
    }
}

/// Some strings, each found by its own key alone.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    keys: [Key; WIDTH],
    numbers: [u32; WIDTH],
    /// Whether a string that belongs here stands in a later line, because there was no room.
    more: u32,
}

impl Line {
    const FREE: Self = Self { keys: [Key(0); WIDTH], numbers: [EMPTY; WIDTH], more: 0 };

    /// The number of a string, or [`EMPTY`]; all three are compared, and none is guessed.
    #[inline]
    fn find(&self, key: Key) -> u32 {
        let [a, b, c] = self.keys.map(|other| other == key);
        let [first, second, third] = self.numbers;
        let found = select_unpredictable(c, third, EMPTY);
        select_unpredictable(a, first, select_unpredictable(b, second, found))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Lines {
    lines: Box<[Line]>,
    /// A bit for every string, of at least sixteen a string.
    filter: Box<[u64]>,
}

#[derive(Debug, Default)]
pub(crate) struct Work(Vec<(Key, u32)>);

impl Lines {
    /// Stores strings, the most frequent first, so that frequent strings get their own lines. `None` if there
    /// are too many, or if a string would be stored too far from its own line.
    pub(crate) fn new<'a>(strings: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<Self> {
        if strings.len() > MAX {
            return None;
        }
        let lines = (strings.len() / 2).next_power_of_two();
        let bits = strings.len().next_power_of_two().max(4) * 16;
        let mut made = Self {
            lines: vec![Line::FREE; lines].into_boxed_slice(),
            filter: vec![0; bits / u64::BITS as usize].into_boxed_slice(),
        };
        for (number, string) in (0..).zip(strings) {
            made.put(Key::new(string), number)?;
        }
        Some(made)
    }

    /// `None` if there is no room near the string's own line.
    fn put(&mut self, key: Key, number: u32) -> Option<()> {
        if key == Key::default() {
            return Some(());
        }
        let hash = key.hash();
        let (word, bit) = self.bit(hash);
        self.filter[word] |= bit;
        let mut at = self.home(hash);
        for _ in 0..=FURTHEST {
            let line = &mut self.lines[at];
            if let Some(free) = line.numbers.iter().position(|&number| number == EMPTY) {
                (line.keys[free], line.numbers[free]) = (key, number);
                return Some(());
            }
            line.more = 1;
            at = (at + 1) & (self.lines.len() - 1);
        }
        None
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.lines.len() - 1)
    }

    #[inline]
    fn bit(&self, hash: u64) -> (usize, u64) {
        ((hash >> 6) as usize & (self.filter.len() - 1), 1 << (hash % 64))
    }

    /// The number of a string that is likely not there.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let hash = key.hash();
        let (word, bit) = self.bit(hash);
        if self.filter.get(word)? & bit == 0 {
            return None;
        }
        let home = self.home(hash);
        let found = self.lines.get(home)?.find(key);
        if found != EMPTY { Some(found) } else { self.find_behind(key, home) }
    }

    /// The number of a string that did not fit into its own line and stands in one of the lines behind it.
    #[cold]
    fn find_behind(&self, key: Key, home: usize) -> Option<u32> {
        let mut at = home;
        for _ in 0..FURTHEST {
            if self.lines.get(at)?.more == 0 {
                return None;
            }
            at = (at + 1) & (self.lines.len() - 1);
            let found = self.lines.get(at)?.find(key);
            if found != EMPTY {
                return Some(found);
            }
        }
        None
    }

    /// Notes the keys of the strings at these places of `text` and asks for their lines, which come near
    /// while something else is done.
    pub(crate) fn ask(
        &self,
        text: &[u8],
        places: impl Iterator<Item = [usize; 2]>,
        work: &mut Work,
    ) {
        work.0.clear();
        work.0.extend(places.map(|place| {
            let key = Key::at(text, place);
            let home = self.home(key.hash());
            simd::prefetch(self.lines.get(home..=home).unwrap_or_default());
            (key, home as u32)
        }));
    }

    /// Appends the number of each of the strings that were asked for last, or [`EMPTY`]. One that is too
    /// long for a line is asked of `long`; `seen` is told each number.
    pub(crate) fn find_all(
        &self,
        text: &[u8],
        places: impl Iterator<Item = [usize; 2]>,
        work: &Work,
        found: &mut Vec<u32>,
        long: impl Fn(&[u8]) -> Option<u32>,
        seen: impl Fn(u32),
    ) {
        found.extend(work.0.iter().zip(places).map(|(&(key, home), [start, end])| {
            let line = self.lines.get(home as usize).unwrap_or(&Line::FREE);
            let mut number = line.find(key);
            if number == EMPTY && (line.more != 0 || end - start > LONGEST) {
                let string = text.get(start..end).unwrap_or_default();
                let other = match string.len() > LONGEST {
                    true => long(string),
                    false => self.find_behind(key, home as usize),
                };
                number = other.unwrap_or(EMPTY);
            }
            if number != EMPTY {
                seen(number);
            }
            number
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_that_were_chosen_to_belong_in_the_same_line_have_no_lines() {
        // 400 of these strings would have 256 lines, as would 300.
        let home = |string: &String| Key::new(string.as_bytes()).hash() >> 32 & 255;
        let numbers = || (0..).map(|n: u32| n.to_string());
        let first: Vec<String> = numbers().filter(|string| home(string) == 0).take(400).collect();
        assert!(Lines::new(first.iter().map(String::as_bytes)).is_none());
        // The first line, and the lines that are near enough to it, hold this many.
        let held = WIDTH * (FURTHEST + 1);
        let mut strings = first[..held].to_vec();
        strings.extend(numbers().filter(|string| home(string) >= 128).take(300 - held));
        let lines = Lines::new(strings.iter().map(String::as_bytes)).unwrap();
        for (number, string) in strings.iter().enumerate() {
            assert_eq!(lines.find(Key::new(string.as_bytes())), Some(number as u32));
        }
        assert_eq!(lines.find(Key::new(first[held].as_bytes())), None);
    }

    #[test]
    fn too_many_strings_have_no_lines() {
        let words: Vec<String> = (0..=MAX).map(|n| n.to_string()).collect();
        let lines = |most: usize| Lines::new(words[..most].iter().map(String::as_bytes));
        assert!(lines(MAX).is_some() && lines(MAX + 1).is_none());
    }

    proptest! {
        #[test]
        fn every_string_is_found_and_no_other(
            strings in prop::collection::hash_set("[a-c\0]{0,17}", 1..300),
            others in prop::collection::vec("[a-c\0]{0,17}", 50),
        ) {
            let strings: Vec<String> = strings.into_iter().collect();
            let lines = Lines::new(strings.iter().map(String::as_bytes)).unwrap();
            let number = |wanted: &String| {
                strings.iter().position(|string| string == wanted).map(|at| at as u32)
            };
            let (mut work, mut found) = (Work::default(), Vec::new());
            for behind in ["", "aaaaaaaaaaaaaaaa"] {
                for string in strings.iter().chain(&others) {
                    let (text, place) = (format!("b{string}{behind}"), [1, 1 + string.len()]);
                    let expected = number(string).filter(|_| (1..=LONGEST).contains(&string.len()));
                    prop_assert_eq!(lines.find(Key::at(text.as_bytes(), place)), expected);
                    prop_assert_eq!(lines.find(Key::new(string.as_bytes())), expected);
                    found.clear();
                    let long = |_: &[u8]| Some(7);
                    let places = [place].into_iter();
                    lines.ask(text.as_bytes(), places.clone(), &mut work);
                    lines.find_all(text.as_bytes(), places, &work, &mut found, long, |_| {});
                    let expected = if string.len() > LONGEST { Some(7) } else { expected };
                    prop_assert_eq!(found[0], expected.unwrap_or(EMPTY));
                }
            }
        }

        #[test]
        fn a_mark_goes_before_a_key(string in "[a-z]{0,13}") {
            let marked = format!("##{string}");
            prop_assert_eq!(Key::new(string.as_bytes()).behind(*b"##"), Key::new(marked.as_bytes()));
        }
    }
}
