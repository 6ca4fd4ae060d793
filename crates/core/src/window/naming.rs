//! The names of events: the words and phrases that tell one apart from what it stands among, and its most
//! central text.
//!
//! A term is a word, or two words that stand side by side. It tells much of an event if it stands in a
//! larger share of the event's texts than of all texts, and in many of them: of a term in `c` of the
//! event's texts where its share of all texts would be `e`, this is `c · ln(c / e)`. Words that make up
//! much of any text, such as "from", tell nothing.
//!
//! How much of an event is chatter is told by the information in its texts: a word that makes up the share
//! `p` of the language has `log2(1 / p)` bits. People who report something say more of it, in rarer words,
//! than people who say good night. What stands in the window is of no help there: measured, the rareness of
//! words in the stream told chatter less well than their rareness in the language (`docs/measurements/events.md`).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::engine::{Engine, Measure, QueryError};
use crate::text;
use crate::text::{Kind, Tokens};
use crate::window::likeness;

/// A word that makes up a larger share of a language is no name of an event.
const MAX_COMMON: f64 = 1e-3;
/// Minimum share of a word's texts in which the same other word stands beside it, for both words to be
/// one name.
const TOGETHER: f64 = 0.6;
/// A longer word in bytes is an address or a run of letters, and no name.
const LONGEST: usize = 64;
/// Bytes of memory of a term beside its own.
const TERM_BYTES: usize = 64;
/// The fewest texts that hold a phrase.
const MIN_TEXTS: u32 = 2;
/// The share of the language that a word makes up which the model did not count, or more rarely than that.
const RARE: f64 = 1e-6;
/// A text with this many bits of information counts as half chatter.
const HALF_BITS: f64 = 100.0;

/// The terms of one text, each once.
#[derive(Debug, Default)]
pub struct Terms {
    tokens: Tokens,
    text: String,
    places: Vec<Range<usize>>,
    bits: f64,
}

impl Terms {
    /// Replaces the terms by those of another text.
    pub fn read(&mut self, engine: &Engine, text: &str) {
        let Self { tokens, text: terms, places, bits } = self;
        let (model, vocabulary) = (engine.model(), engine.model().vocabulary());
        text::tokenise(model.normalisation(), text, tokens);
        terms.clear();
        places.clear();
        let mut words: Vec<(&str, f64)> = Vec::new();
        let mut before: Option<&str> = None;
        for (word, token) in tokens.iter() {
            let is_word = matches!(token.kind, Kind::Word | Kind::Hashtag);
            if !is_word || word.chars().count() < 3 {
                before = None;
                continue;
            }
            let share = vocabulary.lookup(word).map_or(0.0, |id| vocabulary.probability(id));
            words.push((word, share));
            if share > MAX_COMMON || word.len() > LONGEST {
                before = None;
                continue;
            }
            let mut add = |parts: &[&str]| {
                let start = terms.len();
                parts.iter().for_each(|part| terms.push_str(part));
                places.push(start..terms.len());
            };
            add(&[word]);
            if let Some(before) = before.filter(|before| *before != word) {
                add(&[before, " ", word]);
            }
            before = Some(word);
        }
        places.sort_unstable_by(|one, other| terms[one.clone()].cmp(&terms[other.clone()]));
        places.dedup_by(|one, other| terms[one.clone()] == terms[other.clone()]);
        // In an order of their own, so that the sum is that of the words in any order.
        words.sort_unstable_by_key(|(word, _)| *word);
        words.dedup_by_key(|(word, _)| *word);
        *bits = words.iter().map(|(_, share)| -share.max(RARE).log2()).sum();
    }

    /// Bits of information in the words of the text, each counted once.
    pub fn bits(&self) -> f64 {
        self.bits
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|place| &self.text[place.clone()])
    }
}

/// Terms with the number of texts that hold them.
#[derive(Debug, Default)]
pub struct TermCounts {
    texts: u64,
    counts: HashMap<Box<str>, u32>,
    /// Bits of information in all of the texts.
    bits: f64,
}

impl TermCounts {
    /// Counts a text. Of more than `most` terms the rare terms are forgotten.
    pub fn add(&mut self, terms: &Terms, most: usize) {
        self.texts += 1;
        self.bits += terms.bits;
        for term in terms.iter() {
            match self.counts.get_mut(term) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(term.into(), 1)),
            }
        }
        let mut floor = 1;
        while self.counts.len() > most {
            self.counts.retain(|_, &mut count| count > floor);
            floor *= 2;
        }
    }

    /// Maximum bytes that the terms of texts of this many bytes take, where at most `most` terms are
    /// counted.
    pub fn bytes_of(texts: usize, most: usize) -> usize {
        // A word of three letters and the gap behind it make two terms: the word, and one with the word
        // before it.
        let (terms, letters) = ((texts / 2).min(most), texts.saturating_mul(3));
        letters.min(most * (2 * LONGEST + 1)) + terms * TERM_BYTES
    }

    /// Returns the [`chatter`] score of the texts.
    pub fn chatter(&self) -> f64 {
        chatter(self.bits / self.texts.max(1) as f64)
    }

    fn count(&self, term: &str) -> u32 {
        self.counts.get(term).copied().unwrap_or(0)
    }
}

/// How much of some texts is chatter, from 0 to 1: the fewer bits of information are in one of them on
/// average, the more. The half of 100 bits, two thirds of 50; a report of some twenty words has 200.
pub fn chatter(bits: f64) -> f64 {
    HALF_BITS / (HALF_BITS + bits)
}

/// At most `most` names of an event among `all` texts, those that tell most first.
pub fn names<'e>(event: &'e TermCounts, all: &TermCounts, most: usize) -> Vec<&'e str> {
    let share = event.texts as f64 / all.texts.max(1) as f64;
    let (mut words, mut phrases) = (Vec::new(), HashMap::<&str, (u32, &str)>::new());
    for (term, &count) in &event.counts {
        let Some((one, other)) = term.split_once(' ') else {
            let expected = f64::from(all.count(term).max(count)) * share;
            let counted = f64::from(count);
            words.push((counted * (counted / expected.max(0.01)).ln(), count, &**term));
            continue;
        };
        let of_most = event.count(one).max(event.count(other));
        if count < MIN_TEXTS || f64::from(count) < TOGETHER * f64::from(of_most) {
            continue;
        }
        for word in [one, other] {
            let known = phrases.entry(word).or_insert((count, term));
            // Of two that are as frequent the first by the alphabet, whatever their order in the map.
            if count > known.0 || (count == known.0 && **term < *known.1) {
                *known = (count, term);
            }
        }
    }
    words.sort_by(|one, other| {
        other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)).then(one.2.cmp(other.2))
    });
    let (mut names, mut named) = (Vec::with_capacity(most), HashSet::new());
    for (_, _, word) in words {
        if names.len() == most {
            break;
        }
        if named.contains(word) {
            continue;
        }
        let phrase = phrases.get(word).map(|(_, phrase)| *phrase);
        let phrase = phrase.filter(|phrase| !phrase.split(' ').any(|word| named.contains(word)));
        let name = phrase.unwrap_or(word);
        named.extend(name.split(' '));
        names.push(name);
    }
    names
}

/// Returns the index of the text most similar to the mean of all; 0 if no text has a vector.
pub fn central<T: AsRef<str>>(engine: &Engine, texts: &[T]) -> Result<usize, QueryError> {
    let vectors = likeness::vectors(engine, texts)?;
    let mean = likeness::sum(&vectors);
    let mut best = (f32::NEG_INFINITY, 0);
    for (place, vector) in vectors.iter().enumerate() {
        let Some(vector) = vector else { continue };
        let score = Measure::Cosine.score(vector, &mean);
        if score > best.0 {
            best = (score, place);
        }
    }
    Ok(best.1)
}
