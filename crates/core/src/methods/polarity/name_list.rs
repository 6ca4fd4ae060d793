//! Which words are names, as a model file tells it: the section `names`, written from a readable list and
//! checked when it is read.
//!
//! A line of the list holds what its words are and the words, in fields that tabs separate; models/names.py
//! has the table. What a word is by its counts (`name`, `maybe`, `rare`, `some`) becomes a byte a row of the
//! vocabulary, and all other lines stay text: some of their words are not listed. What follows for two
//! texts is not known here.

use std::collections::HashMap;

use crate::methods::{Fitted, Unfittable};
use crate::model::{Model, ModelError, Vocabulary, WordId};

/// The section's name.
pub const SECTION: &str = "names";

/// The tensor of what words are: a byte a row.
const WORDS: &str = "words";
/// The tensor of the lines that stay text.
const LINES: &str = "lines";

/// What a word is by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// No name.
    No,
    /// A name.
    Name,
    /// A word that is a name if it is written as a name: apple, may.
    Maybe,
    /// Hardly seen, so that it may be one.
    Rare,
    /// A name at times: storm, watch.
    Some,
}

impl Class {
    /// All, each with its name in the list; its place is its number in the section.
    const ALL: [(Self, &str); 5] = [
        (Self::No, "-"),
        (Self::Name, "name"),
        (Self::Maybe, "maybe"),
        (Self::Rare, "rare"),
        (Self::Some, "some"),
    ];
}

/// What a name may stand for, a bit each.
pub(super) mod kind {
    pub const PERSON: u8 = 1;
    pub const PLACE: u8 = 1 << 1;
    pub const ORGANISATION: u8 = 1 << 2;
    pub const TEAM: u8 = 1 << 3;
    pub const DAY: u8 = 1 << 4;
    pub(super) const NAMES: [&str; 5] = ["person", "place", "organisation", "team", "day"];
}

/// What the lines say of a word, a bit each.
pub(super) mod flag {
    /// No name, whatever its capitals: mr, president, street.
    pub const NONE: u8 = 1;
    /// A common word that is a name, too: zoom, slack.
    pub const ALSO: u8 = 1 << 1;
    /// The word belongs to its group only with a capital or after a word of time: may, march, fall.
    pub const DOUBTFUL: u8 = 1 << 2;
    /// The word says when: in, since, next.
    pub const WHEN: u8 = 1 << 3;
    /// Passed over where the words beside names are compared: the, our, mr.
    pub const ARTICLE: u8 = 1 << 4;
    /// Initials leave it out: bank *of* england.
    pub const JOINER: u8 = 1 << 5;
    /// Of a language that writes every noun with a capital: der, und.
    pub const NOUNS: u8 = 1 << 6;
    pub(super) const NAMES: [&str; 7] =
        ["none", "also", "doubtful", "when", "article", "joiner", "nouns"];
}

const ENDINGS: [&str; 3] = ["ending", "vowel-ending", "form"];

/// What the lines say of a word.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) flags: u8,
    kinds: u8,
    /// The word's group, of which a text can mean only one entry, and the word's entry in it.
    pub(super) group: Option<[u16; 2]>,
    /// Lines by which it names the same as others.
    pub(super) same: Vec<u32>,
    /// Countries that it names, and countries that it lies in.
    pub(super) countries: Vec<u32>,
    pub(super) within: Vec<u32>,
}

impl Known {
    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether it is a country, its people or what lies in it.
    pub(super) fn is_of_a_country(&self) -> bool {
        !self.countries.is_empty() || !self.within.is_empty()
    }
}

/// The parts of a row: class, kinds, code, flags, and the number of what the lines say of it, from 1 on.
const CLASS: u32 = 0b111;
const KINDS: u32 = 3;
const ALL_KINDS: u32 = 0b11111;
const CODE: u32 = 8;
const ALL_CODES: u32 = 0b11;
/// The word may be a name that one text has and another lacks, however it is written.
const CANDIDATE: u32 = 1 << 10;
/// The word may be such a name in a text without capitals.
const UNCASED: u32 = 1 << 11;
/// The word may be a name: it is more than a letter, and has neither a digit nor an apostrophe.
const A_WORD: u32 = 1 << 12;
/// The word ends a name of two words.
const ENDS: u32 = 1 << 13;
const KNOWN: u32 = 14;

/// What a word is, apart from how a text writes it.
pub(super) struct Listed {
    pub(super) class: Class,
    pub(super) kinds: u8,
    pub(super) code: Option<Code>,
    /// Whether it may be a name at all.
    pub(super) a_word: bool,
    /// The number of what the lines say of it.
    pub(super) number: u32,
}

/// What words are, a bit each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bits {
    /// It may be what a text names and another does not: in a text that has capitals, where it has none, and
    /// else.
    pub(super) cased: u64,
    pub(super) uncased: u64,
    /// It ends a name of two words.
    pub(super) ends: u64,
}

/// The list as a model holds it.
#[derive(Debug, Default)]
pub(super) struct List {
    rows: Vec<u32>,
    /// For 64 rows a bit each. They are looked at far more often than rows are, and stay near.
    bits: Vec<Bits>,
    /// The first words of names of two, by the last, which names another place alone: New York.
    firsts: HashMap<Box<str>, Vec<Box<str>>>,
    /// Whether there are words of a language that writes every noun with a capital.
    has_nouns: bool,
    known: Vec<Known>,
    /// For each word of the lines the number of its entry, from 1 on.
    words: HashMap<Box<str>, u32>,
    /// Lines that were taken in.
    lines: u32,
    /// Names of the groups, by number.
    pub(super) groups: Vec<Box<str>>,
    /// Endings behind a name, of its people or of a product (turk-ish, my-sql); those in place of its last vowel
    /// (turkey, turk-ish); and of forms of words, which are no names for being unlisted.
    pub(super) endings: [Vec<Box<str>>; 3],
}

impl List {
    pub(super) fn read(model: &Model) -> Result<Option<Self>, ModelError> {
        let Some(section) = model.section(SECTION) else { return Ok(None) };
        let bytes = |name: &str| {
            let found = section.tensor(name).map(|(_, bytes)| bytes);
            found.ok_or_else(|| section.broken(format!("tensor `{name}`: expected one")))
        };
        let (vocabulary, rows) = (model.vocabulary(), bytes(WORDS)?);
        if rows.len() != vocabulary.len() {
            let (expected, got) = (vocabulary.len(), rows.len());
            return Err(section.broken(format!("expected {expected} words, got {got}")));
        }
        let mut list = Self::default();
        if let Some(row) = rows.iter().position(|byte| class(u32::from(*byte)).is_none()) {
            return Err(section.broken(format!("row {row} is of no class")));
        }
        list.rows.extend(rows.iter().map(|&byte| u32::from(byte)));
        let lines = std::str::from_utf8(bytes(LINES)?)
            .map_err(|_| section.broken("the lines are not UTF-8".to_owned()))?;
        for (number, line) in (1..).zip(lines.lines()) {
            list.see(line)
                .map_err(|problem| section.broken(format!("line {number}: {problem}")))?;
        }
        list.settle(&vocabulary);
        Ok(Some(list))
    }

    /// Takes in a line that is not of counted words.
    fn see(&mut self, line: &str) -> Result<(), String> {
        if self.known.len() + line.len() >= 1 << (u32::BITS - KNOWN) {
            return Err("too many words".to_owned());
        }
        let fields: Vec<&str> = line.split('\t').collect();
        self.lines += 1;
        let number = self.lines;
        let endings = ENDINGS.iter().position(|name| fields.first() == Some(name));
        let flags = flag::NAMES.iter().position(|name| fields.first() == Some(name));
        match (fields.as_slice(), endings, flags) {
            (["same", words], ..) => {
                self.each(words, |known| known.same.push(number));
            }
            (["group", name, members], ..) => {
                let group = self.groups.len() as u16;
                self.groups.push((*name).into());
                for (member, words) in (0..).zip(members.split('|')) {
                    self.each(words, |known| known.group = Some([group, member]));
                }
            }
            (["country", names, within], ..) => {
                self.each(names, |known| known.countries.push(number));
                self.each(within, |known| known.within.push(number));
            }
            (["joined", names], ..) => {
                for name in names.split('|') {
                    let words = name.split_once(' ');
                    let (first, last) = words.ok_or_else(|| format!("`{name}` is no two words"))?;
                    self.firsts.entry(last.into()).or_default().push(first.into());
                }
            }
            (["also", kinds, words], ..) => {
                let kinds = parse_kinds(kinds)?;
                self.each(words, |known| {
                    known.flags |= flag::ALSO;
                    known.kinds |= kinds;
                });
            }
            ([_, endings], Some(which), _) => {
                let endings = endings.split(' ').filter_map(|ending| ending.strip_prefix('-'));
                self.endings[which].extend(endings.map(Box::from));
            }
            ([_, words], _, Some(flag)) => self.each(words, |known| known.flags |= 1 << flag),
            _ => return Err(format!("`{}` is not understood", line.replace('\t', " "))),
        }
        Ok(())
    }

    fn each(&mut self, words: &str, say: impl Fn(&mut Known)) {
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            let next = self.known.len() as u32 + 1;
            let number = *self.words.entry(word.into()).or_insert(next);
            if number == next {
                self.known.push(Known::default());
            }
            self.known.get_mut(number as usize - 1).into_iter().for_each(&say);
        }
    }

    /// Brings what letters and lines say of listed words into their rows.
    fn settle(&mut self, vocabulary: &Vocabulary<'_>) {
        for (word, row) in vocabulary.all_bytes().zip(&mut self.rows) {
            *row |= of_letters(word);
        }
        let is_day = |[group, _]: [u16; 2]| {
            let name = self.groups.get(usize::from(group));
            name.is_some_and(|name| matches!(&**name, "weekday" | "month"))
        };
        self.has_nouns = self.known.iter().any(|known| known.is(flag::NOUNS));
        for last in self.firsts.keys() {
            let row = vocabulary.lookup(last).and_then(|id| self.rows.get_mut(id as usize));
            row.into_iter().for_each(|row| *row |= ENDS);
        }
        for (word, number) in &self.words {
            let Some(known) = self.known.get_mut(*number as usize - 1) else { continue };
            let row = vocabulary.lookup(word).and_then(|id| self.rows.get_mut(id as usize));
            let counted = row.as_deref().map_or(0, |row| kinds_in(*row));
            known.kinds = if known.group.is_some_and(is_day) {
                kind::DAY
            } else if known.is_of_a_country() {
                kind::PLACE
            } else {
                known.kinds | counted
            };
            if let Some(row) = row {
                let group = if known.group.is_some() { CANDIDATE } else { 0 };
                let also = if known.is(flag::ALSO) { UNCASED } else { 0 };
                *row = *row & !(ALL_KINDS << KINDS) | u32::from(known.kinds) << KINDS;
                *row |= number << KNOWN | group | also;
            }
        }
        for (word, row) in vocabulary.all_bytes().zip(&mut self.rows) {
            *row |= match class(*row) {
                Some(Class::Some) => UNCASED,
                Some(Class::No) | None if *row & ALL_CODES << CODE == 0 => 0,
                _ => CANDIDATE,
            };
            // The word before `'s` may be a name.
            if word.ends_with(b"'s") {
                *row |= CANDIDATE;
            }
        }
        // These letters are codes only if they are written as codes.
        for word in ["a", "i"] {
            let id = vocabulary.lookup(word);
            let row = id.and_then(|id| self.rows.get_mut(id as usize));
            row.into_iter().for_each(|row| *row &= !CANDIDATE);
        }
        let bits = |rows: &[u32]| {
            let has = |wanted: u32| {
                let rows = rows.iter().enumerate();
                rows.fold(0, |bits, (at, row)| bits | u64::from(row & wanted != 0) << at)
            };
            Bits { cased: has(CANDIDATE), uncased: has(CANDIDATE | UNCASED), ends: has(ENDS) }
        };
        self.bits = self.rows.chunks(64).map(bits).collect();
    }

    /// What the words of a text are, a bit each; nothing for those that are not listed. No word is a branch.
    pub(super) fn bits(&self, ids: &[WordId]) -> Bits {
        ids.iter().enumerate().fold(Bits::default(), |all, (place, &id)| {
            let own = self.bits.get(id as usize / 64).copied().unwrap_or_default();
            let bit = |own: u64| (own >> (id % 64) & 1) << place;
            Bits {
                cased: all.cased | bit(own.cased),
                uncased: all.uncased | bit(own.uncased),
                ends: all.ends | bit(own.ends),
            }
        })
    }

    /// Whether a listed word is a code where it is the last of its text.
    pub(super) fn is_code(&self, id: WordId) -> bool {
        self.rows.get(id as usize).is_some_and(|row| row & ALL_CODES << CODE != 0)
    }

    /// The first word of a name that a word ends, where the token before is that or its letter: New, of New York
    /// and N. York.
    #[inline]
    pub(super) fn first_of<'t>(
        &self,
        id: Option<WordId>,
        word: &str,
        before: impl FnOnce() -> Option<&'t str>,
    ) -> Option<&str> {
        let row = id.and_then(|id| self.rows.get(id as usize));
        row.filter(|row| *row & ENDS != 0)?;
        let before = before()?;
        let begins =
            |first: &&str| *first == before || before.len() == 1 && first.starts_with(before);
        self.firsts.get(word)?.iter().map(|first| &**first).find(begins)
    }

    /// Whether a text is of a language that writes every noun with a capital: two words tell it, since one may be
    /// of a name (Osama bin Laden).
    pub(super) fn writes_nouns(&self, ids: impl Iterator<Item = Option<WordId>>) -> bool {
        let row = |id| self.rows.get(id as usize).copied().unwrap_or_default();
        let tells = |id: &WordId| self.known(row(*id) >> KNOWN).is(flag::NOUNS);
        let mut told = ids.flatten().filter(tells);
        self.has_nouns && told.next().is_some_and(|one| told.any(|other| other != one))
    }

    /// The class of a listed word.
    pub(super) fn class(&self, id: WordId) -> Class {
        self.rows.get(id as usize).and_then(|row| class(*row)).unwrap_or(Class::No)
    }

    /// What the lines say of a word, by its number; nothing for 0.
    #[inline]
    pub(super) fn known(&self, number: u32) -> &Known {
        const NOTHING: &Known = &Known {
            flags: 0,
            kinds: 0,
            group: None,
            same: Vec::new(),
            countries: Vec::new(),
            within: Vec::new(),
        };
        let known = number.checked_sub(1).and_then(|number| self.known.get(number as usize));
        known.unwrap_or(NOTHING)
    }

    /// What a word is.
    #[inline]
    pub(super) fn word(&self, word: &str, id: Option<WordId>) -> Listed {
        let row = id.and_then(|id| self.rows.get(id as usize).copied());
        let row = row.unwrap_or_else(|| {
            of_letters(word.as_bytes()) | self.words.get(word).map_or(0, |number| number << KNOWN)
        });
        let (number, code) = (row >> KNOWN, (row >> CODE & ALL_CODES).checked_sub(1));
        Listed {
            class: class(row).unwrap_or(Class::No),
            kinds: if number > 0 { self.known(number).kinds } else { kinds_in(row) },
            code: code.and_then(|code| Code::ALL.get(code as usize).copied()),
            a_word: row & A_WORD != 0,
            number,
        }
    }
}

/// Returns the flags that a word's letters imply, as a row of the list has them.
fn of_letters(word: &[u8]) -> u32 {
    // Most words, known at once.
    if word.len() > 4 && word.iter().all(u8::is_ascii_lowercase) {
        return A_WORD;
    }
    let word = std::str::from_utf8(word).unwrap_or_default();
    let code = Code::new(word).and_then(|code| Code::ALL.iter().position(|known| *known == code));
    let letters = word.chars().any(char::is_alphabetic) && word.chars().nth(1).is_some();
    let a_word = letters && !word.contains(|c: char| c.is_numeric() || c == '\'');
    code.map_or(0, |code| (code as u32 + 1) << CODE) | if a_word { A_WORD } else { 0 }
}

fn kinds_in(row: u32) -> u8 {
    (row >> KINDS & ALL_KINDS) as u8
}

fn class(row: u32) -> Option<Class> {
    Class::ALL.get((row & CLASS) as usize).map(|(class, _)| *class)
}

/// The sort of a token that is a code: two of one sort can be exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Letter,
    Roman,
    /// Letters, and digits among them.
    Digits,
}

impl Code {
    const ALL: [Self; 3] = [Self::Letter, Self::Roman, Self::Digits];

    fn new(word: &str) -> Option<Self> {
        // A number and a letter name a room, such as 4b.
        let [digits @ .., b'a'..=b'h'] = word.as_bytes() else { return Self::begun(word) };
        let is_room = matches!(digits.len(), 1..=3) && digits.iter().all(u8::is_ascii_digit);
        if is_room { Some(Self::Digits) } else { Self::begun(word) }
    }

    fn begun(word: &str) -> Option<Self> {
        const ROMAN: [&str; 10] = ["i", "ii", "iii", "iv", "vi", "vii", "viii", "ix", "xi", "xii"];
        let first = word.chars().next().filter(|first| first.is_alphabetic())?;
        if ROMAN.contains(&word) {
            Some(Self::Roman)
        } else if first.len_utf8() == word.len() {
            Some(Self::Letter)
        } else {
            word.chars().any(char::is_numeric).then_some(Self::Digits)
        }
    }
}

fn parse_kinds(names: &str) -> Result<u8, String> {
    let mut kinds = 0;
    for name in names.split(' ').filter(|name| *name != "-") {
        let known = kind::NAMES.iter().position(|known| *known == name);
        kinds |= 1 << known.ok_or_else(|| format!("`{name}` is no kind of name"))?;
    }
    Ok(kinds)
}

/// Makes the section of a model from lines of a list. Lines without a counted word are added to those that
/// the model has: aliases of one's own need not repeat the whole list. Counted words that the model does
/// not list are left out.
///
/// # Errors
///
/// If a line cannot be understood, or neither the list nor the model knows a counted word.
pub fn fit<L: AsRef<str>>(
    model: &Model,
    lines: impl IntoIterator<Item = L>,
) -> Result<Fitted, Unfittable> {
    let unfittable = |problem: String| Unfittable { section: SECTION, problem };
    let vocabulary = model.vocabulary();
    let (mut rows, mut checked) = (vec![0; vocabulary.len()], List::default());
    let mut own = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let line = line.as_ref();
        let wrong = |what: String| unfittable(format!("line {number}: {what}"));
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let counted = Class::ALL.iter().position(|(_, name)| fields.first() == Some(name));
        match (counted, fields.as_slice()) {
            (Some(class), [_, kinds, words]) if class > 0 => {
                let kinds = parse_kinds(kinds).map_err(wrong)?;
                let listed = words.split(' ').filter_map(|word| vocabulary.lookup(word));
                listed.for_each(|id| rows[id as usize] = class as u8 | kinds << KINDS);
            }
            _ => {
                checked.see(line).map_err(wrong)?;
                own.push(line.to_owned());
            }
        }
    }
    let mut kept = Vec::new();
    if rows.iter().all(|row| *row == 0) {
        let section = model.section(SECTION);
        let tensor = |name: &str| section.as_ref()?.tensor(name).map(|(_, bytes)| bytes);
        let (Some(words), Some(lines)) = (tensor(WORDS), tensor(LINES)) else {
            return Err(unfittable(
                "neither the list nor the model knows a counted name".to_owned(),
            ));
        };
        rows = words.to_vec();
        kept.extend(String::from_utf8_lossy(lines).lines().map(str::to_owned));
    }
    own.retain(|line| !kept.contains(line));
    kept.extend(own);
    let lines = kept.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
    Ok(Fitted {
        section: SECTION,
        settings: "{}".to_owned(),
        tensors: Vec::new(),
        bytes: vec![(WORDS, rows), (LINES, lines)],
    })
}
