//! What words do to the sense of a text, as a model file tells it: the section `polarity`, written from a
//! readable list and checked when it is read.
//!
//! The list has a line a word: the word, what it does, and where that needs one another word or a number,
//! separated by tabs. `-n't` stands for an ending and `un-` for a beginning. The section holds rows of the
//! vocabulary in place of words, so that no text is searched for when a pair is scored. What follows of
//! these words for two texts is not known here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::methods::{Fitted, Unfittable};
use crate::model::{Model, ModelError, Vocabulary, WordId};

/// The section's name.
pub const SECTION: &str = "polarity";

/// The tensor of words: a row of the vocabulary, what the word does, a number.
const WORDS: &str = "words";
/// The tensor of opposites: two rows of the vocabulary.
const OPPOSITES: &str = "opposites";
/// Whole numbers up to this are kept exactly in the section, whose tensors hold 32-bit floats.
const EXACT: u32 = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// It negates: not, never, without, refuses.
    Negates,
    /// It negates the word that it is joined to by a hyphen: `sugar-free`.
    NegatesJoined,
    /// It goes on with a negation and makes one where there is none: nor.
    Continues,
    /// It takes back a negation right before it: not only.
    Lifts,
    /// What stands on both sides of it may be exchanged: and.
    Joins,
    Counts,
    /// It is a number, and multiplies a number right before it: million.
    Multiplies,
    /// It multiplies a number right before it: km.
    Scales,
    /// It puts a number right before it into the afternoon: pm.
    Afternoon,
}

impl Does {
    /// All kinds, each with its name in the list; the index of a kind is its number in the section.
    const ALL: [(Self, &str); 9] = [
        (Self::Negates, "negates"),
        (Self::NegatesJoined, "negates-joined"),
        (Self::Continues, "continues"),
        (Self::Lifts, "lifts"),
        (Self::Joins, "joins"),
        (Self::Counts, "counts"),
        (Self::Multiplies, "multiplies"),
        (Self::Scales, "scales"),
        (Self::Afternoon, "afternoon"),
    ];

    fn has_number(self) -> bool {
        matches!(self, Self::Counts | Self::Multiplies | Self::Scales)
    }
}

/// The settings of the section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The weight of a negation in one text alone.
    pub negation: f64,
    /// The weight of a word exchanged for its opposite.
    pub antonym: f64,
    /// The weight of differing numbers.
    pub number: f64,
    /// The weight of exchanged roles.
    pub roles: f64,
    /// The weight of names, if each text has a name that the other lacks.
    pub name: f64,
    /// Maximum number of words of a text with full weights; in longer texts each word weighs less.
    pub words: f64,
    /// Suffixes that negate a word: `n't`.
    pub negating: Vec<String>,
    /// Beginnings that turn a word around: `un`.
    pub beginnings: Vec<String>,
    /// Endings that turn a word around: `less`.
    pub endings: Vec<String>,
}

impl Default for Settings {
    /// The weights chosen on STS Benchmark's training part and on pairs of tweets, and that of names on STS
    /// 2012 to 2015.
    fn default() -> Self {
        Self {
            negation: 0.3,
            antonym: 0.4,
            number: 0.3,
            roles: 0.2,
            name: 0.3,
            words: 8.0,
            negating: Vec::new(),
            beginnings: Vec::new(),
            endings: Vec::new(),
        }
    }
}

impl Settings {
    fn problem(&self) -> Option<String> {
        let weights = [self.negation, self.antonym, self.number, self.roles, self.name];
        if !weights.iter().all(|weight| (0.0..=1.0).contains(weight)) {
            return Some(format!("expected weights from 0 to 1, got {weights:?}"));
        }
        let lengths = 1.0..=1e6;
        if !lengths.contains(&self.words) {
            return Some(format!("expected 1 to 1e6 words, got {}", self.words));
        }
        let mut affixes = self.negating.iter().chain(&self.beginnings).chain(&self.endings);
        affixes.any(String::is_empty).then(|| "a beginning or an ending is empty".to_owned())
    }
}

pub(super) mod flag {
    pub const NEGATES: u16 = 1;
    pub const NEGATES_JOINED: u16 = 1 << 1;
    pub const CONTINUES: u16 = 1 << 2;
    pub const LIFTS: u16 = 1 << 3;
    pub const JOINS: u16 = 1 << 4;
    pub const COUNTS: u16 = 1 << 5;
    pub const MULTIPLIES: u16 = 1 << 6;
    pub const AFTERNOON: u16 = 1 << 7;
    /// The word begins with a digit.
    pub const DIGITS: u16 = 1 << 8;
    /// The word has opposites.
    pub const OPPOSABLE: u16 = 1 << 9;
    /// The word is not listed, so that its letters decide.
    pub const UNLISTED: u16 = 1 << 10;
}

impl Does {
    fn flags(self) -> u16 {
        match self {
            Self::Negates => flag::NEGATES,
            Self::NegatesJoined => flag::NEGATES_JOINED,
            Self::Continues => flag::CONTINUES,
            Self::Lifts => flag::LIFTS,
            Self::Joins => flag::JOINS,
            Self::Counts => flag::COUNTS,
            Self::Multiplies => flag::COUNTS | flag::MULTIPLIES,
            Self::Scales => flag::MULTIPLIES,
            Self::Afternoon => flag::AFTERNOON,
        }
    }
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) settings: Settings,
    /// For each byte, whether a listed prefix begins with it and whether a listed suffix ends with it: most
    /// words have neither and need no comparison with the lists.
    affixed: Box<[[bool; 2]; 256]>,
    /// Whether a word has flags, a bit a row: few have, and the bits of all stay in the nearest cache.
    flagged: Vec<u64>,
    flags: Vec<u16>,
    /// Rows with a number, in rising order.
    numbers: Vec<(WordId, u32)>,
    /// The opposites of each row that has some, one row after the other.
    opposites: Vec<WordId>,
    /// For each row the index of its first opposite, and after the last row the end of the list.
    begins: Vec<u32>,
}

impl Table {
    pub(super) fn read(model: &Model) -> Result<Option<Self>, ModelError> {
        let Some(section) = model.section(SECTION) else { return Ok(None) };
        let settings: Settings = section.parse_settings()?;
        if let Some(problem) = settings.problem() {
            return Err(section.broken(problem));
        }
        let vocabulary = model.vocabulary();
        let below = |number: f32, end: usize, what: &str| {
            let whole = number >= 0.0 && number.fract() == 0.0 && number < end as f32;
            let problem = || section.broken(format!("expected {what} below {end}, got {number}"));
            if whole { Ok(number as u32) } else { Err(problem()) }
        };
        let mut flags: Vec<u16> =
            vocabulary.all_bytes().map(|word| by_letters(word, &settings)).collect();
        let mut numbers = Vec::new();
        for entry in section.floats_shaped(WORDS, &[None, Some(3)])?.chunks_exact(3) {
            let &[word, does, number] = entry else { continue };
            let word = below(word, vocabulary.len(), "a row")?;
            let does = below(does, Does::ALL.len(), "what a word does")? as usize;
            let Some((does, _)) = Does::ALL.get(does) else { continue };
            if let Some(flags) = flags.get_mut(word as usize) {
                *flags |= does.flags();
            }
            if does.has_number() {
                let whole = number >= 0.0 && number.fract() == 0.0 && number <= 1e9;
                if !whole {
                    let expected = "expected a whole number up to 1e9";
                    return Err(section.broken(format!("{expected}, got {number}")));
                }
                numbers.push((word, number as u32));
            }
        }
        numbers.sort_unstable();
        let mut opposites = Vec::new();
        for pair in section.floats_shaped(OPPOSITES, &[None, Some(2)])?.chunks_exact(2) {
            let &[one, other] = pair else { continue };
            let one = below(one, vocabulary.len(), "a row")?;
            let other = below(other, vocabulary.len(), "a row")?;
            if one == other {
                return Err(section.broken(format!("row {one} is its own opposite")));
            }
            opposites.extend([[one, other], [other, one]]);
        }
        opposites.sort_unstable();
        opposites.dedup();
        let (mut begins, mut seen) = (Vec::with_capacity(flags.len() + 1), 0);
        for (id, flags) in (0..).zip(&mut flags) {
            begins.push(seen as u32);
            let rest = opposites.get(seen..).unwrap_or_default();
            let own = rest.iter().take_while(|pair| pair[0] == id).count();
            *flags |= if own > 0 { flag::OPPOSABLE } else { 0 };
            seen += own;
        }
        begins.push(seen as u32);
        let opposites = opposites.into_iter().map(|[_, other]| other).collect();
        let bit = |bits: u64, (at, &flags): (usize, &u16)| bits | u64::from(flags != 0) << at;
        let flagged = flags.chunks(64).map(|row| row.iter().enumerate().fold(0, bit)).collect();
        let mut affixed = Box::new([[false; 2]; 256]);
        let first = settings.beginnings.iter().filter_map(|affix| affix.bytes().next());
        first.for_each(|byte| affixed[usize::from(byte)][0] = true);
        let last = settings.endings.iter().filter_map(|affix| affix.bytes().last());
        last.for_each(|byte| affixed[usize::from(byte)][1] = true);
        Ok(Some(Self { settings, affixed, flagged, flags, numbers, opposites, begins }))
    }

    #[inline]
    pub(super) fn flags(&self, word: WordId) -> u16 {
        let bits = self.flagged.get(word as usize / 64).copied().unwrap_or(0);
        if bits & 1 << (word % 64) == 0 {
            return 0;
        }
        self.flags.get(word as usize).copied().unwrap_or(0)
    }

    /// The flags of a word that is not listed.
    pub(super) fn flags_of_letters(&self, word: &str) -> u16 {
        by_letters(word.as_bytes(), &self.settings)
    }

    pub(super) fn number(&self, word: WordId) -> Option<u32> {
        let at = self.numbers.binary_search_by_key(&word, |&(word, _)| word).ok()?;
        self.numbers.get(at).map(|&(_, number)| number)
    }

    pub(super) fn opposites(&self, word: WordId) -> &[WordId] {
        let bounds = self.begins.get(word as usize..).and_then(|bounds| bounds.first_chunk());
        let Some(&[from, to]) = bounds else { return &[] };
        self.opposites.get(from as usize..to as usize).unwrap_or_default()
    }

    /// The listed words that a word which is not listed turns around: `visible` for `unvisible`.
    pub(super) fn turned<'t>(
        &'t self,
        word: &'t str,
        vocabulary: Vocabulary<'t>,
    ) -> impl Iterator<Item = WordId> + 't {
        let Settings { beginnings, endings, .. } = &self.settings;
        let may = |byte: Option<u8>, side: usize| {
            byte.is_some_and(|byte| self.affixed[usize::from(byte)][side])
        };
        let beginnings = beginnings.iter().filter(move |_| may(word.bytes().next(), 0));
        let endings = endings.iter().filter(move |_| may(word.bytes().last(), 1));
        let begun = beginnings.filter_map(|beginning| word.strip_prefix(beginning.as_str()));
        let ended = endings.filter_map(|ending| word.strip_suffix(ending.as_str()));
        begun.chain(ended).filter_map(move |rest| vocabulary.lookup(rest))
    }
}

/// What the letters of a word say, listed or not.
fn by_letters(word: &[u8], settings: &Settings) -> u16 {
    let digits = word.first().is_some_and(u8::is_ascii_digit);
    let negates = settings.negating.iter().any(|ending| word.ends_with(ending.as_bytes()));
    (u16::from(digits) * flag::DIGITS) | (u16::from(negates) * flag::NEGATES)
}

/// Makes the section of a model of this vocabulary from lines of the list. Words that the model does not list are left out.
///
/// # Errors
///
/// If a line cannot be understood, or no word of the list is listed by the model.
pub fn fit<L: AsRef<str>>(
    vocabulary: &Vocabulary<'_>,
    lines: impl IntoIterator<Item = L>,
) -> Result<Fitted, Unfittable> {
    let unfittable = |problem: String| Unfittable { section: SECTION, problem };
    if vocabulary.len() > EXACT as usize {
        return Err(unfittable(format!("the model has more than {EXACT} words")));
    }
    let (mut settings, mut words) = (Settings::default(), Vec::new());
    let mut opposites = BTreeSet::new();
    for (number, line) in lines.into_iter().enumerate() {
        let line = line.as_ref();
        let wrong = |what: &str| unfittable(format!("line {}: {what}", number + 1));
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut fields = line.split('\t');
        let (Some(word), Some(does)) = (fields.next(), fields.next()) else {
            return Err(wrong("expected a word, a tab and what it does"));
        };
        let (other, end) = (fields.next(), fields.next());
        if word.trim_matches('-').is_empty() || end.is_some() {
            return Err(wrong("expected a word, what it does, and at most one field more"));
        }
        match (does, word.strip_prefix('-'), word.strip_suffix('-'), other) {
            ("negates", Some(ending), _, None) => settings.negating.push(ending.to_owned()),
            ("reverses", Some(ending), _, None) => settings.endings.push(ending.to_owned()),
            ("reverses", None, Some(beginning), None) => {
                settings.beginnings.push(beginning.to_owned());
            }
            ("opposite", None, None, Some(other)) => {
                let found = (vocabulary.lookup(word), vocabulary.lookup(other));
                if let (Some(one), Some(other)) = found
                    && one != other
                {
                    opposites.insert([one.min(other), one.max(other)]);
                }
            }
            (name, None, None, number) => {
                let known = (0..).zip(Does::ALL).find(|(_, (_, known))| *known == name);
                let Some((at, (does, _))) = known else {
                    return Err(wrong(&format!("no word does `{name}`")));
                };
                let number = match (does.has_number(), number) {
                    (false, None) => 0,
                    (true, Some(number)) => number
                        .parse::<u32>()
                        .ok()
                        .filter(|&number| number <= 1_000_000_000 && number as f32 as u32 == number)
                        .ok_or_else(|| wrong("expected a whole number up to 1e9"))?,
                    (true, None) => return Err(wrong(&format!("`{name}` needs a number"))),
                    (false, Some(_)) => {
                        return Err(wrong(&format!("`{name}` has no third field")));
                    }
                };
                if let Some(id) = vocabulary.lookup(word) {
                    words.extend([id as f32, at as f32, number as f32]);
                }
            }
            _ => return Err(wrong(&format!("`{word}` cannot do `{does}`"))),
        }
    }
    if words.is_empty() || opposites.is_empty() {
        return Err(unfittable("the model lists no word that negates, or no opposites".to_owned()));
    }
    let opposites: Vec<f32> = opposites.iter().flatten().map(|&word| word as f32).collect();
    // Plain values always have a JSON form.
    let settings = serde_json::to_string(&settings).unwrap_or_default();
    let tensors = vec![
        (WORDS, vec![words.len() / 3, 3], words),
        (OPPOSITES, vec![opposites.len() / 2, 2], opposites),
    ];
    Ok(Fitted { section: SECTION, settings, tensors, bytes: Vec::new() })
}
