//! Turns the rows of a foreign file into the words and rows of a model, by the user's policy.
//!
//! Readers return what the file contains; this module decides about words that are not UTF-8 or
//! repeated, and about rows that are all zeros or not finite.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use cognate::model::{LONGEST, vocabulary};
use cognate_files::progress::Progress;

use crate::readers::{Place, VectorReader};
use crate::spool::Spool;
use crate::{PackError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawedRows {
    /// Stop with an error that names the row.
    Refuse,
    /// Leave the row out and count it.
    Drop,
}

/// What to do with a word that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadUtf8 {
    Strict,
    /// Replace the bad bytes by U+FFFD.
    Lossy,
    Skip,
}

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// For a repeated word; if dropped, the first occurrence is kept.
    pub duplicates: FlawedRows,
    /// For a row with NaN or infinity, or with a norm that overflows.
    pub non_finite: FlawedRows,
    pub utf8: BadUtf8,
    /// Whether words are lower-cased; of words that become equal the first is kept.
    pub lower: bool,
    pub words: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    pub duplicates: u64,
    /// The row held NaN or infinity, or was too long.
    pub non_finite: u64,
    pub zero_rows: u64,
    pub bad_utf8: u64,
    pub empty_words: u64,
}

pub(crate) struct Intake {
    pub words: Words,
    pub rows: Spool,
    pub counts: Option<Vec<u64>>,
    /// Scores of the words, if they are pieces with scores.
    pub scores: Vec<f64>,
    pub left_out: LeftOut,
}

/// Distinct words in order, stored in one string.
#[derive(Debug, Default)]
pub(crate) struct Words {
    text: String,
    ends: Vec<usize>,
    /// The first word with each hash; further words with the same hash are searched linearly.
    by_hash: HashMap<u64, u32>,
    others: Vec<u32>,
}

impl Words {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        let start = (id as usize).checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(id as usize).copied().unwrap_or(0);
        self.text.get(start.copied().unwrap_or(0)..end).unwrap_or("")
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|id| self.get(id as u32))
    }

    pub(crate) fn contains(&self, word: &str) -> bool {
        match self.by_hash.get(&vocabulary::hash(word.as_bytes())) {
            Some(&id) => {
                self.get(id) == word || self.others.iter().any(|&other| self.get(other) == word)
            }
            None => false,
        }
    }

    fn push(&mut self, word: &str) {
        let id = self.len() as u32;
        self.text.push_str(word);
        self.ends.push(self.text.len());
        match self.by_hash.entry(vocabulary::hash(word.as_bytes())) {
            Entry::Occupied(_) => self.others.push(id),
            Entry::Vacant(place) => drop(place.insert(id)),
        }
    }
}

impl Intake {
    /// Reads `reader` to its end, or until the maximum number of words is reached.
    pub(crate) fn read(
        reader: &mut dyn VectorReader,
        policy: &Policy,
        directory: &std::path::Path,
        progress: &Progress,
    ) -> Result<Self> {
        let dims = reader.dims();
        let mut rows = Spool::create(directory, dims).map_err(PackError::spool(directory))?;
        let mut words = Words::default();
        let (mut counts, mut scores) = (Vec::new(), Vec::new());
        let mut left_out = LeftOut::default();
        let (mut word, mut row) = (Vec::new(), vec![0.0_f32; dims]);
        while (words.len() as u64) < policy.words && reader.next_row(&mut word, &mut row)? {
            if words.len().is_multiple_of(1024) {
                let (done, all) = reader.progress();
                progress.at(done, all);
            }
            let Some(word) = accept(&word, &row, &words, policy, &mut left_out, reader.place())?
            else {
                continue;
            };
            words.push(&word);
            rows.push(&row).map_err(PackError::spool(directory))?;
            counts.extend(reader.count());
            scores.extend(reader.score());
        }
        let counts = (!counts.is_empty() && counts.len() == words.len()).then_some(counts);
        Ok(Self { words, rows, counts, scores, left_out })
    }
}

fn accept<'a>(
    word: &'a [u8],
    row: &[f32],
    words: &Words,
    policy: &Policy,
    left_out: &mut LeftOut,
    place: Place,
) -> Result<Option<Cow<'a, str>>> {
    let refuse = |problem: String| Err(PackError::Row { place, problem });
    let mut word = match (String::from_utf8_lossy(word), policy.utf8) {
        (Cow::Owned(lossy), BadUtf8::Strict) => {
            return refuse(format!("the word `{lossy}` is not UTF-8; see --utf8"));
        }
        (Cow::Owned(_), BadUtf8::Skip) => {
            left_out.bad_utf8 += 1;
            return Ok(None);
        }
        (word, _) => word,
    };
    if policy.lower && word.chars().any(char::is_uppercase) {
        word = Cow::Owned(word.to_lowercase());
    }
    if word.is_empty() {
        left_out.empty_words += 1;
        return Ok(None);
    }
    if row.iter().any(|value| !value.is_finite()) {
        if policy.non_finite == FlawedRows::Refuse {
            return refuse(format!("`{word}` has NaN or infinity; see --non-finite"));
        }
        left_out.non_finite += 1;
        return Ok(None);
    }
    let square: f64 = row.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    if square.sqrt() > f64::from(LONGEST) {
        if policy.non_finite == FlawedRows::Refuse {
            return refuse(format!(
                "the vector of `{word}` is longer than {LONGEST:e}, so that its products \
                 overflow; scale the vectors down, or see --non-finite"
            ));
        }
        left_out.non_finite += 1;
        return Ok(None);
    }
    if row.iter().all(|&value| value == 0.0) {
        left_out.zero_rows += 1;
        return Ok(None);
    }
    if words.contains(&word) {
        if policy.duplicates == FlawedRows::Refuse {
            return refuse(format!("the word `{word}` occurs twice; see --duplicates"));
        }
        left_out.duplicates += 1;
        return Ok(None);
    }
    Ok(Some(word))
}
