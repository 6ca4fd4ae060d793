//! Tokens that are not listed and that a thread met lately, with what became of them, so that a name that
//! many texts share is not made again for each. It is memory alone: the same token gives the same words.

use std::cell::RefCell;

use crate::model::phrase::{Found, Word};

/// Tokens of a thread.
const TOKENS: usize = 256;
/// Bytes of the longest token that is remembered.
const LONGEST: usize = 47;
/// Most words of a token that is remembered.
const WORDS: usize = 3;

thread_local! {
    static MET: RefCell<Met> = RefCell::default();
}

#[derive(Clone, Copy)]
struct Token {
    bytes: [u8; LONGEST],
    /// How many they are; none if there is no token.
    length: u8,
    found: Found,
    /// How many words it became; none where its row was made.
    count: u8,
    words: [Word; WORDS],
    scale: f32,
}

pub(super) enum Outcome<'t> {
    Words(&'t [Word]),
    /// Its row was made, of bytes with a scale.
    Made(&'t [i8], f32),
}

/// The tokens of a thread, all of one model.
#[derive(Default)]
pub(super) struct Met {
    model: u64,
    tokens: Vec<Token>,
    rows: Vec<i8>,
}

/// Calls a function with the tokens that the thread met in a model of this number and this many
/// dimensions.
pub(super) fn with<T>(model: u64, dims: usize, use_of: impl FnOnce(&mut Met) -> T) -> T {
    MET.with_borrow_mut(|met| {
        if met.model != model {
            let none = Token {
                bytes: [0; LONGEST],
                length: 0,
                found: Found::Listed,
                count: 0,
                words: [0; WORDS],
                scale: 0.0,
            };
            met.model = model;
            met.tokens.clear();
            met.tokens.resize(TOKENS, none);
            met.rows.clear();
            met.rows.resize(TOKENS * dims, 0);
        }
        use_of(met)
    })
}

impl Met {
    /// What became of a token of this hash, if it was met.
    pub(super) fn find(&self, token: &str, hash: u64) -> Option<(Found, Outcome<'_>)> {
        let place = hash as usize % TOKENS;
        let met = self.tokens.get(place)?;
        let length = met.length as usize;
        if length == 0 || met.bytes.get(..length)? != token.as_bytes() {
            return None;
        }
        let outcome = match met.count {
            0 => Outcome::Made(self.row(place)?, met.scale),
            count => Outcome::Words(met.words.get(..count as usize)?),
        };
        Some((met.found, outcome))
    }

    /// Remembers what became of a token of this hash in place of another, unless it is too long or
    /// became too many words.
    pub(super) fn remember(&mut self, token: &str, hash: u64, found: Found, outcome: Outcome<'_>) {
        let (place, dims) = (hash as usize % TOKENS, self.rows.len() / TOKENS);
        let row = self.rows.get_mut(place * dims..(place + 1) * dims);
        let (Some(met), Some(row)) = (self.tokens.get_mut(place), row) else { return };
        let Some(room) = met.bytes.get_mut(..token.len()) else { return };
        match outcome {
            Outcome::Words(words) if words.is_empty() || words.len() > WORDS => return,
            Outcome::Words(words) => {
                met.count = words.len() as u8;
                met.words.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
            }
            Outcome::Made(bytes, _) if bytes.len() != dims => return,
            Outcome::Made(bytes, scale) => {
                (met.count, met.scale) = (0, scale);
                row.copy_from_slice(bytes);
            }
        }
        room.copy_from_slice(token.as_bytes());
        (met.length, met.found) = (token.len() as u8, found);
    }

    fn row(&self, place: usize) -> Option<&[i8]> {
        let dims = self.rows.len() / TOKENS;
        self.rows.get(place * dims..(place + 1) * dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_token_of_a_place_is_told_as_it_was_met() {
        let other_place = 1;
        with(u64::MAX, 2, |met| {
            let words = |met: &Met, token, hash| match met.find(token, hash) {
                Some((Found::Part, Outcome::Words(words))) => Some(words.to_vec()),
                _ => None,
            };
            let remember = |met: &mut Met, token: &str, hash, words: &[Word]| {
                met.remember(token, hash, Found::Part, Outcome::Words(words));
            };
            assert_eq!(words(met, "", 0), None);
            remember(met, "one", 0, &[1, 2, 3]);
            remember(met, "two", TOKENS as u64 + 1, &[4]);
            assert_eq!(words(met, "one", 0), Some(vec![1, 2, 3]));
            assert_eq!(words(met, "two", other_place), Some(vec![4]));
            assert_eq!(words(met, "two", 0), None);
            assert_eq!(words(met, "on", 0), None);
            // These words are not remembered; the words remembered before stay.
            remember(met, "many", 0, &[1, 2, 3, 4]);
            remember(met, "none", 0, &[]);
            remember(met, &"l".repeat(LONGEST + 1), 0, &[1]);
            met.remember("short", 0, Found::Pieces, Outcome::Made(&[1], 1.0));
            assert_eq!(words(met, "one", 0), Some(vec![1, 2, 3]));
            let longest = "l".repeat(LONGEST);
            met.remember(&longest, 0, Found::Pieces, Outcome::Made(&[5, -6], 0.5));
            met.remember("last", TOKENS as u64 - 1, Found::Pieces, Outcome::Made(&[7, 8], 2.0));
            assert_eq!(words(met, "one", 0), None);
            let made = |token, hash| match met.find(token, hash) {
                Some((Found::Pieces, Outcome::Made(row, scale))) => Some((row.to_vec(), scale)),
                _ => None,
            };
            assert_eq!(made(&longest, 0), Some((vec![5, -6], 0.5)));
            assert_eq!(made("last", TOKENS as u64 - 1), Some((vec![7, 8], 2.0)));
        });
        with(u64::MAX - 1, 2, |met| assert!(met.find("two", other_place).is_none()));
    }
}
