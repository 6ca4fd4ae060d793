//! Where a run begins: the words that get a vector, and their first numbers.

use std::collections::HashMap;

use cognate::model::Model;

use crate::sampling;
use crate::vectors::corpus::Corpus;
use crate::vectors::run::Tables;
use crate::vectors::{Objective, VectorsOptions};

/// Deviation of the first numbers of Siamese CBOW (section 3 of the paper).
const DEVIATION: f64 = 0.01;
/// What random choices are for.
const START: u64 = 0;

/// Words and their first numbers.
#[derive(Debug)]
pub struct Start {
    /// All words of the model to be.
    pub words: Vec<String>,
    /// How often each occurs in the text.
    pub busy: Vec<u64>,
    pub dims: usize,
    pub tables: Tables,
}

impl Start {
    /// The words of the corpus with random vectors; with a model to start from, the model's words
    /// with theirs, then those that are new. The corpus gets the numbers of these words.
    pub fn new(corpus: &mut Corpus, base: Option<&Model>, options: &VectorsOptions) -> Self {
        let dims = base.map_or(options.dims, |model| model.vectors().dims());
        let mut words: Vec<String> = Vec::new();
        let mut rows: Vec<f32> = Vec::new();
        if let Some(model) = base {
            words.extend(model.vocabulary().words().map(str::to_owned));
            rows.resize(words.len() * dims, 0.0);
            for (word, row) in rows.chunks_exact_mut(dims).enumerate() {
                if let Some(stored) = model.vectors().row(word as u32) {
                    stored.copy_to(row);
                }
            }
        }
        let deviation = match rows.len() {
            0 => DEVIATION,
            // New words are as long as the known ones are in the mean.
            count => {
                let squares: f64 = rows.iter().map(|&value| f64::from(value).powi(2)).sum();
                (squares / count as f64).sqrt()
            }
        };
        let numbers = Self::number(corpus, &mut words);
        let random = rows.len()..words.len() * dims;
        let mut draws = sampling::generator(options.seed, START, [0, 0]);
        rows.extend(random.map(|_| match options.objective {
            Objective::SiameseCbow => (deviation * sampling::normal(&mut draws)) as f32,
            Objective::Cbow | Objective::SkipGram => {
                ((sampling::share(&mut draws) - 0.5) / dims as f64) as f32
            }
        }));
        let mut busy = vec![0; words.len()];
        for (&number, &count) in numbers.iter().zip(&corpus.counts) {
            busy[number as usize] = count;
        }
        corpus.renumber(numbers);
        let beside = match options.objective {
            Objective::SiameseCbow if !options.schedule.adagrad => Vec::new(),
            _ => vec![0.0; rows.len()],
        };
        Self { words, busy, dims, tables: Tables { rows, beside } }
    }

    /// The number of each word of the corpus among all words, new ones added.
    fn number(corpus: &Corpus, words: &mut Vec<String>) -> Vec<u32> {
        let known: HashMap<&str, u32> =
            words.iter().enumerate().map(|(number, word)| (word.as_str(), number as u32)).collect();
        let mut next = words.len() as u32;
        let mut numbers = Vec::with_capacity(corpus.words.len());
        let mut new = Vec::new();
        for word in &corpus.words {
            numbers.push(known.get(word.as_str()).copied().unwrap_or_else(|| {
                new.push(word.clone());
                next += 1;
                next - 1
            }));
        }
        words.extend(new);
        numbers
    }
}
