//! Where a run begins: the words, how frequent they are, and their first vectors.

use std::collections::HashMap;

use cognate::model::Model;
use cognate::model::format::Limits;
use cognate::model::unknown::hash_vector;
use cognate::text;
use cognate::text::{Normalisation, Numbers, Tokens};
use cognate_kernels::simd;
use cognate_train::TrainError;
use rayon::prelude::*;

use crate::lessons::{Lessons, Parts};
use crate::pieces::map::Map;
use crate::pieces::{Example, Fitted};
use crate::sources::Line;
use crate::space::Targets;
use crate::student::Student;
use crate::words::{Lookup, LookupMemory, WordList, is_number, probabilities};
use crate::{DistillOptions, pieces, space, turn};

/// a of a word's first weight, a / (a + p(w)): that of SIF (Arora et al. 2017).
const WEIGHT: f64 = 1e-3;
/// What a number keeps of its vector, and the length of its own direction: a teacher hardly tells
/// 2010 from 2011, which short texts need.
const NUMBER_SHARE: f32 = 0.5;
const NUMBER_OWN: f32 = 1.2;
/// How often a word must occur to be added to those of a model.
const LEAST: u64 = 5;

/// Words up to this place are too frequent to tell how rare words' vectors come from teachers; of a
/// short list, half.
const FREQUENT: usize = 8000;
/// What a word trained along counts beside a rare word when pieces are fitted.
const LEFT_OUT: f32 = 3.0;

/// Words and what is known of them before training.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) words: Vec<String>,
    /// How often each of them occurs: as the list or the model says, else in the texts.
    pub(super) counts: Vec<u64>,
    /// The share of running text that each of them is.
    pub(super) shares: Vec<f64>,
    /// Words that keep their vectors: numbers of a model to start from.
    pub(super) frozen: Vec<bool>,
    /// Whether each word is a number that gets a direction of its own.
    numbers: Vec<bool>,
    /// Lines of the list that were left out.
    pub(super) left_out: usize,
    /// Words added to those of the model.
    pub(super) added: usize,
    /// Tokens of the text that words were counted in: all counts together where a list has them.
    pub(super) tokens: u64,
}

impl Start {
    /// The words of the list, or of the model and the texts.
    pub(super) fn read(
        options: &DistillOptions,
        base: Option<&Model>,
        rules: &Normalisation,
        lines: &[&Line],
    ) -> Result<Self, TrainError> {
        let mut list = WordList::default();
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
                // New words are as frequent among the model's as they are in the texts.
                let total = base.and_then(|model| model.vocabulary().corpus.tokens).unwrap_or(0);
                let scale = total as f64 / tokens.max(1) as f64;
                counts.extend(of_added.iter().map(|&c| ((c as f64 * scale) as u64).max(1)));
                tokens = counts.iter().fold(0, |sum, &count| sum.saturating_add(count));
                counts
            }
        };
        // A word that was never met still gets a share, so that it can be drawn and weighed.
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
        Ok(Self { words, counts, shares, frozen, numbers, left_out, added, tokens })
    }

    /// The first vectors. Without a model, a / (a + p(w)) of the teachers' centred vector of the word
    /// alone. With one, the model's; targets are turned onto the sums of its words, and new words get
    /// the direction of their target and the length that rare words of the model have.
    pub(super) fn rows(&self, base: Option<&Model>, lessons: &mut Lessons) -> Vec<f32> {
        let dims = lessons.targets.dims;
        let Some(model) = base else {
            let mut centred = std::mem::take(&mut lessons.centred);
            for (row, share) in centred.chunks_exact_mut(dims).zip(&self.shares) {
                let weight = (WEIGHT / (WEIGHT + share)) as f32;
                row.iter_mut().for_each(|number| *number *= weight);
            }
            return centred;
        };
        let listed = model.vocabulary().len();
        let mut rows = vec![0.0; self.words.len() * dims];
        for (id, row) in (0..).zip(rows.chunks_exact_mut(dims).take(listed)) {
            if let Some(stored) = model.vectors().row(id) {
                stored.copy_to(row);
            }
        }
        // Only texts of listed words say how the model's axes lie.
        let bags = &lessons.bags;
        let is_known =
            |text: &u32| bags.text(*text as usize).iter().all(|&word| (word as usize) < listed);
        let known: Vec<u32> = lessons.of_texts().iter().copied().filter(is_known).collect();
        let rotation = turn::onto_sums(&lessons.targets, &rows, bags, &known);
        let numbers = lessons.targets.rows.iter();
        let mut turned: Vec<f32> = numbers.map(|number| number.to_f32()).collect();
        turn::turn(&mut turned, &rotation, dims);
        let targets = Targets::of(turned, dims);
        let length = rarer_half(&rows[..listed * dims], dims);
        let first_word = targets.len() - self.words.len();
        for (word, row) in rows.chunks_exact_mut(dims).enumerate().skip(listed) {
            for (to, from) in row.iter_mut().zip(targets.row(first_word + word)) {
                *to = length * from.to_f32();
            }
        }
        lessons.targets = targets;
        rows
    }

    /// Gives every number a direction of its own beside half of its vector.
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

pub(super) struct Trained<'t> {
    pub(super) start: &'t Start,
    /// The vectors of all words.
    pub(super) rows: &'t [f32],
    /// Words that the model will list; the others were trained along.
    pub(super) listed: usize,
    pub(super) dims: usize,
}

impl Trained<'_> {
    /// Pieces fitted to the words trained along and to rare words. A rare word's direction is where
    /// the map puts it that leads from what teachers say to the vectors of less frequent words.
    pub(super) fn pieces(&self, parts: &Parts, most: usize) -> Fitted {
        let dims = self.dims;
        let words = self.start.words.len();
        let plain = |word: &usize| !self.start.words[*word].chars().any(char::is_numeric);
        let from = FREQUENT.min(words / 2);
        let rarer: Vec<usize> = (from..words).filter(plain).collect();
        let fill = |word: usize, row: &mut [f32]| parts.of_words.fill(word, row);
        let width = parts.of_words.width();
        let map = Map::fit(&rarer, &fill, width, self.rows, dims);
        let of_rare = |word: usize| {
            let mut said = vec![0.0; width];
            parts.of_rare.fill(word, &mut said);
            map.apply(&said)
        };
        let left_out: Vec<usize> = (self.listed..words).filter(plain).collect();
        let of_left_out = |&word: &usize| self.rows[word * dims..(word + 1) * dims].to_vec();
        let mut directions: Vec<Vec<f32>> = left_out.iter().map(of_left_out).collect();
        directions.par_extend((0..parts.rare.len()).into_par_iter().map(of_rare));
        directions.par_iter_mut().for_each(|row| space::unit(row));
        let words = left_out.iter().map(|&word| (&self.start.words[word], LEFT_OUT));
        let words = words.chain(parts.rare.iter().map(|word| (word, 1.0)));
        let examples: Vec<Example<'_>> = words
            .zip(&directions)
            .map(|((word, weight), direction)| Example { word, direction, weight })
            .collect();
        pieces::fit(&parts.candidates, &examples, most, dims)
    }
}

/// The median length of the rarer half of the rows, which come most frequent first.
pub(super) fn rarer_half(rows: &[f32], dims: usize) -> f32 {
    let mut lengths: Vec<f32> =
        rows.chunks_exact(dims.max(1)).map(|row| simd::dot(row, row).sqrt()).collect();
    let rarer = lengths.len() / 2;
    let rarer = &mut lengths[rarer..];
    rarer.sort_by(f32::total_cmp);
    rarer.get(rarer.len() / 2).copied().unwrap_or(0.0)
}

/// How often each word occurs in the lines, and how many tokens there are.
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

/// The most frequent words of the lines that the model does not list, numbers left out.
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
        counts.into_iter().filter(|(_, count)| *count >= LEAST).collect();
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
