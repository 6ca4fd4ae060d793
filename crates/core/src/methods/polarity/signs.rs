//! The words of one text that can make it the opposite of another: negators, words with opposites,
//! numbers. What they mean beside another text is not known here.

use crate::methods::polarity::name_text::TextNames;
use crate::methods::polarity::table::{Table, flag};
use crate::model::{Phrase, WordId};

/// Numbers are counted in millionths, so that decimals of prices and minutes of hours stay apart, and
/// equal numbers are equal.
const ONE: u64 = 1_000_000;
/// The hour that `pm` begins with.
const NOON: u64 = 12 * ONE;

/// Signs of a text, each with the token that carries it; memory that is used again for the next text.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(super) negators: Vec<u32>,
    pub(super) opposable: Vec<(u32, WordId)>,
    /// Words that are not listed, and the listed words that they turn around.
    pub(super) turned: Vec<(u32, WordId)>,
    /// Numbers, in millionths.
    pub(super) numbers: Vec<(u32, u64)>,
    pub(super) names: TextNames,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Other,
    Negator,
    /// A number in digits, whole.
    Digits,
    /// A number in digits that has decimals or minutes.
    Fraction,
    /// A number word such as twenty, to which one below ten is added.
    Tens,
    Number,
}

impl Before {
    fn is_number(self) -> bool {
        !matches!(self, Self::Other | Self::Negator)
    }
}

impl Signs {
    pub(super) fn read(&mut self, table: &Table, phrase: &Phrase<'_>) {
        self.names.clear();
        self.negators.clear();
        self.opposable.clear();
        self.turned.clear();
        self.numbers.clear();
        let mut before = Before::Other;
        for (token, id) in (0..).zip(phrase.token_ids()) {
            let (word, flags) = match id {
                Some(id) => (Some(id), table.flags(id)),
                None => unlisted(table, phrase, token),
            };
            before = match flags {
                0 => Before::Other,
                _ => self.see(table, phrase, (token, word), flags, before),
            };
        }
    }

    /// Whether an odd number of its words negate: two cancel.
    pub(super) fn negates(&self) -> bool {
        self.negators.len() % 2 == 1
    }

    /// Whether `word` is among the text's words that have opposites.
    pub(super) fn has_opposable(&self, word: WordId) -> bool {
        self.opposable.iter().any(|&(_, own)| own == word)
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.iter().any(|&(_, own)| own == number)
    }

    /// Takes in a token that has flags, and returns its effect on the next token.
    fn see(
        &mut self,
        table: &Table,
        phrase: &Phrase<'_>,
        (token, word): (u32, Option<WordId>),
        flags: u16,
        before: Before,
    ) -> Before {
        let has = |flag: u16| flags & flag != 0;
        if has(flag::DIGITS) {
            return self.see_digits(table, phrase, token, before);
        }
        if has(flag::LIFTS) && before == Before::Negator {
            self.negators.pop();
        }
        // A word that negates counts as that alone: as an opposite, too, it would cancel itself.
        let opposable = has(flag::OPPOSABLE) && !has(flag::NEGATES);
        if let Some(word) = word.filter(|_| opposable) {
            self.opposable.push((token, word));
        }
        if has(flag::UNLISTED) {
            let text = phrase.tokens().text(token as usize);
            let turned = table.turned(text, phrase.model().vocabulary());
            self.turned.extend(turned.map(|word| (token, word)));
        }
        let joined = || phrase.tokens().joint(token as usize) == Some(b'-');
        if has(flag::NEGATES)
            || (has(flag::CONTINUES) && self.negators.is_empty())
            || (has(flag::NEGATES_JOINED) && joined())
        {
            self.negators.push(token);
            return Before::Negator;
        }
        if has(flag::AFTERNOON) && before.is_number() {
            self.last_number(|hour| if hour < NOON { hour + NOON } else { hour });
            return Before::Other;
        }
        if !has(flag::COUNTS | flag::MULTIPLIES) {
            return Before::Other;
        }
        let Some(number) = word.and_then(|word| table.number(word)) else { return Before::Other };
        let value = u64::from(number).saturating_mul(ONE);
        if has(flag::MULTIPLIES) && before.is_number() {
            self.last_number(|last| last.saturating_mul(u64::from(number)));
            return Before::Number;
        }
        if !has(flag::COUNTS) {
            return Before::Other;
        }
        if before == Before::Tens && number < 10 {
            self.last_number(|last| last.saturating_add(value));
            return Before::Number;
        }
        self.numbers.push((token, value));
        if (20..100).contains(&number) { Before::Tens } else { Before::Number }
    }

    /// Takes in a token that begins with digits: a number, or a part of one that a mark divides, as in
    /// `5,000`, `3.89` and `14:30`.
    fn see_digits(
        &mut self,
        table: &Table,
        phrase: &Phrase<'_>,
        token: u32,
        before: Before,
    ) -> Before {
        let text = phrase.tokens().text(token as usize);
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, unit) = text.split_at(length);
        let read = |value: u64, digit: u8| {
            value.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')))
        };
        let value = digits.bytes().fold(0, read);
        let divided = (before == Before::Digits).then(|| phrase.tokens().joint(token as usize));
        let now = match divided.flatten() {
            Some(b',') if length == 3 => {
                let thousands = |last: u64| last.saturating_mul(1000);
                self.last_number(|last| thousands(last).saturating_add(value.saturating_mul(ONE)));
                Before::Digits
            }
            Some(b'.') => {
                let decimals = digits.bytes().chain([b'0'; 6]).take(6).fold(0, read);
                self.last_number(|last| last.saturating_add(decimals));
                Before::Fraction
            }
            Some(b':') if length == 2 && value < 60 => {
                self.last_number(|last| last.saturating_add(value.saturating_mul(ONE) / 60));
                Before::Fraction
            }
            _ => {
                self.numbers.push((token, value.saturating_mul(ONE)));
                Before::Digits
            }
        };
        if unit.is_empty() {
            return now;
        }
        let Some(unit) = phrase.model().vocabulary().lookup(unit) else { return now };
        let (flags, number) = (table.flags(unit), table.number(unit));
        match number.filter(|_| flags & flag::MULTIPLIES != 0) {
            Some(number) => {
                self.last_number(|last| last.saturating_mul(u64::from(number)));
                Before::Number
            }
            None if flags & flag::AFTERNOON != 0 => {
                self.last_number(|hour| if hour < NOON { hour + NOON } else { hour });
                Before::Other
            }
            None => now,
        }
    }

    fn last_number(&mut self, change: impl FnOnce(u64) -> u64) {
        if let Some((_, last)) = self.numbers.last_mut() {
            *last = change(*last);
        }
    }
}

/// The word that stands for a token which is not listed, and its flags.
fn unlisted(table: &Table, phrase: &Phrase<'_>, token: u32) -> (Option<WordId>, u16) {
    let stem = phrase.stem_of(token);
    let letters = table.flags_of_letters(phrase.tokens().text(token as usize));
    (stem, stem.map_or(0, |stem| table.flags(stem)) | letters | flag::UNLISTED)
}
