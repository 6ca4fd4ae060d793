//! The start of a run: the words, their frequencies, and the vectors of numbers.

use std::collections::HashMap;

use cognate::model::Model;
use cognate::model::format::Limits;
use cognate::model::unknown::hash_vector;
use cognate::text;
use cognate::text::{Normalisation, Numbers, Tokens};
use cognate_kernels::simd;
use cognate_train::TrainError;

use crate::DistillOptions;
use crate::generated::Grammar;
use crate::generated::grammar::Patterns;
use crate::languages::Words;
use crate::sources::Line;
use crate::student::Student;
use crate::words::{Lookup, LookupMemory, WordList, is_number, probabilities};

/// Share of its vector that a number keeps, and length of its own random direction: teachers hardly
/// distinguish 2010 from 2011, but short texts need the distinction.
const NUMBER_SHARE: f32 = 0.5;
const NUMBER_OWN: f32 = 1.2;
/// How many of the most frequent words of a language count as its function words.
const FUNCTION_WORDS: usize = 50;
/// Minimum occurrences of a word to be added to those of a model.
const MIN: u64 = 5;

/// The words and their properties before training.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) words: Vec<String>,
    /// Occurrences of each word: from the list or the model, else from the texts.
    pub(super) counts: Vec<u64>,
    /// The share of running text that each word makes up.
    pub(super) shares: Vec<f64>,
    /// With several languages, the same in each of them.
    of_languages: Vec<Vec<f64>>,
    /// With several languages, the one in which each word is most frequent.
    pub(super) home: Vec<usize>,
    /// Words whose vectors are not trained: numbers of a base model.
    pub(super) frozen: Vec<bool>,
    /// Whether each word is a number that gets its own direction.
    numbers: Vec<bool>,
    /// Number of lines of the list that were left out.
    pub(super) left_out: usize,
    /// Number of words added to those of the base model.
    pub(super) added: usize,
    /// Number of tokens that words were counted in; the sum of all counts if the list has them.
    pub(super) tokens: u64,
}

impl Start {
    /// Reads the words from the list, or from the base model and the texts.
    pub(super) fn read(
        options: &DistillOptions,
        base: Option<&Model>,
        Words { mut list, shares: of_languages, home }: Words,
        rules: &Normalisation,
        lines: &[&Line],
    ) -> Result<Self, TrainError> {
        if let Some(path) = &options.words {
            list = WordList::read(path, rules)?;
        }
        let (mut added, mut of_added) = (0, Vec::new());
        if let Some(model) = base {
            let vocabulary = model.vocabulary();
            list.words.extend(vocabulary.words().map(str::to_owned));
            list.counts = vocabulary.counts.map(<[u64]>::to_vec);
            let new = new_words(model, rules, lines, options.add_words);
            added = new.len();
            for (word, count) in new {
                list.words.push(word);
                of_added.push(count);
            }
        }
        let WordList { words, counts, left_out } = list;
        let bytes = (words.len() as u64).saturating_mul(4 * options.dims as u64);
        if words.len() as u64 > Limits::DEFAULT.words || bytes > Limits::DEFAULT.model_bytes {
            let problem = format!("{} words are more than a model file may hold", words.len());
            return Err(TrainError::Options(problem));
        }
        let (in_texts, mut tokens) = count(&words, rules, lines);
        let counts = match counts {
            None => in_texts,
            Some(mut counts) => {
                // New words are scaled so that their share of the model's tokens is their share of
                // the texts.
                let total = base.and_then(|model| model.vocabulary().corpus.tokens).unwrap_or(0);
                let scale = total as f64 / tokens.max(1) as f64;
                counts.extend(of_added.iter().map(|&c| ((c as f64 * scale) as u64).max(1)));
                tokens = counts.iter().fold(0, |sum, &count| sum.saturating_add(count));
                counts
            }
        };
        // A word without occurrences still needs a positive share, to be drawn and weighted.
        let seen: Vec<u64> = counts.iter().map(|&count| count.max(1)).collect();
        let keeps = rules.numbers == Numbers::Keep;
        let numbers: Vec<bool> = words.iter().map(|word| keeps && is_number(word)).collect();
        let frozen = match base {
            Some(model) => {
                let listed = model.vocabulary().len();
                numbers.iter().enumerate().map(|(at, &is)| is && at < listed).collect()
            }
            None => vec![false; words.len()],
        };
        let shares = probabilities(&seen);
        Ok(Self {
            words,
            counts,
            shares,
            of_languages,
            home,
            frozen,
            numbers,
            left_out,
            added,
            tokens,
        })
    }

    /// The shares that words make up of the texts of a language, or of all if there is one alone.
    pub(super) fn shares_of(&self, language: usize) -> &[f64] {
        self.of_languages.get(language).unwrap_or(&self.shares)
    }

    /// What texts of a language are generated by; its function words are those that are most
    /// frequent in it.
    pub(super) fn grammar_of(&self, language: usize, patterns: Option<Patterns>) -> Grammar {
        let shares = self.shares_of(language);
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        let words = order.into_iter().take(FUNCTION_WORDS);
        let function_words = words.map(|word| self.words[word].clone()).collect();
        Grammar::Other { patterns, function_words }
    }

    /// Adds a random direction of its own to half of every number's vector.
    pub(super) fn mark_numbers(&self, student: &mut Student) {
        let dims = student.dims;
        let mut own = vec![0.0; dims];
        let rows = student.rows.chunks_exact_mut(dims).zip(&self.words).zip(&self.numbers);
        for ((row, word), _) in rows.filter(|(_, is_number)| **is_number) {
            hash_vector(word, NUMBER_OWN, &mut own);
            for (number, own) in row.iter_mut().zip(&own) {
                *number = NUMBER_SHARE * *number + own;
            }
        }
    }
}

/// The median length of the rarer half of the rows, which are sorted by falling frequency.
pub(super) fn rarer_half(rows: &[f32], dims: usize) -> f32 {
    let mut lengths: Vec<f32> =
        rows.chunks_exact(dims.max(1)).map(|row| simd::dot(row, row).sqrt()).collect();
    let rarer = lengths.len() / 2;
    let rarer = &mut lengths[rarer..];
    rarer.sort_by(f32::total_cmp);
    rarer.get(rarer.len() / 2).copied().unwrap_or(0.0)
}

/// Occurrences of each word in the lines, and the number of tokens.
fn count(words: &[String], rules: &Normalisation, lines: &[&Line]) -> (Vec<u64>, u64) {
    let lookup = Lookup::new(words, rules);
    let (mut memory, mut found) = (LookupMemory::default(), Vec::new());
    let (mut counts, mut tokens) = (vec![0; words.len()], 0);
    for line in lines {
        found.clear();
        lookup.read(&line.text, &mut memory, &mut found);
        found.iter().for_each(|&word| counts[word as usize] += 1);
        tokens += line.tokens as u64;
    }
    (counts, tokens)
}

/// The most frequent words of the lines that the model does not list, without numbers.
fn new_words(
    model: &Model,
    rules: &Normalisation,
    lines: &[&Line],
    most: usize,
) -> Vec<(String, u64)> {
    let vocabulary = model.vocabulary();
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut tokens = Tokens::new();
    if most == 0 {
        return Vec::new();
    }
    for line in lines {
        text::tokenise(rules, &line.text, &mut tokens);
        for token in tokens.texts() {
            if vocabulary.lookup(token).is_some() || is_number(token) {
                continue;
            }
            match counts.get_mut(token) {
                Some(count) => *count += 1,
                None => {
                    counts.insert(token.to_owned(), 1);
                }
            }
        }
    }
    let mut found: Vec<(String, u64)> =
        counts.into_iter().filter(|(_, count)| *count >= MIN).collect();
    found.sort_unstable_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    found.truncate(most);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_a_direction_of_their_own() {
        let words = ["the", "2010", "2011"].map(str::to_owned).to_vec();
        let start = Start {
            counts: vec![1; 3],
            shares: vec![0.3; 3],
            of_languages: Vec::new(),
            home: Vec::new(),
            frozen: vec![false; 3],
            numbers: words.iter().map(|word| is_number(word)).collect(),
            words,
            left_out: 0,
            added: 0,
            tokens: 3,
        };
        let mut student = Student::new([[1.0; 64]; 3].concat(), 64);
        start.mark_numbers(&mut student);
        let [the, one, other] = [0, 1, 2].map(|word| &student.rows[word * 64..(word + 1) * 64]);
        assert_eq!(the, [1.0; 64]);
        let cosine =
            |a: &[f32], b: &[f32]| simd::dot(a, b) / (simd::dot(a, a) * simd::dot(b, b)).sqrt();
        assert!(cosine(one, other) < 0.99 && cosine(one, the) > 0.9);
    }

    #[test]
    fn the_rarer_half_has_its_median_length() {
        let rows = [9.0, 9.0, 1.0, 3.0, 2.0].map(|length| [0.0, length]);
        assert_eq!(rarer_half(&rows.concat(), 2), 2.0);
    }
}
